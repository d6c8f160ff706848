// RUN: t10-opt --cse --canonicalize %s | filecheck %s

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
#turn = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>

// Equal relayouts are merged, unused ones removed; a shift moves windows, so both stay.
// CHECK-LABEL: func.func @moves
// CHECK-COUNT-1: "rtensor.relayout"
// CHECK-NOT: "rtensor.relayout"
// CHECK-COUNT-2: "rtensor.shift"
// CHECK-NOT: "rtensor.setup"
// CHECK: return
func.func @moves(%x: tensor<8x8xf16, #rows>) -> (tensor<8x8xf16, #turn>, tensor<8x8xf16, #turn>) {
  %a = "rtensor.relayout"(%x) {bytes = 1, cycles = 1} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #turn>
  %b = "rtensor.relayout"(%x) {bytes = 1, cycles = 1} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #turn>
  %0 = "rtensor.shift"(%a) {axis = 1, pace = 4, direction = "forward"} : (tensor<8x8xf16, #turn>) -> tensor<8x8xf16, #turn>
  %1 = "rtensor.shift"(%a) {axis = 1, pace = 4, direction = "forward"} : (tensor<8x8xf16, #turn>) -> tensor<8x8xf16, #turn>
  %c = "rtensor.setup"(%x) {bytes = 1, cycles = 1} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #turn>
  return %a, %b : tensor<8x8xf16, #turn>, tensor<8x8xf16, #turn>
}
