// RUN: t10-opt --t10-partition="chip=test-16 f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1" --t10-reconcile %s | filecheck %s --check-prefixes=CHECK,WIDE
// RUN: t10-opt --t10-partition="chip=%S/Inputs/narrow-16.yaml f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1" --t10-reconcile %s | filecheck %s --check-prefixes=CHECK,NARROW
// RUN: t10-opt --t10-partition="chip=test-16 f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1" --t10-reconcile --t10-reconcile %s | filecheck %s --check-prefixes=CHECK,WIDE

// Two matrix products on 4 x 4 cores. Four cores share every column block of a weight: 128 x 32 in f32 are 16 KiB,
// stored column by column (the summed axis is innermost).
// With 604 KiB both lie ready on every core (idle level 1: as they are used): no setup.
// In 29 KiB they do not. A core then keeps one of 4 chunks, 4 KiB of each (idle level 4), and setup fetches the other
// 16384 - 4096 = 12288 bytes. Both at rest and one in use: 4 + 4 + 16 = 24 KiB.
// WIDE: @main(%{{.*}}: tensor<16x128xf32, #rtensor.layout<{cores = 4 : i64, fs = [4, 1], ft = [1, 1], rp = [0, 0], scatter = 4 : i64}>>
// WIDE-SAME: tensor<128x128xf32, #rtensor.layout<{cores = 4 : i64, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>> {t10.idle = "operand", t10.order = array<i64: 1, 0>, t10.weight}
// NARROW: @main(
// NARROW-SAME: tensor<128x128xf32, #rtensor.layout<{cores = 4 : i64, fs = [4, 1], ft = [1, 1], rp = [0, 0], scatter = 4 : i64}>>

// The model's input is handed in as its first reader wants it, each of the 4 cores of a row with a chunk of 128 elements; a
// core needs 4 rows of 128, 2048 bytes, and has 512 of them.
// CHECK: "rtensor.relayout"(%{{.*}}) {bytes = 1536 : i64
// CHECK-SAME: scatter = 4
// CHECK-SAME: -> tensor<16x128xf32, #rtensor.layout<{cores = 4 : i64, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>>
// WIDE-NOT: rtensor.setup
// NARROW: "rtensor.setup"(%{{.*}}) {bytes = 12288 : i64
// CHECK: rtensor.operator
// WIDE: rtensor.idle_level = 1
// NARROW: rtensor.idle_level = 4
// CHECK-SAME: rtensor.plan = #rtensor.plan<{
// CHECK-SAME: f_op = [4, 4, 1]

// h lies 4 x 32 on each core; the second product needs rows of 128 again.
// CHECK: "rtensor.relayout"(%{{.*}}) {bytes = 1536 : i64
// CHECK-SAME: fs = [4, 4]{{.*}} -> {{.*}}fs = [4, 1]
// NARROW: "rtensor.setup"
// CHECK: rtensor.operator
// CHECK-NOT: rtensor.candidates
// CHECK-NOT: rtensor.forced
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
