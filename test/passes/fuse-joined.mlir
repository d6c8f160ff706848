// RUN: t10-opt --t10-fuse=orders=keep --split-input-file %s | filecheck %s

// Scores of a query with a cache and one key that a step appends: both products have the mask behind them, cut.
// CHECK-LABEL: func.func @scores
// CHECK-SAME: %[[Q:arg0]]: {{.*}}, %[[PAST:arg1]]: {{.*}}, %[[NEW:arg2]]: {{.*}}, %[[MASK:arg3]]:
// CHECK: %[[FIRST:.*]] = tensor.extract_slice %[[MASK]][0, 0] [8, 16383] [1, 1]
// CHECK: %[[A:.*]] = "rtensor.operator"
// CHECK: ins(%[[Q]], %[[PAST]] :
// CHECK: ins({{.*}}, %[[FIRST]] :
// CHECK: %[[LAST:.*]] = tensor.extract_slice %[[MASK]][0, 16383] [8, 1] [1, 1]
// CHECK: %[[B:.*]] = "rtensor.operator"
// CHECK: ins(%[[Q]], %{{.*}} :
// CHECK: ins({{.*}}, %[[LAST]] :
// CHECK: tensor.concat dim(1) %[[A]], %[[B]]
func.func @scores(%q: tensor<8x64xf32>, %past: tensor<8x16383x64xf32>, %k: tensor<8x64xf32>, %mask: tensor<8x16384xf32>) -> tensor<8x16384xf32> {
  %zero = arith.constant 0.0 : f32
  %row = tensor.expand_shape %k [[0], [1, 2]] output_shape [8, 1, 64] : tensor<8x64xf32> into tensor<8x1x64xf32>
  %all = tensor.concat dim(1) %past, %row : (tensor<8x16383x64xf32>, tensor<8x1x64xf32>) -> tensor<8x16384x64xf32>
  %e = tensor.empty() : tensor<8x16384xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16384xf32>) -> tensor<8x16384xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, j, d) -> (b, d)>, affine_map<(b, j, d) -> (b, j, d)>,
    affine_map<(b, j, d) -> (b, j)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%q, %all : tensor<8x64xf32>, tensor<8x16384x64xf32>) outs(%init : tensor<8x16384xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<8x16384xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, j) -> (b, j)>, affine_map<(b, j) -> (b, j)>, affine_map<(b, j) -> (b, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%s, %mask : tensor<8x16384xf32>, tensor<8x16384xf32>) outs(%e : tensor<8x16384xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %sum = arith.addf %a, %m : f32
    linalg.yield %sum : f32
  } -> tensor<8x16384xf32>
  return %r : tensor<8x16384xf32>
}

// -----

// Values weighted by probabilities, one of them appended: what is new is added behind the sum over the cache.
// CHECK-LABEL: func.func @values
// CHECK-SAME: %[[P:arg0]]: {{.*}}, %[[PAST:arg1]]: {{.*}}, %[[NEW:arg2]]:
// CHECK-DAG: %[[FIRST:.*]] = tensor.extract_slice %[[P]][0, 0] [8, 16383] [1, 1]
// CHECK-DAG: %[[LAST:.*]] = tensor.extract_slice %[[P]][0, 16383] [8, 1] [1, 1]
// CHECK: "rtensor.operator"
// CHECK: ins(%[[FIRST]], %[[PAST]] :
// CHECK: ins(%{{.*}}, %[[LAST]], %{{.*}} :
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK: kind = "contraction"
// CHECK-NOT: tensor.concat
func.func @values(%p: tensor<8x16384xf32>, %past: tensor<8x16383x64xf32>, %v: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %row = tensor.expand_shape %v [[0], [1, 2]] output_shape [8, 1, 64] : tensor<8x64xf32> into tensor<8x1x64xf32>
  %all = tensor.concat dim(1) %past, %row : (tensor<8x16383x64xf32>, tensor<8x1x64xf32>) -> tensor<8x16384x64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, d, j) -> (b, j)>, affine_map<(b, d, j) -> (b, j, d)>,
    affine_map<(b, d, j) -> (b, d)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%p, %all : tensor<8x16384xf32>, tensor<8x16384x64xf32>) outs(%init : tensor<8x64xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}

// -----

// A small cache is copied: that takes less time than one more product.
// CHECK-LABEL: func.func @small
// CHECK: tensor.concat
// CHECK-NOT: tensor.extract_slice
func.func @small(%p: tensor<8x512xf32>, %past: tensor<8x511x64xf32>, %v: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %row = tensor.expand_shape %v [[0], [1, 2]] output_shape [8, 1, 64] : tensor<8x64xf32> into tensor<8x1x64xf32>
  %all = tensor.concat dim(1) %past, %row : (tensor<8x511x64xf32>, tensor<8x1x64xf32>) -> tensor<8x512x64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, d, j) -> (b, j)>, affine_map<(b, d, j) -> (b, j, d)>,
    affine_map<(b, d, j) -> (b, d)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%p, %all : tensor<8x512xf32>, tensor<8x512x64xf32>) outs(%init : tensor<8x64xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %m = arith.mulf %x, %y : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x64xf32>
  return %r : tensor<8x64xf32>
}

// -----

// Queries and keys of one tensor times one factor: one operator, of which both are slices.
// CHECK-LABEL: func.func @alike
// CHECK: %[[ALL:.*]] = tensor.concat dim(0)
// CHECK: linalg.generic {{.*}} ins(%[[ALL]], %arg1 :
// CHECK-NOT: linalg.generic
// CHECK: return
// CHECK-LABEL: func.func @other
// CHECK-COUNT-2: linalg.generic
#all = affine_map<(h, d) -> (h, d)>
#row = affine_map<(h, d) -> (d)>
func.func @alike(%y: tensor<6x8xf32>, %c: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<2x8xf32>) {
  %q = tensor.extract_slice %y[0, 0] [4, 8] [1, 1] : tensor<6x8xf32> to tensor<4x8xf32>
  %k = tensor.extract_slice %y[4, 0] [2, 8] [1, 1] : tensor<6x8xf32> to tensor<2x8xf32>
  %eq = tensor.empty() : tensor<4x8xf32>
  %ek = tensor.empty() : tensor<2x8xf32>
  %qs = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%q, %c : tensor<4x8xf32>, tensor<8xf32>) outs(%eq : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<4x8xf32>
  %ks = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%k, %c : tensor<2x8xf32>, tensor<8xf32>) outs(%ek : tensor<2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<2x8xf32>
  return %qs, %ks : tensor<4x8xf32>, tensor<2x8xf32>
}

func.func @other(%y: tensor<4x8xf32>, %z: tensor<2x8xf32>, %c: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<2x8xf32>) {
  %eq = tensor.empty() : tensor<4x8xf32>
  %ek = tensor.empty() : tensor<2x8xf32>
  %qs = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%y, %c : tensor<4x8xf32>, tensor<8xf32>) outs(%eq : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<4x8xf32>
  %ks = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel"]} ins(%z, %c : tensor<2x8xf32>, tensor<8xf32>) outs(%ek : tensor<2x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<2x8xf32>
  return %qs, %ks : tensor<4x8xf32>, tensor<2x8xf32>
}
