// The modules that tampering edits (see support/tampering.py): each under its name and the options that plan it.

// paper: --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1"
// The product of the paper; B is a weight that rotates in its place of rest and goes home; sums are rounded to f16.
func.func @main(%a: tensor<2x6xf16>, %b: tensor<6x3xf16> {t10.weight}) -> tensor<2x3xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<2x3xf16>
  %i = linalg.fill ins(%zero : f16) outs(%e : tensor<2x3xf16>) -> tensor<2x3xf16>
  %c = linalg.matmul ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%i : tensor<2x3xf16>) -> tensor<2x3xf16>
  return %c : tensor<2x3xf16>
}
// -----
// square: --t10-partition="chip=test-16 f-op=2,2,1 ft=1x1x2,1x1x2,1x1x1"
// Both operands rotate along one axis.
func.func @main(%a: tensor<6x6xf16>, %b: tensor<6x6xf16>) -> tensor<6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x6xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<6x6xf32>) -> tensor<6x6xf32>
  %c = linalg.matmul ins(%a, %b : tensor<6x6xf16>, tensor<6x6xf16>) outs(%i : tensor<6x6xf32>) -> tensor<6x6xf32>
  return %c : tensor<6x6xf32>
}
// -----
// crossed: --t10-partition="chip=test-16 f-op=2,2,1 ft=1x1x2,1x1x2,1x1x1"
// Products that want their operands stored in different orders: each transposes one on its way.
func.func @main(%a: tensor<6x6xf16>, %b: tensor<6x6xf16>) -> (tensor<6x6xf32>, tensor<6x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x6xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<6x6xf32>) -> tensor<6x6xf32>
  %c = linalg.matmul ins(%a, %b : tensor<6x6xf16>, tensor<6x6xf16>) outs(%i : tensor<6x6xf32>) -> tensor<6x6xf32>
  %d = linalg.matmul ins(%b, %a : tensor<6x6xf16>, tensor<6x6xf16>) outs(%i : tensor<6x6xf32>) -> tensor<6x6xf32>
  return %c, %d : tensor<6x6xf32>, tensor<6x6xf32>
}
// -----
// two_axes: --t10-partition="chip=test-16 f-op=3,4,1 ft=1x1x4,1x3x1,1x1x1"
// Two loops: B rotates along n in 3 steps, A along k in 4, to and fro.
func.func @main(%a: tensor<6x8xf32>, %b: tensor<8x12xf32> {t10.weight}) -> tensor<6x12xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x12xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<6x12xf32>) -> tensor<6x12xf32>
  %c = linalg.matmul ins(%a, %b : tensor<6x8xf32>, tensor<8x12xf32>) outs(%i : tensor<6x12xf32>) -> tensor<6x12xf32>
  return %c : tensor<6x12xf32>
}
// -----
// not_divisible: --t10-partition="chip=test-16 f-op=6,1,1 ft=1x1x1,1x3x2,1x1x1"
// One operand rotates along two axes, by factors 3 and 2 of extents 7 and 5, which are padded.
func.func @main(%a: tensor<6x5xf16>, %b: tensor<5x7xf16>) -> tensor<6x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x7xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<6x7xf32>) -> tensor<6x7xf32>
  %c = linalg.matmul ins(%a, %b : tensor<6x5xf16>, tensor<5x7xf16>) outs(%i : tensor<6x7xf32>) -> tensor<6x7xf32>
  return %c : tensor<6x7xf32>
}
// -----
// rotating_output: --t10-partition="chip=test-16 f-op=2,1,4 ft=1x1x1,1x2x1,1x2x1"
// Partial results rotate along n; two copies of each are summed at the end.
func.func @main(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x4xf16>) outs(%i : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}
// -----
// scatter: --t10-partition="chip=test-16 f-op=2,2,4 ft=1x1x1,1x1x2,1x1x1"
// Reduce-scatter of a product, then a bias on the chunks.
#ij = affine_map<(i, j) -> (i, j)>
#j = affine_map<(i, j) -> (j)>
func.func @main(%a: tensor<8x8xf16>, %b: tensor<8x8xf16> {t10.weight}, %v: tensor<8xf32> {t10.weight}) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x8xf16>) outs(%i : tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = linalg.generic {indexing_maps = [#ij, #j, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%c, %v : tensor<8x8xf32>, tensor<8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.subf %x, %y : f32
    linalg.yield %s : f32
  } -> tensor<8x8xf32>
  return %d : tensor<8x8xf32>
}
// -----
// all: --t10-partition="chip=test-16 f-op=2,2,4 ft=1x1x1,1x1x1,1x1x1"
// REPLACE reduce = "scatter" by reduce = "all"
// All-reduce of a product.
func.func @main(%a: tensor<4x8xf16>, %b: tensor<8x4xf16>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x8xf16>, tensor<8x4xf16>) outs(%i : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %c : tensor<4x4xf32>
}
// -----
// relayouts: --t10-partition="chip=test-16 f-op=4,2,1 ft=1x1x2,1x1x1,1x1x1 operator=first" --t10-partition="chip=test-16 f-op=2,4,1 ft=1x1x1,1x1x2,1x1x1 operator=second"
// Two products that cut their common tensor in different ways.
func.func @main(%a: tensor<4x6xf16>, %b: tensor<6x6xf16> {t10.weight}, %c: tensor<6x4xf16> {t10.weight}) -> tensor<4x4xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x6xf16>
  %f = tensor.empty() : tensor<4x4xf16>
  %i = linalg.fill ins(%zero : f16) outs(%e : tensor<4x6xf16>) -> tensor<4x6xf16>
  %j = linalg.fill ins(%zero : f16) outs(%f : tensor<4x4xf16>) -> tensor<4x4xf16>
  %h = linalg.matmul ins(%a, %b : tensor<4x6xf16>, tensor<6x6xf16>) outs(%i : tensor<4x6xf16>) -> tensor<4x6xf16> loc("first")
  %r = linalg.matmul ins(%h, %c : tensor<4x6xf16>, tensor<6x4xf16>) outs(%j : tensor<4x4xf16>) -> tensor<4x4xf16> loc("second")
  return %r : tensor<4x4xf16>
}
// -----
// in_place: --t10-partition="chip=test-16 f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1 operator=product" --t10-partition="chip=test-16 f-op=4,4 ft=1x1,1x1 operator=sums"
// A product is read where it lies by the operator that adds its rows.
func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x8xf32> {t10.weight}) -> tensor<8xf32> {
  %z = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<8x8xf32>
  %i0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<8x8xf32>) -> tensor<8x8xf32>
  %h = linalg.matmul ins(%x, %w : tensor<8x16xf32>, tensor<16x8xf32>) outs(%i0 : tensor<8x8xf32>) -> tensor<8x8xf32> loc("product")
  %e1 = tensor.empty() : tensor<8xf32>
  %i1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.reduce ins(%h : tensor<8x8xf32>) outs(%i1 : tensor<8xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %r = arith.addf %acc, %in : f32
      linalg.yield %r : f32
    } loc("sums")
  return %s : tensor<8xf32>
}
// -----
// setups: --t10-partition="chip=test-16 f-op=4,2,1 ft=1x1x1,1x1x4,1x1x1"
// Weights at rest take less than where they are read: they are set up, and one of them rotates.
// REPLACE idle_level = 1 by idle_level = 0
func.func @main(%a: tensor<8x8xf16>, %b: tensor<8x6xf16> {t10.weight}) -> tensor<8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x6xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<8x6xf32>) -> tensor<8x6xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x6xf16>) outs(%i : tensor<8x6xf32>) -> tensor<8x6xf32>
  return %c : tensor<8x6xf32>
}
// -----
// convolution: --t10-partition="chip=test-16 f-op=2,4,1,1,1,1 ft=1x1x1x2x1x1,1x1x1x2x1x1,1x1x1x1x1x1"
// A border of one, channels in a ring of two.
func.func @main(%x: tensor<1x2x4x4xf16>, %w: tensor<4x2x3x3xf16> {t10.weight}) -> tensor<1x4x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %none : f16
  } : tensor<1x2x4x4xf16> to tensor<1x2x6x6xf16>
  %e = tensor.empty() : tensor<1x4x4x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : tensor<1x2x6x6xf16>, tensor<4x2x3x3xf16>) outs(%i : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return %r : tensor<1x4x4x4xf32>
}
// -----
// strided: --t10-partition="chip=test-16 f-op=2,3,1,1,1"
// A depthwise convolution of stride two: windows of neighbours overlap.
func.func @main(%x: tensor<1x4x7x7xf16>, %w: tensor<4x3x3xf16> {t10.weight}) -> tensor<1x4x3x3xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x4x3x3xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  %r = linalg.depthwise_conv_2d_nchw_chw {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %w : tensor<1x4x7x7xf16>, tensor<4x3x3xf16>) outs(%i : tensor<1x4x3x3xf32>) -> tensor<1x4x3x3xf32>
  return %r : tensor<1x4x3x3xf32>
}
// -----
// pooling: --t10-partition="chip=test-16 f-op=2,3,1,2,1"
// The greatest of every window of 2 x 2; rows of windows are split over cores and combined.
func.func @main(%x: tensor<1x2x6x6xf32>) -> tensor<1x2x3x3xf32> {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<1x2x3x3xf32>
  %k = tensor.empty() : tensor<2x2xf32>
  %i = linalg.fill ins(%low : f32) outs(%e : tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  %r = linalg.pooling_nchw_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
    ins(%x, %k : tensor<1x2x6x6xf32>, tensor<2x2xf32>) outs(%i : tensor<1x2x3x3xf32>) -> tensor<1x2x3x3xf32>
  return %r : tensor<1x2x3x3xf32>
}
// -----
// gather: --t10-partition="chip=test-16 f-op=3,2,1 ft=1x1x1,1x1x3,1x1x1"
// Rows of a table that rotates over three cores.
#one = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
func.func @main(%a: tensor<6x4xf32> {t10.weight}, %i: tensor<3xi64>) -> tensor<3x4xf32> {
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.generic {indexing_maps = [#one, #all], iterator_types = ["parallel", "parallel"]}
    ins(%i : tensor<3xi64>) outs(%e : tensor<3x4xf32>) {
  ^bb0(%p: i64, %o: f32):
    %column = linalg.index 1 : index
    %x = arith.index_cast %p : i64 to index
    %u = tensor.extract %a[%x, %column] : tensor<6x4xf32>
    linalg.yield %u : f32
  } -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}
// -----
// epilogue: --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1"
// A product with a bias, a residual and a rectifier behind it.
#ij = affine_map<(i, j) -> (i, j)>
#j = affine_map<(i, j) -> (j)>
func.func @main(%a: tensor<4x6xf16>, %b: tensor<6x6xf16> {t10.weight}, %v: tensor<6xf16> {t10.weight}, %h: tensor<4x6xf16>) -> tensor<4x6xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x6xf16>
  %i = linalg.fill ins(%zero : f16) outs(%e : tensor<4x6xf16>) -> tensor<4x6xf16>
  %c = linalg.matmul ins(%a, %b : tensor<4x6xf16>, tensor<6x6xf16>) outs(%i : tensor<4x6xf16>) -> tensor<4x6xf16>
  %d = linalg.generic {indexing_maps = [#ij, #j, #ij, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%c, %v, %h : tensor<4x6xf16>, tensor<6xf16>, tensor<4x6xf16>) outs(%e : tensor<4x6xf16>) {
  ^bb0(%x: f16, %y: f16, %z: f16, %o: f16):
    %s = arith.addf %x, %y : f16
    %t = arith.subf %s, %z : f16
    %m = arith.maximumf %t, %zero : f16
    linalg.yield %m : f16
  } -> tensor<4x6xf16>
  return %d : tensor<4x6xf16>
}
// -----
// views: --t10-partition="chip=test-16 f-op=2,4,1 ft=1x1x2,1x1x1,1x1x1 operator=product"
// A product of parts of two inputs that are concatenated, sliced and reshaped.
func.func @main(%a: tensor<2x4xf16>, %b: tensor<3x4xf16>, %w: tensor<8x4xf16> {t10.weight}) -> (tensor<2x4xf32>, tensor<4x2xf32>) {
  %zero = arith.constant 0.0 : f32
  %c = tensor.concat dim(0) %a, %b : (tensor<2x4xf16>, tensor<3x4xf16>) -> tensor<5x4xf16>
  %s = tensor.extract_slice %c[1, 0] [4, 4] [1, 1] : tensor<5x4xf16> to tensor<4x4xf16>
  %f = tensor.collapse_shape %s [[0, 1]] : tensor<4x4xf16> into tensor<16xf16>
  %g = tensor.expand_shape %f [[0, 1]] output_shape [2, 8] : tensor<16xf16> into tensor<2x8xf16>
  %e = tensor.empty() : tensor<2x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  %r = linalg.matmul ins(%g, %w : tensor<2x8xf16>, tensor<8x4xf16>) outs(%i : tensor<2x4xf32>) -> tensor<2x4xf32> loc("product")
  %t = tensor.empty() : tensor<4x2xf32>
  %u = linalg.transpose ins(%r : tensor<2x4xf32>) outs(%t : tensor<4x2xf32>) permutation = [1, 0]
  return %r, %u : tensor<2x4xf32>, tensor<4x2xf32>
}
// -----
// cast: --t10-partition="chip=test-16 f-op=4,1,2 ft=1x1x1,1x1x1,1x1x1 operator=product" --t10-partition="chip=test-16 f-op=4,1,1 ft=1x1x1,1x1x1 operator=sums"
// REPLACE reduce = "scatter" by reduce = "all"
// Neighbours in a row are summed; the row is seen as pairs where it lies.
#ijk = affine_map<(i, j, k) -> (i, j, k)>
#ij = affine_map<(i, j, k) -> (i, j)>
func.func @main(%a: tensor<4x6xf32>, %b: tensor<6x4xf32>) -> tensor<4x2xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x4xf32>) outs(%i : tensor<4x4xf32>) -> tensor<4x4xf32> loc("product")
  %g = tensor.expand_shape %c [[0], [1, 2]] output_shape [4, 2, 2] : tensor<4x4xf32> into tensor<4x2x2xf32>
  %f = tensor.empty() : tensor<4x2xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<4x2xf32>) -> tensor<4x2xf32>
  %d = linalg.generic {indexing_maps = [#ijk, #ij], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%g : tensor<4x2x2xf32>) outs(%j : tensor<4x2xf32>) {
  ^bb0(%x: f32, %acc: f32):
    %s = arith.addf %acc, %x : f32
    linalg.yield %s : f32
  } -> tensor<4x2xf32> loc("sums")
  return %d : tensor<4x2xf32>
}
// -----
// softmax: --t10-partition="chip=test-4"
// A maximum, differences to it and their sum, as the planner plans them.
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %l = linalg.fill ins(%low : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x8xf32>) outs(%l : tensor<4xf32>) {
  ^bb0(%in: f32, %acc: f32):
    %r = arith.maximumf %acc, %in : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
    ins(%x, %m : tensor<4x8xf32>, tensor<4xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%in: f32, %top: f32, %acc: f32):
    %d = arith.subf %in, %top : f32
    %r = arith.addf %acc, %d : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %s : tensor<4xf32>
}
// -----
// integers: --t10-partition="chip=test-16 f-op=2,2 ft=1x1,1x1,1x1"
// Comparisons and selections of integers; a constant table stands beside an input.
#ij = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<4x4xi32>) -> tensor<4x4xi32> {
  %t = arith.constant dense<[[1, 2, 3, 4], [0, 5, 1, 2], [3, 1, 0, 2], [2, 2, 1, 0]]> : tensor<4x4xi32>
  %two = arith.constant 2 : i32
  %e = tensor.empty() : tensor<4x4xi32>
  %r = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
    ins(%x, %t : tensor<4x4xi32>, tensor<4x4xi32>) outs(%e : tensor<4x4xi32>) {
  ^bb0(%a: i32, %b: i32, %o: i32):
    %less = arith.cmpi slt, %a, %b : i32
    %m = arith.muli %a, %two : i32
    %s = arith.select %less, %m, %b : i32
    %r = arith.addi %s, %b : i32
    linalg.yield %r : i32
  } -> tensor<4x4xi32>
  return %r : tensor<4x4xi32>
}
// -----
// batches: --t10-partition="chip=test-16 f-op=2,1,2,2 ft=1x1x1x2,1x1x1x1,1x1x1x1"
// A product per batch whose reduction is split over cores and in time.
func.func @main(%a: tensor<2x4x8xf16>, %b: tensor<2x8x4xf16>) -> tensor<2x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x4x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %c = linalg.batch_matmul ins(%a, %b : tensor<2x4x8xf16>, tensor<2x8x4xf16>) outs(%i : tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return %c : tensor<2x4x4xf32>
}
