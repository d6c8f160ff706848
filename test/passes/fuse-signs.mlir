// RUN: t10-opt --t10-fuse=orders=keep --split-input-file %s | filecheck %s
// RUN: t10-opt --t10-fuse=orders=keep --t10-fuse=orders=keep --split-input-file %s | filecheck %s
// RUN: t10-opt --t10-fuse --split-input-file %s | filecheck %s --check-prefix=LITTLE

// Rotary embedding of two tensors: what turns halves is a view, and the factor that both share is negated once.
// CHECK-LABEL: func.func @rotary(
// CHECK-SAME: %[[X:[a-z0-9]*]]: tensor<3x4x8xf16>, %[[Z:[a-z0-9]*]]: tensor<3x4x8xf16>, %[[S:[a-z0-9]*]]: tensor<4x8xf16>)
// CHECK-COUNT-1: arith.negf
// On 1,472 cores it is little for both to multiply by signs.
// LITTLE-LABEL: func.func @rotary(
// LITTLE-NOT: arith.negf
// LITTLE-COUNT-4: arith.mulf
// LITTLE: return
// CHECK-NOT: arith.negf
#all = affine_map<(h, i, d) -> (h, i, d)>
#row = affine_map<(h, i, d) -> (i, d)>
func.func @rotary(%x: tensor<3x4x8xf16>, %z: tensor<3x4x8xf16>, %s: tensor<4x8xf16>) -> (tensor<3x4x8xf16>, tensor<3x4x8xf16>) {
  %half = tensor.empty() : tensor<3x4x4xf16>
  %whole = tensor.empty() : tensor<3x4x8xf16>
  %xa = tensor.extract_slice %x[0, 0, 0] [3, 4, 4] [1, 1, 1] : tensor<3x4x8xf16> to tensor<3x4x4xf16>
  %xb = tensor.extract_slice %x[0, 0, 4] [3, 4, 4] [1, 1, 1] : tensor<3x4x8xf16> to tensor<3x4x4xf16>
  %za = tensor.extract_slice %z[0, 0, 0] [3, 4, 4] [1, 1, 1] : tensor<3x4x8xf16> to tensor<3x4x4xf16>
  %zb = tensor.extract_slice %z[0, 0, 4] [3, 4, 4] [1, 1, 1] : tensor<3x4x8xf16> to tensor<3x4x4xf16>
  %xn = linalg.negf ins(%xb : tensor<3x4x4xf16>) outs(%half : tensor<3x4x4xf16>) -> tensor<3x4x4xf16>
  %zn = linalg.negf ins(%zb : tensor<3x4x4xf16>) outs(%half : tensor<3x4x4xf16>) -> tensor<3x4x4xf16>
  %xc = tensor.concat dim(2) %xn, %xa : (tensor<3x4x4xf16>, tensor<3x4x4xf16>) -> tensor<3x4x8xf16>
  %zc = tensor.concat dim(2) %zn, %za : (tensor<3x4x4xf16>, tensor<3x4x4xf16>) -> tensor<3x4x8xf16>
  %xr = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%xc, %s : tensor<3x4x8xf16>, tensor<4x8xf16>) outs(%whole : tensor<3x4x8xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %p = arith.mulf %a, %b : f16
    linalg.yield %p : f16
  } -> tensor<3x4x8xf16>
  %zr = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%zc, %s : tensor<3x4x8xf16>, tensor<4x8xf16>) outs(%whole : tensor<3x4x8xf16>) {
  ^bb0(%a: f16, %b: f16, %o: f16):
    %p = arith.mulf %b, %a : f16
    linalg.yield %p : f16
  } -> tensor<3x4x8xf16>
  return %xr, %zr : tensor<3x4x8xf16>, tensor<3x4x8xf16>
}

// -----

// What is returned, and what a factor of its own size multiplies, stays as it is.
// CHECK-LABEL: func.func @returned
// CHECK: arith.negf
// CHECK: tensor.concat
// CHECK-NOT: arith.negf
// CHECK-LABEL: func.func @large
// CHECK: arith.negf
// CHECK: tensor.concat
// CHECK: arith.mulf
// CHECK-NOT: tensor.concat
func.func @returned(%a: tensor<4x4xf16>, %b: tensor<4x4xf16>, %s: tensor<8xf16>) -> (tensor<4x8xf16>, tensor<4x8xf16>) {
  %half = tensor.empty() : tensor<4x4xf16>
  %whole = tensor.empty() : tensor<4x8xf16>
  %n = linalg.negf ins(%b : tensor<4x4xf16>) outs(%half : tensor<4x4xf16>) -> tensor<4x4xf16>
  %c = tensor.concat dim(1) %n, %a : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x8xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, d) -> (i, d)>, affine_map<(i, d) -> (d)>, affine_map<(i, d) -> (i, d)>], iterator_types = ["parallel", "parallel"]} ins(%c, %s : tensor<4x8xf16>, tensor<8xf16>) outs(%whole : tensor<4x8xf16>) {
  ^bb0(%p: f16, %q: f16, %o: f16):
    %r = arith.mulf %p, %q : f16
    linalg.yield %r : f16
  } -> tensor<4x8xf16>
  return %c, %y : tensor<4x8xf16>, tensor<4x8xf16>
}

func.func @large(%a: tensor<4x4xf16>, %b: tensor<4x4xf16>, %s: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %half = tensor.empty() : tensor<4x4xf16>
  %whole = tensor.empty() : tensor<4x8xf16>
  %n = linalg.negf ins(%b : tensor<4x4xf16>) outs(%half : tensor<4x4xf16>) -> tensor<4x4xf16>
  %c = tensor.concat dim(1) %n, %a : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x8xf16>
  %y = linalg.mul ins(%c, %s : tensor<4x8xf16>, tensor<4x8xf16>) outs(%whole : tensor<4x8xf16>) -> tensor<4x8xf16>
  return %y : tensor<4x8xf16>
}

// -----

// A factor of another product as well keeps its sign there.
// CHECK-LABEL: func.func @shared(
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<4x4xf16>, %[[B:[a-z0-9]*]]: tensor<4x4xf16>, %[[X:[a-z0-9]*]]: tensor<4x8xf16>, %[[S:[a-z0-9]*]]: tensor<8xf16>)
// CHECK: %[[C:.*]] = tensor.concat dim(1) %[[B]], %[[A]]
// CHECK: %[[T:.*]] = tensor.concat dim(0)
// CHECK: ins(%[[C]], %[[T]], %[[X]], %[[S]] :
// CHECK-NEXT: ^bb0(%[[c:[a-z0-9_]*]]: f16, %[[t:[a-z0-9_]*]]: f16, %[[x:[a-z0-9_]*]]: f16, %[[s:[a-z0-9_]*]]: f16,
// CHECK-NEXT: arith.mulf %[[c]], %[[t]] : f16
// CHECK-NEXT: arith.mulf %[[x]], %[[s]] : f16
func.func @shared(%a: tensor<4x4xf16>, %b: tensor<4x4xf16>, %x: tensor<4x8xf16>, %s: tensor<8xf16>) -> tensor<4x8xf16> {
  %half = tensor.empty() : tensor<4x4xf16>
  %whole = tensor.empty() : tensor<4x8xf16>
  %n = linalg.negf ins(%b : tensor<4x4xf16>) outs(%half : tensor<4x4xf16>) -> tensor<4x4xf16>
  %c = tensor.concat dim(1) %n, %a : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x8xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, d) -> (i, d)>, affine_map<(i, d) -> (i, d)>, affine_map<(i, d) -> (d)>, affine_map<(i, d) -> (i, d)>], iterator_types = ["parallel", "parallel"]} ins(%c, %x, %s : tensor<4x8xf16>, tensor<4x8xf16>, tensor<8xf16>) outs(%whole : tensor<4x8xf16>) {
  ^bb0(%p: f16, %q: f16, %r: f16, %o: f16):
    %1 = arith.mulf %p, %r : f16
    %2 = arith.mulf %q, %r : f16
    %3 = arith.addf %1, %2 : f16
    linalg.yield %3 : f16
  } -> tensor<4x8xf16>
  return %y : tensor<4x8xf16>
}
