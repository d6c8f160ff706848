// RUN: t10-opt --t10-partition="chip=test-16 f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1" --t10-reconcile %s | filecheck %s --check-prefixes=CHECK,WIDE
// RUN: t10-opt --t10-partition="chip=%S/Inputs/narrow-16.yaml f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1" --t10-reconcile %s | filecheck %s --check-prefixes=CHECK,NARROW
// RUN: t10-opt --t10-partition="chip=test-16 f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1" --t10-reconcile --t10-reconcile %s | filecheck %s --check-prefixes=CHECK,WIDE
// RUN: t10-opt --t10-partition="chip=test-16 f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1" --t10-expand %s | filecheck %s --check-prefix=WIDE-MOVES
// RUN: t10-opt --t10-partition="chip=%S/Inputs/narrow-16.yaml f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1" --t10-expand %s | filecheck %s --check-prefix=NARROW-MOVES

// Two matrix products on 4 x 4 cores. Four cores share every column block of a weight: 128 x 32 in f32 are 16 KiB,
// stored column by column (the summed axis is innermost).
// With 604 KiB both lie ready on every core (idle level 1: as they are used): no setup.
// In 29 KiB they do not. A core then keeps one of 4 chunks, 4 KiB of each (idle level 4), and setup fetches the others.
// Both at rest and one in use: 4 + 4 + 16 = 24 KiB.
// CHECK: #[[PLAN:plan.*]] = #rtensor.plan<{{.*}}f_op = [4, 4, 1]
// CHECK: linalg.generic
// WIDE-SAME: rtensor.idle_level = 1
// NARROW-SAME: rtensor.idle_level = 4
// CHECK-SAME: rtensor.plan = #[[PLAN]]}
// CHECK: linalg.generic
// WIDE-SAME: rtensor.idle_level = 1
// NARROW-SAME: rtensor.idle_level = 4
// CHECK-NOT: rtensor.candidates
// CHECK-NOT: rtensor.forced

// What that means for values: the model's input rests in 4 chunks, as its first reader wants it; h lies 4 x 32 on each core,
// and the second product needs rows of 128 again.
// WIDE-MOVES-DAG: #[[H:.*]] = #rtensor.layout<{{.*}}fs = [4, 4]
// WIDE-MOVES-DAG: #[[X:.*]] = #rtensor.layout<{{.*}}fs = [4, 1], {{.*}}scatter = 4
// WIDE-MOVES: #[[ROWS:.*]] = #rtensor.layout<{{.*}}fs = [4, 1], {{.*}}rp = [0, 0]}>
// WIDE-MOVES-NOT: rtensor.setup
// WIDE-MOVES: "rtensor.relayout"(%{{.*}}) : (tensor<20x128xf32, #[[X]]>) -> tensor<20x128xf32
// WIDE-MOVES: "rtensor.relayout"(%{{.*}}) : (tensor<20x128xf32, #[[H]]>) -> tensor<20x128xf32
// WIDE-MOVES-NOT: rtensor.setup
// NARROW-MOVES: #[[W:.*]] = #rtensor.layout<{{.*}}fs = [4, 1], {{.*}}map = #map2, {{.*}}scatter = 4
// NARROW-MOVES-COUNT-2: "rtensor.setup"(%{{.*}}) : (tensor<128x128xf32, #{{.*}}>) -> tensor<128x128xf32
func.func @main(%x: tensor<20x128xf32>, %w0: tensor<128x128xf32> {t10.weight}, %w1: tensor<128x128xf32> {t10.weight})
    -> tensor<20x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<20x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<20x128xf32>) -> tensor<20x128xf32>
  %h = linalg.matmul ins(%x, %w0 : tensor<20x128xf32>, tensor<128x128xf32>) outs(%init : tensor<20x128xf32>)
    -> tensor<20x128xf32>
  %y = linalg.matmul ins(%h, %w1 : tensor<20x128xf32>, tensor<128x128xf32>) outs(%init : tensor<20x128xf32>)
    -> tensor<20x128xf32>
  return %y : tensor<20x128xf32>
}
