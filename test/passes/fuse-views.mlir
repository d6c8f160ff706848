// RUN: t10-opt --t10-fuse=orders=keep %s | filecheck %s

// A transposed and broadcast operand is read through an index map: nothing is copied.
// CHECK-DAG: #[[WINDOW:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (0, d2, d0 * 2 + d3, d1 * 2 + d4)>
// CHECK-DAG: #[[WEIGHT:.*]] = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
// CHECK-LABEL: func.func @transposed
// CHECK-NOT: linalg.transpose
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[WEIGHT]], #{{.*}}]
// CHECK-SAME: ins(%arg0, %arg1 : tensor<2x4x8xf32>, tensor<6x8xf32>)
// CHECK-SAME: kind = "contraction"
func.func @transposed(%x: tensor<2x4x8xf32>, %w: tensor<6x8xf32>) -> tensor<2x4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8x6xf32>
  %t = linalg.transpose ins(%w : tensor<6x8xf32>) outs(%e0 : tensor<8x6xf32>) permutation = [1, 0]
  %e1 = tensor.empty() : tensor<2x8x6xf32>
  %b = linalg.broadcast ins(%t : tensor<8x6xf32>) outs(%e1 : tensor<2x8x6xf32>) dimensions = [0]
  %e2 = tensor.empty() : tensor<2x4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e2 : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %r = linalg.batch_matmul ins(%x, %b : tensor<2x4x8xf32>, tensor<2x8x6xf32>) outs(%init : tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  return %r : tensor<2x4x6xf32>
}

// Heads merged for a batched product and split again for the mask: the product gets an axis per dim, so that the mask,
// which is the same for all 4 heads, can follow it.
// CHECK-LABEL: func.func @masked_scores
// CHECK-SAME: %[[Q:arg0]]: tensor<2x4x3x8xf32>, %[[K:arg1]]: tensor<2x4x8x5xf32>, %[[MASK:arg2]]: tensor<2x5xf32>
// CHECK-NOT: tensor.collapse_shape
// CHECK: "rtensor.operator"() ({
// CHECK: iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%[[Q]], %[[K]] :
// CHECK: ins(%{{.*}}, %[[MASK]] :
// CHECK: kind = "contraction"
func.func @masked_scores(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x8x5xf32>, %mask: tensor<2x5xf32>) -> tensor<2x4x3x5xf32> {
  %zero = arith.constant 0.0 : f32
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x4x3x8xf32> into tensor<8x3x8xf32>
  %k3 = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x4x8x5xf32> into tensor<8x8x5xf32>
  %e = tensor.empty() : tensor<8x3x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<8x3x5xf32>) -> tensor<8x3x5xf32>
  %s3 = linalg.batch_matmul ins(%q3, %k3 : tensor<8x3x8xf32>, tensor<8x8x5xf32>) outs(%init : tensor<8x3x5xf32>) -> tensor<8x3x5xf32>
  %s = tensor.expand_shape %s3 [[0, 1], [2], [3]] output_shape [2, 4, 3, 5] : tensor<8x3x5xf32> into tensor<2x4x3x5xf32>
  %e4 = tensor.empty() : tensor<2x4x3x5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(b, h, m, n) -> (b, h, m, n)>, affine_map<(b, h, m, n) -> (b, n)>,
    affine_map<(b, h, m, n) -> (b, h, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
    ins(%s, %mask : tensor<2x4x3x5xf32>, tensor<2x5xf32>) outs(%e4 : tensor<2x4x3x5xf32>) {
  ^bb0(%a: f32, %m: f32, %o: f32):
    %sum = arith.addf %a, %m : f32
    linalg.yield %sum : f32
  } -> tensor<2x4x3x5xf32>
  return %r : tensor<2x4x3x5xf32>
}

// Dims of extent 1 are no loops: they are the constant 0 of an index.
// CHECK-LABEL: func.func @unit_dims
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%arg0 : tensor<1x8x1xf32>)
func.func @unit_dims(%x: tensor<1x8x1xf32>) -> tensor<1x8x1xf32> {
  %e = tensor.empty() : tensor<1x8x1xf32>
  %r = linalg.exp ins(%x : tensor<1x8x1xf32>) outs(%e : tensor<1x8x1xf32>) -> tensor<1x8x1xf32>
  return %r : tensor<1x8x1xf32>
}

// The padding of a convolution stays in front of it; its one output row keeps its loop, which the window needs.
// CHECK-LABEL: func.func @one_row
// CHECK: tensor.pad %arg0
// CHECK: linalg.generic {indexing_maps = [#[[WINDOW]],
// CHECK-SAME: kind = "convolution"
func.func @one_row(%x: tensor<1x3x2x6xf32>, %w: tensor<1x3x3x3xf32>) -> tensor<1x1x1x3xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x3x2x6xf32> to tensor<1x3x4x8xf32>
  %e = tensor.empty() : tensor<1x1x1x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1x1x3xf32>) -> tensor<1x1x1x3xf32>
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%p, %w : tensor<1x3x4x8xf32>, tensor<1x3x3x3xf32>) outs(%init : tensor<1x1x1x3xf32>) -> tensor<1x1x1x3xf32>
  return %r : tensor<1x1x1x3xf32>
}
