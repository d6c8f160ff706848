// RUN: t10-opt --split-input-file --verify-diagnostics --t10-partition="chip=test-16" %s

// Operations without a meaning here are located errors (exit code 3), never something that is planned wrongly.

// expected-error @+1 {{argument 1 is index (expected a ranked tensor)}}
func.func @f(%x: tensor<4x8xf32>, %i: index) -> f32 {
  %y = tensor.extract %x[%i, %i] : tensor<4x8xf32>
  return %y : f32
}

// -----

func.func @f(%x: tensor<4x8xf32>) -> f32 {
  %i = arith.constant 0 : index
  // expected-error @+1 {{tensor.extract cannot be planned (expected linalg.generic, rtensor.operator or a tensor view)}}
  %y = tensor.extract %x[%i, %i] : tensor<4x8xf32>
  return %y : f32
}

// -----

func.func @f(%x: tensor<4x8xf32>, %none: tensor<4x0xf32>) -> tensor<4x8xf32> {
  // expected-error @-1 {{tensor tensor<4x0xf32> has no elements (expected extents of at least 1)}}
  %y = tensor.concat dim(1) %x, %none : (tensor<4x8xf32>, tensor<4x0xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

func.func @f(%x: tensor<4x8xf32>) -> tensor<4x0xf32> {
  // expected-error @+1 {{tensor tensor<4x0xf32> has no elements (expected extents of at least 1)}}
  %y = tensor.extract_slice %x[0, 0] [4, 0] [1, 1] : tensor<4x8xf32> to tensor<4x0xf32>
  return %y : tensor<4x0xf32>
}

// -----

func.func @f(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  // expected-error @-1 {{tensor tensor<4x?xf32> has a dynamic shape (expected static extents)}}
  return %x : tensor<4x?xf32>
}

// -----

#x = affine_map<(i, j) -> (i, j)>
#o = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<4x8xf32>, %init: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{the reduction body ends in arith.subf on f32 (expected the old result combined by one of arith.addf}}
  %y = linalg.generic {indexing_maps = [#x, #o], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x8xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    // The old result less a point is a sum; a point less the old result depends on the order of points.
    %r = arith.subf %a, %acc : f32
    linalg.yield %r : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

#x = affine_map<(i, j) -> (i, j)>
#o = affine_map<(i, j) -> (i)>
func.func @f(%x: tensor<4x8xi8>, %init: tensor<4xi8>) -> tensor<4xi8> {
  // Cores compare signed: the unsigned maximum of 0x80 and 0x01 would come out as 0x01.
  // expected-error @+1 {{the reduction body ends in arith.maxui on i8}}
  %y = linalg.generic {indexing_maps = [#x, #o], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x8xi8>) outs(%init : tensor<4xi8>) {
  ^bb0(%a: i8, %acc: i8):
    %r = arith.maxui %acc, %a : i8
    linalg.yield %r : i8
  } -> tensor<4xi8>
  return %y : tensor<4xi8>
}

// -----

#x = affine_map<(i) -> (-i + 7)>
#o = affine_map<(i) -> (i)>
func.func @f(%x: tensor<8xf32>, %init: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{runs backwards (expected non-negative coefficients)}}
  %y = linalg.generic {indexing_maps = [#x, #o], iterator_types = ["parallel"]}
    ins(%x : tensor<8xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = math.exp %a : f32
    linalg.yield %r : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

#x = affine_map<(i) -> (i)>
func.func @f(%x: tensor<8xbf16>, %init: tensor<8xbf16>) -> tensor<8xbf16> {
  // expected-error @-1 {{element type bf16 is not supported (expected one of f16, f32}}
  %y = linalg.generic {indexing_maps = [#x, #x], iterator_types = ["parallel"]}
    ins(%x : tensor<8xbf16>) outs(%init : tensor<8xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %r = math.exp %a : bf16
    linalg.yield %r : bf16
  } -> tensor<8xbf16>
  return %y : tensor<8xbf16>
}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<12xf32> {
  // expected-error @+1 {{tensor.pad with a computed value}}
  %y = tensor.pad %x low[2] high[2] {
  ^bb0(%i: index):
    %j = arith.index_cast %i : index to i32
    %v = arith.sitofp %j : i32 to f32
    tensor.yield %v : f32
  } : tensor<8xf32> to tensor<12xf32>
  return %y : tensor<12xf32>
}

// -----

func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
// expected-error @+1 {{module has 2 functions with a body (expected one): @f, @g (keep one of them: t10-opt --t10-flatten=entry=f)}}
func.func @g(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
