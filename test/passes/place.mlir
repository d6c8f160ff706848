// RUN: t10-opt --t10-partition="chip=%S/Inputs/narrow-16.yaml f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1" --t10-place %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=%S/Inputs/narrow-16.yaml f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1" --t10-place --t10-place %s | filecheck %s

// One address per buffer, the same on every core, from the operator steps and their phases in which it is needed.
// The shift buffer and both weights at rest, 4096 bytes each, lie behind the first 20480 bytes (code, stacks) for ever.
// CHECK: rtensor.buffers = [
// CHECK-SAME: {address_bytes = 20480 : i64, first = 0 : i64, first_phase = "arrive", last = 1 : i64, last_phase = "finish", name = "shift", size_bytes = 1024 : i64}
// CHECK-SAME: {address_bytes = 21504 : i64, first = 0 : i64, first_phase = "arrive", last = 1 : i64, last_phase = "finish", name = "idle:arg1", size_bytes = 4096 : i64}
// CHECK-SAME: {address_bytes = 25600 : i64, first = 0 : i64, first_phase = "arrive", last = 1 : i64, last_phase = "finish", name = "idle:arg2", size_bytes = 4096 : i64}
// The input dies as its copy has arrived.
// CHECK-SAME: {address_bytes = [[INPUT:[0-9]+]] : i64, first = 0 : i64, first_phase = "arrive", last = 0 : i64, last_phase = "arrive", name = "input:arg0", size_bytes = 512 : i64}
// The weight in use is needed while its own nest runs: both operators have theirs at one address.
// CHECK-SAME: {address_bytes = [[ACTIVE:[0-9]+]] : i64, first = 0 : i64, first_phase = "arrive", last = 0 : i64, last_phase = "nest", name = "operand:{{[^"]*}}:1", size_bytes = 16384 : i64}
// The first product, 4 x 32 elements of 4 bytes per core, lies where the input was until the second has its copy.
// CHECK-SAME: {address_bytes = [[INPUT]] : i64, first = 0 : i64, first_phase = "nest", last = 1 : i64, last_phase = "arrive", name = "value:{{[^"]*}}:0", size_bytes = 512 : i64}
// CHECK-SAME: {address_bytes = [[ACTIVE]] : i64, first = 1 : i64, first_phase = "arrive", last = 1 : i64, last_phase = "nest", name = "operand:{{[^"]*}}:1", size_bytes = 16384 : i64}
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
