// RUN: t10-opt --cse --canonicalize %s | filecheck %s

// What owns memory stays, also where it is equal or unused: two fills are two buffers, and a relayout is a buffer of its
// own. A shift names the position that it goes to: two to one position are one, and one that nothing reads goes.
// CHECK-LABEL: func.func @moves
// CHECK-COUNT-2: "rtensor.fill"
// CHECK-COUNT-2: "rtensor.relayout"
// CHECK-COUNT-1: "rtensor.shift"
// CHECK-NOT: "rtensor.shift"
// CHECK: "rtensor.setup"
// CHECK: return
#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#rest = #rtensor.linear<{cores = 4}>
func.func @moves(%x: tensor<4xf16, #rest>) -> (tensor<4xf32, #rest>, tensor<4xf32, #rest>, tensor<4xf16, #turn>, tensor<4xf16, #turn>, tensor<4xf16, #turn>) {
  %c0 = arith.constant 0 : index
  %y = "rtensor.fill"() {combine = "sum"} : () -> tensor<4xf32, #rest>
  %z = "rtensor.fill"() {combine = "sum"} : () -> tensor<4xf32, #rest>
  %a = "rtensor.relayout"(%x) : (tensor<4xf16, #rest>) -> tensor<4xf16, #turn>
  %b = "rtensor.relayout"(%x) : (tensor<4xf16, #rest>) -> tensor<4xf16, #turn>
  %0 = "rtensor.shift"(%a, %c0) {axis = 1} : (tensor<4xf16, #turn>, index) -> tensor<4xf16, #turn>
  %1 = "rtensor.shift"(%a, %c0) {axis = 1} : (tensor<4xf16, #turn>, index) -> tensor<4xf16, #turn>
  %2 = "rtensor.shift"(%b, %c0) {axis = 1} : (tensor<4xf16, #turn>, index) -> tensor<4xf16, #turn>
  %c = "rtensor.setup"(%x) : (tensor<4xf16, #rest>) -> tensor<4xf16, #turn>
  return %y, %z, %0, %1, %b : tensor<4xf32, #rest>, tensor<4xf32, #rest>, tensor<4xf16, #turn>, tensor<4xf16, #turn>, tensor<4xf16, #turn>
}
