// RUN: t10-opt --t10-fuse %s | filecheck %s
// RUN: t10-opt --t10-fuse %s | t10-opt --t10-fuse | filecheck %s

#v = affine_map<(i) -> (i)>
#m = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// What is computed of constants alone is one constant, through broadcasts, and no operator.
// CHECK-LABEL: func.func @main
// CHECK: %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-NOT: linalg.fill
// CHECK: linalg.generic
// CHECK-SAME: op_name
// CHECK: arith.mulf %{{.*}}, %[[TWO]] : f32
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @main(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %c = arith.constant 0.25 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]} ins(%f : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.rsqrt %a : f32
    linalg.yield %0 : f32
  } -> tensor<4xf32>
  %e2 = tensor.empty() : tensor<3x4xf32>
  %y = linalg.generic {indexing_maps = [#m, #row, #m], iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : tensor<3x4xf32>, tensor<4xf32>) outs(%e2 : tensor<3x4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.mulf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
