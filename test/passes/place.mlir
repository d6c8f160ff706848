// RUN: t10-opt --t10-fuse=orders=keep --t10-partition="chip=%S/Inputs/narrow-16.yaml f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1" --t10-place %s | filecheck %s
// RUN: t10-opt --t10-fuse=orders=keep --t10-partition="chip=%S/Inputs/narrow-16.yaml f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1" --t10-place --t10-place --t10-verify-plan %s | filecheck %s

// One address per buffer, the same on every core; what owns memory says its own. The shift buffer and both weights at
// rest, 4096 bytes each, are needed throughout and lie behind the first 20480 bytes (code, stacks).
// CHECK: rtensor.program = #rtensor.place<{address = 0 : i64, bytes = 20480 : i64}>
// CHECK-SAME: rtensor.shift_buffer = #rtensor.place<{address = 28672 : i64, bytes = 1024 : i64}>
// CHECK: "rtensor.resident"(%arg0) {rtensor.place = #rtensor.place<{address = [[INPUT:[0-9]+]] : i64, bytes = 512 : i64}>}
// CHECK: "rtensor.resident"(%arg1) {rtensor.place = #rtensor.place<{address = 20480 : i64, bytes = 4096 : i64}>}
// CHECK: "rtensor.resident"(%arg2) {rtensor.place = #rtensor.place<{address = 24576 : i64, bytes = 4096 : i64}>}
// The copies of an operator's operands are needed while it runs: both operators have theirs at the same addresses.
// CHECK: "rtensor.relayout"(%{{.*}}) {rtensor.place = #rtensor.place<{address = [[ROWS:[0-9]+]] : i64, bytes = 2048 : i64}>}
// CHECK: "rtensor.setup"(%{{.*}}) {rtensor.place = #rtensor.place<{address = [[ACTIVE:[0-9]+]] : i64, bytes = 16384 : i64}>}
// The input is not needed once its copy has arrived: the first product, 4 x 32 elements of 4 bytes per core, lies there.
// CHECK: "rtensor.fill"() {combine = "sum", rtensor.place = #rtensor.place<{address = [[INPUT]] : i64, bytes = 512 : i64}>}
// CHECK: "rtensor.relayout"(%{{.*}}) {rtensor.place = #rtensor.place<{address = [[ROWS]] : i64, bytes = 2048 : i64}>}
// CHECK: "rtensor.setup"(%{{.*}}) {rtensor.place = #rtensor.place<{address = [[ACTIVE]] : i64, bytes = 16384 : i64}>}
// And so does the second.
// CHECK: "rtensor.fill"() {combine = "sum", rtensor.place = #rtensor.place<{address = [[INPUT]] : i64, bytes = 512 : i64}>}
func.func @main(%x: tensor<16x128xf32>, %w0: tensor<128x128xf32> {t10.weight}, %w1: tensor<128x128xf32> {t10.weight})
    -> tensor<16x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x128xf32>) -> tensor<16x128xf32>
  %h = linalg.matmul ins(%x, %w0 : tensor<16x128xf32>, tensor<128x128xf32>) outs(%init : tensor<16x128xf32>)
    -> tensor<16x128xf32>
  %y = linalg.matmul ins(%h, %w1 : tensor<16x128xf32>, tensor<128x128xf32>) outs(%init : tensor<16x128xf32>)
    -> tensor<16x128xf32>
  return %y : tensor<16x128xf32>
}
