module @jit_f {
  func.func public @main(%arg0: tensor<4x8xf32> loc("x"), %arg1: tensor<20x3xf32> loc("w.out")) -> (tensor<4x3xf32>) {
    %w = stablehlo.constant dense<0.5> : tensor<8x20xf32>
    %0 = stablehlo.dot_general %arg0, %w, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x20xf32>) -> tensor<4x20xf32>
    %1 = call @activation(%0) : (tensor<4x20xf32>) -> tensor<4x20xf32>
    %2 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [0]
      : (tensor<4x20xf32>, tensor<20x3xf32>) -> tensor<4x3xf32>
    return %2 : tensor<4x3xf32>
  }
  func.func private @activation(%arg0: tensor<4x20xf32>) -> tensor<4x20xf32> {
    %0 = chlo.erf %arg0 : tensor<4x20xf32> -> tensor<4x20xf32>
    %1 = stablehlo.maximum %0, %arg0 : tensor<4x20xf32>
    return %1 : tensor<4x20xf32>
  }
}
// -----
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x5xf32>) -> tensor<8xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<2x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
// -----
func.func @main(%a: tensor<2x4x4x3xf32>, %w: tensor<3x3x3x8xf32>) -> tensor<2x2x8xf32> {
  %0 = stablehlo.convolution(%a, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {stride = [2, 2], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x4x4x3xf32>, tensor<3x3x3x8xf32>) -> tensor<2x2x2x8xf32>
  %1 = stablehlo.slice %0 [0:2, 0:1, 0:2, 0:8] : (tensor<2x2x2x8xf32>) -> tensor<2x1x2x8xf32>
  %2 = stablehlo.reshape %1 : (tensor<2x1x2x8xf32>) -> tensor<2x2x8xf32>
  %3 = stablehlo.transpose %2, dims = [1, 0, 2] : (tensor<2x2x8xf32>) -> tensor<2x2x8xf32>
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %4 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<2x2x8xf32>
  %5 = stablehlo.multiply %3, %4 : tensor<2x2x8xf32>
  return %5 : tensor<2x2x8xf32>
}
