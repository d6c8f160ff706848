// RUN: t10-opt --t10-fuse=partials=mixed --split-input-file %s | filecheck %s
// RUN: t10-opt --t10-fuse=partials=mixed --t10-fuse=partials=mixed --split-input-file %s | filecheck %s

// A product stays in f32 and is rounded to be added: what a core sums in one step is rounded when it is handed on.
// CHECK-LABEL: func.func @product
// CHECK: linalg.generic
// CHECK-SAME: kind = "contraction"
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: %[[R:.*]] = arith.truncf %[[P]] : f32 to f16
// CHECK: arith.addf %{{.*}}, %[[R]] : f16
func.func @product(%x: tensor<16x32xf16>, %w: tensor<32x64xf16>) -> tensor<16x64xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<16x64xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<16x64xf16>) -> tensor<16x64xf16>
  %y = linalg.matmul ins(%x, %w : tensor<16x32xf16>, tensor<32x64xf16>) outs(%init : tensor<16x64xf16>) -> tensor<16x64xf16>
  return %y : tensor<16x64xf16>
}

// -----

// A bias is added in f16, behind the sum.
// CHECK-LABEL: func.func @bias
// CHECK: rtensor.operator
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: arith.addf %{{.*}} : f16
// CHECK: arith.addf %{{.*}} : f16
func.func @bias(%x: tensor<16x32xf16>, %w: tensor<32x64xf16>, %b: tensor<64xf16>) -> tensor<16x64xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<16x64xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<16x64xf16>) -> tensor<16x64xf16>
  %sum = linalg.matmul ins(%x, %w : tensor<16x32xf16>, tensor<32x64xf16>) outs(%init : tensor<16x64xf16>) -> tensor<16x64xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%sum, %b : tensor<16x64xf16>, tensor<64xf16>) outs(%empty : tensor<16x64xf16>) {
  ^bb0(%p: f16, %c: f16, %o: f16):
    %r = arith.addf %p, %c : f16
    linalg.yield %r : f16
  } -> tensor<16x64xf16>
  return %y : tensor<16x64xf16>
}

// -----

// The engine takes eight rows in one pass with f32 sums: products of so few stay in f32.
// CHECK-LABEL: func.func @few_rows
// CHECK: arith.addf %{{.*}} : f32
func.func @few_rows(%x: tensor<8x32xf16>, %w: tensor<32x64xf16>) -> tensor<8x64xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<8x64xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<8x64xf16>) -> tensor<8x64xf16>
  %y = linalg.matmul ins(%x, %w : tensor<8x32xf16>, tensor<32x64xf16>) outs(%init : tensor<8x64xf16>) -> tensor<8x64xf16>
  return %y : tensor<8x64xf16>
}

// -----

// Reductions are summed in f32.
// CHECK-LABEL: func.func @reduction
// CHECK: arith.addf %{{.*}} : f32
func.func @reduction(%x: tensor<16x32xf16>) -> tensor<16xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<16xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<16xf16>) -> tensor<16xf16>
  %y = linalg.reduce ins(%x : tensor<16x32xf16>) outs(%init : tensor<16xf16>) dimensions = [1]
    (%in: f16, %acc: f16) {
      %r = arith.addf %in, %acc : f16
      linalg.yield %r : f16
    }
  return %y : tensor<16xf16>
}

// -----

// Nor do products of so few rows in a batch.
// CHECK-LABEL: func.func @few_rows_in_a_batch
// CHECK: arith.addf %{{.*}} : f32
func.func @few_rows_in_a_batch(%x: tensor<12x2x64xf16>, %w: tensor<12x64x32xf16>) -> tensor<12x2x32xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<12x2x32xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<12x2x32xf16>) -> tensor<12x2x32xf16>
  %y = linalg.batch_matmul ins(%x, %w : tensor<12x2x64xf16>, tensor<12x64x32xf16>) outs(%init : tensor<12x2x32xf16>) -> tensor<12x2x32xf16>
  return %y : tensor<12x2x32xf16>
}

// -----

// Windows of which the other factor knows nothing: a sum of it times one feature is as any other.
// CHECK-LABEL: func.func @windows_of_one_factor
// CHECK: rtensor.operator
func.func @windows_of_one_factor(%x: tensor<80xf16>, %w: tensor<12xf16>, %n: tensor<21xf16>) -> tensor<12x60xf16> {
  %z = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<12x60xf16>
  %i = linalg.fill ins(%z : f16) outs(%e : tensor<12x60xf16>) -> tensor<12x60xf16>
  %c = linalg.generic {indexing_maps = [affine_map<(f, i, k) -> (i + k)>, affine_map<(f, i, k) -> (f)>, affine_map<(f, i, k) -> (k)>, affine_map<(f, i, k) -> (f, i)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%x, %w, %n : tensor<80xf16>, tensor<12xf16>, tensor<21xf16>) outs(%i : tensor<12x60xf16>) {
    ^bb0(%a: f16, %b: f16, %u: f16, %s: f16):
      %m = arith.mulf %a, %b : f16
      %t = arith.addf %s, %m : f16
      linalg.yield %t : f16
  } -> tensor<12x60xf16>
  return %c : tensor<12x60xf16>
}
