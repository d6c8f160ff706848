// RUN: t10-opt --t10-fuse=orders=keep %s | filecheck %s
// RUN: t10-opt --t10-fuse=orders=keep %s -o %t.mlir
// RUN: t10-opt --t10-fuse=orders=keep %t.mlir | diff %t.mlir -

// Softmax over a row: maximum, reciprocal of the sum of exponentials, product. The exponential is computed where it is
// read, in the sum and in the product: cheaper than a tensor of its own. One division per row is left. The maximum drops
// NaNs, as the sum is one.
// CHECK-LABEL: func.func @softmax
// CHECK: linalg.generic {{.*}}kind = "reduction", op_name = "softmax.max"
// CHECK: arith.maxnumf
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK: kind = "reduction", op_name = "softmax.sum"
// CHECK: linalg.generic {{.*}}kind = "elementwise", op_name = "softmax.mul"
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK-NOT: linalg.generic
// CHECK-NOT: arith.divf
#row = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<4xf32>
  %e2 = tensor.empty() : tensor<4x8xf32>
  %i0 = linalg.fill ins(%lowest : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %max = linalg.reduce { arith.maximumf } ins(%x : tensor<4x8xf32>) outs(%i0 : tensor<4xf32>) dimensions = [1] loc("softmax")
  %exp = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x, %max : tensor<4x8xf32>, tensor<4xf32>) outs(%e2 : tensor<4x8xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %d = arith.subf %a, %m : f32
    %e = math.exp %d : f32
    linalg.yield %e : f32
  } -> tensor<4x8xf32> loc("softmax")
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.reduce { arith.addf } ins(%exp : tensor<4x8xf32>) outs(%i1 : tensor<4xf32>) dimensions = [1] loc("softmax")
  %r = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]}
    ins(%exp, %sum : tensor<4x8xf32>, tensor<4xf32>) outs(%e2 : tensor<4x8xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %q = arith.divf %a, %s : f32
    linalg.yield %q : f32
  } -> tensor<4x8xf32> loc("softmax")
  return %r : tensor<4x8xf32>
}

// In front of a product every element would be computed once per column: it stays an operator of its own.
// CHECK-LABEL: func.func @before_product
// CHECK: %[[E:.*]] = linalg.generic {{.*}}kind = "elementwise"
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} ins(%[[E]], %arg1
// CHECK-SAME: kind = "contraction"
func.func @before_product(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<4x8xf32>
  %e2 = tensor.empty() : tensor<4x6xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e = linalg.exp ins(%x : tensor<4x8xf32>) outs(%e1 : tensor<4x8xf32>) -> tensor<4x8xf32>
  %r = linalg.matmul ins(%e, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%i : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

// A cast that widens costs nothing in front of a product.
// CHECK-LABEL: func.func @widened
// CHECK-NOT: kind = "elementwise"
// CHECK: linalg.generic {{.*}} ins(%arg0, %arg1 : tensor<4x8xf16>, tensor<8x6xf32>)
// CHECK: arith.extf
// CHECK: arith.mulf
func.func @widened(%x: tensor<4x8xf16>, %w: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e1 = tensor.empty() : tensor<4x8xf32>
  %e2 = tensor.empty() : tensor<4x6xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x6xf32>) -> tensor<4x6xf32>
  %wide = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<4x8xf16>) outs(%e1 : tensor<4x8xf32>) {
  ^bb0(%a: f16, %o: f32):
    %y = arith.extf %a : f16 to f32
    linalg.yield %y : f32
  } -> tensor<4x8xf32>
  %r = linalg.matmul ins(%wide, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%i : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
