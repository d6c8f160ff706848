// RUN: t10-opt --split-input-file --verify-diagnostics --t10-align-pace %s

// What cannot be aligned is refused, and the error says why (exit code 4; 5 where the attribute alone is wrong).

// A ring of 3 cores cannot be made of the 2 cores that share B: the attribute itself is refused.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%a: tensor<2x6xf32>, %b: tensor<6x3xf32>, %init: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{'linalg.generic' op rtensor.candidates[0]: prod(ft[1]) = 3 does not divide the 2 cores that share operand 1}}
  %c = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : tensor<2x6xf32>, tensor<6x3xf32>) outs(%init : tensor<2x3xf32>) attrs = {op_name = "product",
    rtensor.candidates = [#rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 1, 3], [1, 1, 3], [1, 1, 1]]}>]} {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x3xf32>
  return %c : tensor<2x3xf32>
}

// -----

// A has no axis n to rotate along.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%a: tensor<2x6xf32>, %b: tensor<6x3xf32>, %init: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{'linalg.generic' op rtensor.candidates[0]: ft[0][1] = 3, but operand 0 is not indexed by axis 1, expected 1}}
  %c = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : tensor<2x6xf32>, tensor<6x3xf32>) outs(%init : tensor<2x3xf32>) attrs = {op_name = "product",
    rtensor.candidates = [#rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 3, 1], [1, 1, 1], [1, 1, 1]]}>]} {
  ^bb0(%x: f32, %y: f32, %acc: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<2x3xf32>
  return %c : tensor<2x3xf32>
}

// -----

// kh (kx: the window axis of a convolution over one dim) is a position inside the window: too short to rotate along, and every window would need a halo of its own.
#x = affine_map<(f, h, c, kh) -> (c, h + kh)>
#w = affine_map<(f, h, c, kh) -> (f, c, kh)>
#o = affine_map<(f, h, c, kh) -> (f, h)>
func.func @main(%x: tensor<2x14xf32>, %w: tensor<6x2x3xf32>, %init: tensor<6x12xf32>) -> tensor<6x12xf32> {
  // expected-error @+1 {{'linalg.generic' op rtensor.candidates[0]: operand 0 is cut 3x in time along axis 3, along which it cannot rotate}}
  %c = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : tensor<2x14xf32>, tensor<6x2x3xf32>) outs(%init : tensor<6x12xf32>) attrs = {op_name = "conv",
    rtensor.candidates = [#rtensor.plan<{f_op = [3, 1, 1, 1], ft = [[1, 1, 1, 3], [1, 1, 1, 1], [1, 1, 1, 1]]}>]} {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<6x12xf32>
  return %c : tensor<6x12xf32>
}

// -----

// h + kh moves in whole blocks, halo included, so all that rotates along h must have blocks of one length: 12/2 is not 12/3.
// The output lacks c and kh, whose 2 * 3 cores share it.
#x = affine_map<(f, h, c, kh) -> (c, h + kh)>
#w = affine_map<(f, h, c, kh) -> (f, c, kh)>
#o = affine_map<(f, h, c, kh) -> (f, h)>
func.func @main(%x: tensor<2x14xf32>, %w: tensor<6x2x3xf32>, %init: tensor<6x12xf32>) -> tensor<6x12xf32> {
  // expected-error @+1 {{'linalg.generic' op rtensor.candidates[0]: axis 1 is cut [2, 3] times in time, but a dim over several axes rotates along it in whole blocks, so all factors must be equal}}
  %c = linalg.generic {indexing_maps = [#x, #w, #o], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
    ins(%x, %w : tensor<2x14xf32>, tensor<6x2x3xf32>) outs(%init : tensor<6x12xf32>) attrs = {op_name = "conv",
    rtensor.candidates = [#rtensor.plan<{f_op = [2, 1, 2, 3], ft = [[1, 2, 1, 1], [1, 1, 1, 1], [1, 3, 1, 1]]}>]} {
  ^bb0(%a: f32, %b: f32, %acc: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<6x12xf32>
  return %c : tensor<6x12xf32>
}
