// RUN: t10-opt --t10-fuse=orders=keep %s | filecheck %s

// Bias and ReLU read the product once per point, so they become its epilogue: one operator instead of three.
// CHECK-LABEL: func.func @linear
// CHECK-NOT: linalg.generic
// CHECK: %[[OUT:.*]] = "rtensor.operator"() ({
// CHECK: linalg.fill
// CHECK: %[[ROOT:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 :
// CHECK: %[[END:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel"]} ins(%[[ROOT]], %arg2 :
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK: "rtensor.yield"(%[[END]])
// CHECK: kind = "contraction", op_name = "fc"} : () -> tensor<4x6xf32>
// CHECK: return %[[OUT]]
func.func @linear(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32> loc("fc")
  %biased = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%product, %b : tensor<4x6xf32>, tensor<6xf32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  %relu = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%biased : tensor<4x6xf32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = arith.maximumf %p, %zero : f32
    linalg.yield %m : f32
  } -> tensor<4x6xf32>
  return %relu : tensor<4x6xf32>
}

// A product read twice keeps its result: what follows is an operator of its own.
// CHECK-LABEL: func.func @read_twice
// CHECK: %[[P:.*]] = linalg.generic {{.*}}{kind = "contraction"
// CHECK: %[[E:.*]] = linalg.generic {{.*}} ins(%[[P]] {{.*}}{kind = "elementwise"
// CHECK: return %[[P]], %[[E]]
func.func @read_twice(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %e = linalg.exp ins(%product : tensor<4x6xf32>) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %product, %e : tensor<4x6xf32>, tensor<4x6xf32>
}

// Starting from a bias instead of zeros is the same as adding it afterwards.
// CHECK-LABEL: func.func @bias_as_start
// CHECK: "rtensor.operator"() ({
// CHECK: linalg.fill
// CHECK: ins(%arg0, %arg1 :
// CHECK: arith.addf
// CHECK: ins(%{{.*}}, %arg2 :
// CHECK: arith.addf
// CHECK: kind = "contraction"
func.func @bias_as_start(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%b : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %product : tensor<4x6xf32>
}

// Sums of f16 are kept in f32 and rounded once, as the hardware does.
// CHECK-LABEL: func.func @wide_sum
// CHECK: "rtensor.operator"() ({
// CHECK: ins(%arg0 :
// CHECK: arith.extf
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.truncf
// CHECK: kind = "reduction"
func.func @wide_sum(%x: tensor<4x8xf16>) -> tensor<4xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<4xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<4xf16>) -> tensor<4xf16>
  %sum = linalg.reduce { arith.addf } ins(%x : tensor<4x8xf16>) outs(%init : tensor<4xf16>) dimensions = [1]
  return %sum : tensor<4xf16>
}

// What a sum subtracts is a sum of negatives, whichever way it is written: an operator with an epilogue like others.
// CHECK-LABEL: func.func @sum_of_negatives
// CHECK: "rtensor.operator"() ({
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: arith.subf %out, %in : f32
// CHECK: math.exp
// CHECK: kind = "reduction", op_name = "
func.func @sum_of_negatives(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x8xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %s = arith.subf %acc, %a : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %e = linalg.exp ins(%sum : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %e : tensor<4xf32>
}

// A residual is added behind the product. If rows of the sum are normalised, it is read again and again, by whole rows: the sum
// is an operator of its own then, and lies as those read it.
// CHECK-LABEL: func.func @residual
// CHECK: "rtensor.operator"
// CHECK: kind = "contraction"
// CHECK-NOT: kind = "elementwise"
// CHECK: return
func.func @residual(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %r: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = linalg.add ins(%product, %r : tensor<4x6xf32>, tensor<4x6xf32>) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %sum : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @normalised_residual
// CHECK: %[[P:.*]] = linalg.generic {{.*}}{kind = "contraction"
// CHECK: %[[S:.*]] = linalg.generic {{.*}} ins(%[[P]], %arg2 : {{.*}}{kind = "elementwise"
// CHECK: %[[M:.*]] = linalg.generic {{.*}} ins(%[[S]] : {{.*}}{kind = "reduction"
// CHECK: linalg.generic {{.*}} ins(%[[S]], %[[M]] : {{.*}}{kind = "elementwise"
func.func @normalised_residual(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %r: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = linalg.add ins(%product, %r : tensor<4x6xf32>, tensor<4x6xf32>) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %rows = tensor.empty() : tensor<4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %total = linalg.reduce { arith.addf } ins(%sum : tensor<4x6xf32>) outs(%i : tensor<4xf32>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%sum, %total : tensor<4x6xf32>, tensor<4xf32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.divf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// Rows of a sum of it and another tensor are not its own rows: the residual is added behind the product.
// CHECK-LABEL: func.func @summed_residual
// CHECK: "rtensor.operator"
// CHECK: kind = "contraction"
// CHECK-NOT: kind = "elementwise"
// CHECK: kind = "reduction"
// CHECK: kind = "contraction"
// CHECK: return
func.func @summed_residual(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %r: tensor<4x6xf32>, %c: tensor<4x6xf32>, %v: tensor<6x2xf32>) -> (tensor<4xf32>, tensor<4x2xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = linalg.add ins(%product, %r : tensor<4x6xf32>, tensor<4x6xf32>) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %both = linalg.add ins(%sum, %c : tensor<4x6xf32>, tensor<4x6xf32>) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %rows = tensor.empty() : tensor<4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%rows : tensor<4xf32>) -> tensor<4xf32>
  %total = linalg.reduce { arith.addf } ins(%both : tensor<4x6xf32>) outs(%i : tensor<4xf32>) dimensions = [1]
  %few = tensor.empty() : tensor<4x2xf32>
  %j = linalg.fill ins(%zero : f32) outs(%few : tensor<4x2xf32>) -> tensor<4x2xf32>
  %y = linalg.matmul ins(%sum, %v : tensor<4x6xf32>, tensor<6x2xf32>) outs(%j : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %total, %y : tensor<4xf32>, tensor<4x2xf32>
}

// The rounding of the product's sum stays with the product: half as much is moved.
// CHECK-LABEL: func.func @rounded_residual
// CHECK: %[[P:.*]] = "rtensor.operator"
// CHECK: arith.truncf
// CHECK: kind = "contraction", op_name = {{.*}} -> tensor<4x6xf16>
// CHECK: linalg.generic {{.*}} ins(%[[P]], %arg2 : tensor<4x6xf16>, tensor<4x6xf16>) {{.*}}{kind = "elementwise"
func.func @rounded_residual(%x: tensor<4x8xf16>, %w: tensor<8x6xf16>, %r: tensor<4x6xf16>) -> tensor<4x6xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<4x6xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<4x6xf16>) -> tensor<4x6xf16>
  %product = linalg.matmul ins(%x, %w : tensor<4x8xf16>, tensor<8x6xf16>) outs(%init : tensor<4x6xf16>) -> tensor<4x6xf16>
  %sum = linalg.add ins(%product, %r : tensor<4x6xf16>, tensor<4x6xf16>) outs(%empty : tensor<4x6xf16>) -> tensor<4x6xf16>
  %rows = tensor.empty() : tensor<4xf16>
  %i = linalg.fill ins(%zero : f16) outs(%rows : tensor<4xf16>) -> tensor<4xf16>
  %total = linalg.reduce { arith.addf } ins(%sum : tensor<4x6xf16>) outs(%i : tensor<4xf16>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%sum, %total : tensor<4x6xf16>, tensor<4xf16>) outs(%empty : tensor<4x6xf16>) {
  ^bb0(%p: f16, %q: f16, %o: f16):
    %s = arith.divf %p, %q : f16
    linalg.yield %s : f16
  } -> tensor<4x6xf16>
  return %y : tensor<4x6xf16>
}
