// RUN: t10-opt --t10-partition="chip=test-4 f-op=2,2,1 ft=1x1x2,1x1x2,1x1x1" --t10-expand %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-4 f-op=2,2,1 ft=1x1x2,1x1x2,1x1x1" --t10-expand --t10-verify-plan %s | filecheck %s

// x * x^T reads x by rows and by columns of the result. A core holds both parts and turns both: two operands, two moves, two
// shifts, although it is one value.
// CHECK: %[[LEFT:.*]] = "rtensor.relayout"(%arg0)
// CHECK-NEXT: %[[RIGHT:.*]] = "rtensor.relayout"(%arg0)
// CHECK-NEXT: "rtensor.operator"(%[[LEFT]], %[[RIGHT]])
// CHECK: "rtensor.nest"
// CHECK-NEXT: ^bb0(%{{[a-z0-9]+}}: index, %[[L:[a-z0-9]+]]: tensor<4x6xf32, {{[^%]*}}, %[[R:[a-z0-9]+]]: tensor<4x6xf32
// CHECK: ins(%{{.*}}, %{{.*}} : tensor<4x6xf32>, tensor<4x6xf32>)
// CHECK: "rtensor.shift"(%[[L]]) {axis = 1 : i64, direction = "forward", pace = 3 : i64}
// CHECK-NEXT: "rtensor.shift"(%[[R]]) {axis = 1 : i64, direction = "forward", pace = 3 : i64}
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
