// RUN: t10-opt --t10-fuse %s | filecheck %s

#one = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>

// Two tables looked up in one body: each gather is an operator of its own, what is left adds their results.
// CHECK-LABEL: func.func @embeddings
// CHECK: %[[A:.*]] = linalg.generic {{.*}}kind = "gather"
// CHECK: tensor.extract %arg0
// CHECK: %[[B:.*]] = linalg.generic {{.*}}kind = "gather"
// CHECK: tensor.extract %arg1
// CHECK: linalg.generic {{.*}} ins(%[[A]], %[[B]] {{.*}}kind = "elementwise"
// CHECK: arith.addf
func.func @embeddings(%a: tensor<10x4xf32>, %b: tensor<6x4xf32>, %i: tensor<3xi64>, %j: tensor<3xi64>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [#one, #one, #all], iterator_types = ["parallel", "parallel"]}
    ins(%i, %j : tensor<3xi64>, tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%p: i64, %q: i64, %o: f32):
    %column = linalg.index 1 : index
    %x = arith.index_cast %p : i64 to index
    %u = tensor.extract %a[%x, %column] : tensor<10x4xf32>
    %y = arith.index_cast %q : i64 to index
    %v = tensor.extract %b[%y, %column] : tensor<6x4xf32>
    %s = arith.addf %u, %v : f32
    linalg.yield %s : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// A gather at a constant place is no gather: the product reads row 2 directly.
// CHECK-LABEL: func.func @row_two
// CHECK-NOT: tensor.extract
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<5x4xf32>, tensor<4x6xf32>)
// CHECK-SAME: kind = "contraction"
func.func @row_two(%x: tensor<5x4xf32>, %w: tensor<4x6xf32>) -> tensor<1x6xf32> {
  %two = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4xf32>
  %row = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<1x4xf32>) {
  ^bb0(%o: f32):
    %column = linalg.index 1 : index
    %u = tensor.extract %x[%two, %column] : tensor<5x4xf32>
    linalg.yield %u : f32
  } -> tensor<1x4xf32>
  %e2 = tensor.empty() : tensor<1x6xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x6xf32>) -> tensor<1x6xf32>
  %r = linalg.matmul ins(%row, %w : tensor<1x4xf32>, tensor<4x6xf32>) outs(%i : tensor<1x6xf32>) -> tensor<1x6xf32>
  return %r : tensor<1x6xf32>
}

// Two results of one operation become two operations; an index result that nothing reads disappears.
// CHECK-LABEL: func.func @max_without_place
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<4xf32>) attrs = {kind = "reduction"
// CHECK-NOT: arith.select
func.func @max_without_place(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %none = arith.constant 0 : i64
  %e0 = tensor.empty() : tensor<4xf32>
  %e1 = tensor.empty() : tensor<4xi64>
  %i0 = linalg.fill ins(%lowest : f32) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
  %i1 = linalg.fill ins(%none : i64) outs(%e1 : tensor<4xi64>) -> tensor<4xi64>
  %r:2 = linalg.generic {indexing_maps = [#all, #one, #one], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x8xf32>) outs(%i0, %i1 : tensor<4xf32>, tensor<4xi64>) {
  ^bb0(%a: f32, %m: f32, %at: i64):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %max = arith.maximumf %a, %m : f32
    %is = arith.cmpf ogt, %a, %m : f32
    %place = arith.select %is, %k, %at : i64
    linalg.yield %max, %place : f32, i64
  } -> (tensor<4xf32>, tensor<4xi64>)
  return %r#0 : tensor<4xf32>
}

// A scalar taken from a tensor is read where it is used: operators read tensors only.
// CHECK-LABEL: func.func @scalar_operand
// CHECK-NOT: tensor.extract
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4xf32>, tensor<f32>)
// CHECK-SAME: kind = "elementwise"
func.func @scalar_operand(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {
  %scale = tensor.extract %s[] : tensor<f32>
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x, %scale : tensor<4xf32>, f32) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}
