// RUN: t10-opt --t10-partition="chip=test-4 f-op=2,2,1 ft=1x1x2,1x1x2,1x1x1" --t10-expand %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-4 f-op=2,2,1 ft=1x1x2,1x1x2,1x1x1" --t10-expand --t10-verify-plan %s | filecheck %s

// x * x^T reads x by rows and by columns of the result. A core holds both parts and turns both: two operands, two moves, two
// shifts, although it is one value. The rows are copied, though they lie where they are read: what rests does not turn.
// CHECK: %[[X:.*]] = "rtensor.resident"(%arg0) : (tensor<4x6xf32>) -> tensor<4x6xf32, #[[ROWS:.*]]>
// CHECK: %[[LEFT:.*]] = "rtensor.relayout"(%[[X]]) : (tensor<4x6xf32, #[[ROWS]]>) -> tensor<4x6xf32, #[[ROWS]]>
// CHECK-NEXT: %[[RIGHT:.*]] = "rtensor.relayout"(%[[X]]) : (tensor<4x6xf32, #[[ROWS]]>) -> tensor<4x6xf32, #[[COLUMNS:.*]]>
// CHECK: scf.for %{{.*}} iter_args(%[[L:.*]] = %[[LEFT]], %[[R:.*]] = %[[RIGHT]], %{{.*}} = %{{.*}}) ->
// CHECK-NEXT: %[[P:.*]] = "rtensor.position"
// CHECK-NEXT: %[[L1:.*]] = "rtensor.shift"(%[[L]], %[[P]]) {axis = 2 : i64}
// CHECK-NEXT: %[[R1:.*]] = "rtensor.shift"(%[[R]], %[[P]]) {axis = 2 : i64}
// CHECK: ins(%[[L1]], %[[R1]] : tensor<4x6xf32, #[[ROWS]]>, tensor<4x6xf32, #[[COLUMNS]]>)
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x4xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel","parallel","reduction"]} ins(%x, %x : tensor<4x6xf32>, tensor<4x6xf32>) outs(%i : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}
