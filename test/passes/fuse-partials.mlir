// RUN: t10-opt --t10-fuse=partials=f16 %s | filecheck %s
// RUN: t10-opt --t10-fuse=partials=f16 --t10-fuse=partials=f16 %s | filecheck %s
// RUN: t10-opt --t10-fuse %s | filecheck %s --check-prefix=WIDE
// RUN: t10-opt --t10-fuse="partials=auto partials-tolerance=1.4e-3" %s | filecheck %s --check-prefix=AUTO
// RUN: t10-opt --t10-fuse="partials=auto partials-tolerance=1" %s | filecheck %s --check-prefix=LOOSE
// RUN: not t10-opt --t10-fuse="partials=auto partials-tolerance=-1" %s 2>&1 | filecheck %s --check-prefix=NEGATIVE
// RUN: not t10-opt --t10-fuse=partials=f64 %s 2>&1 | filecheck %s --check-prefix=BAD

// NEGATIVE: the tolerance of partials is -1.0 (expected a number of at least 0)
// BAD: partials is 'f64' (expected f32, mixed, f16 or auto)

// A product of f16 summed in f32 and rounded at once, as importers write it: the sum is kept in f16.
// CHECK-LABEL: func.func @rounded
// CHECK: %[[P:.*]] = arith.mulf %{{.*}}, %{{.*}} : f16
// CHECK: arith.addf %{{.*}}, %[[P]] : f16
// CHECK-NOT: f32
// WIDE-LABEL: func.func @rounded
// WIDE: arith.addf {{.*}} : f32
// WIDE: arith.truncf
func.func @rounded(%x: tensor<4x8xf16>, %w: tensor<8x6xf16>) -> tensor<4x6xf16> {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<4x6xf32>
  %narrow = tensor.empty() : tensor<4x6xf16>
  %init = linalg.fill ins(%zero : f32) outs(%wide : tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = linalg.matmul ins(%x, %w : tensor<4x8xf16>, tensor<8x6xf16>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%sum : tensor<4x6xf32>) outs(%narrow : tensor<4x6xf16>) {
  ^bb0(%p: f32, %o: f16):
    %r = arith.truncf %p : f32 to f16
    linalg.yield %r : f16
  } -> tensor<4x6xf16>
  return %y : tensor<4x6xf16>
}

// A sum of f16 is not widened either.
// CHECK-LABEL: func.func @plain
// CHECK-NOT: f32
// WIDE-LABEL: func.func @plain
// WIDE: arith.extf
func.func @plain(%x: tensor<4x8xf16>, %w: tensor<8x6xf16>) -> tensor<4x6xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<4x6xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<4x6xf16>) -> tensor<4x6xf16>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf16>, tensor<8x6xf16>) outs(%init : tensor<4x6xf16>) -> tensor<4x6xf16>
  return %y : tensor<4x6xf16>
}

// A result that is f32, and terms that are, stay f32.
// CHECK-LABEL: func.func @wide_result
// CHECK: arith.addf {{.*}} : f32
// CHECK: return %{{.*}} : tensor<4x6xf32>
func.func @wide_result(%x: tensor<4x8xf16>, %w: tensor<8x6xf16>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf16>, tensor<8x6xf16>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// A bias that is added before the total is rounded is added in f16 too.
// CHECK-LABEL: func.func @bias
// CHECK: arith.mulf {{.*}} : f16
// CHECK: arith.addf %{{.*}}, %{{.*}} : f16
// CHECK: arith.addf %{{.*}}, %{{.*}} : f16
// CHECK-NOT: f32
func.func @bias(%x: tensor<4x8xf16>, %w: tensor<8x6xf16>, %b: tensor<6xf16>) -> tensor<4x6xf16> {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<4x6xf32>
  %narrow = tensor.empty() : tensor<4x6xf16>
  %init = linalg.fill ins(%zero : f32) outs(%wide : tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = linalg.matmul ins(%x, %w : tensor<4x8xf16>, tensor<8x6xf16>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%sum, %b : tensor<4x6xf32>, tensor<6xf16>) outs(%narrow : tensor<4x6xf16>) {
  ^bb0(%p: f32, %q: f16, %o: f16):
    %e = arith.extf %q : f16 to f32
    %s = arith.addf %p, %e : f32
    %r = arith.truncf %s : f32 to f16
    linalg.yield %r : f16
  } -> tensor<4x6xf16>
  return %y : tensor<4x6xf16>
}

// What multiplies the wide total needs it wide.
// CHECK-LABEL: func.func @scaled
// CHECK: arith.addf {{.*}} : f32
// CHECK: arith.mulf {{.*}} : f32
// CHECK: arith.truncf
func.func @scaled(%x: tensor<4x8xf16>, %w: tensor<8x6xf16>) -> tensor<4x6xf16> {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %wide = tensor.empty() : tensor<4x6xf32>
  %narrow = tensor.empty() : tensor<4x6xf16>
  %init = linalg.fill ins(%zero : f32) outs(%wide : tensor<4x6xf32>) -> tensor<4x6xf32>
  %sum = linalg.matmul ins(%x, %w : tensor<4x8xf16>, tensor<8x6xf16>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%sum : tensor<4x6xf32>) outs(%narrow : tensor<4x6xf16>) {
  ^bb0(%p: f32, %o: f16):
    %s = arith.mulf %p, %half : f32
    %r = arith.truncf %s : f32 to f16
    linalg.yield %r : f16
  } -> tensor<4x6xf16>
  return %y : tensor<4x6xf16>
}

// sqrt(8) 2^-11 = 1.381e-3 is within 1.4e-3, sqrt(9) 2^-11 = 1.465e-3 is not.
// AUTO-LABEL: func.func @lengths
// AUTO: arith.addf {{.*}} : f16
// AUTO: arith.addf {{.*}} : f32
// CHECK-LABEL: func.func @lengths
// CHECK-NOT: f32
func.func @lengths(%x: tensor<4x8xf16>, %w: tensor<8x9xf16>, %v: tensor<9x6xf16>) -> tensor<4x6xf16> {
  %zero = arith.constant 0.0 : f16
  %small = tensor.empty() : tensor<4x9xf16>
  %empty = tensor.empty() : tensor<4x6xf16>
  %first = linalg.fill ins(%zero : f16) outs(%small : tensor<4x9xf16>) -> tensor<4x9xf16>
  %second = linalg.fill ins(%zero : f16) outs(%empty : tensor<4x6xf16>) -> tensor<4x6xf16>
  %h = linalg.matmul ins(%x, %w : tensor<4x8xf16>, tensor<8x9xf16>) outs(%first : tensor<4x9xf16>) -> tensor<4x9xf16>
  %y = linalg.matmul ins(%h, %v : tensor<4x9xf16>, tensor<9x6xf16>) outs(%second : tensor<4x6xf16>) -> tensor<4x6xf16>
  return %y : tensor<4x6xf16>
}

// Reductions are not for auto.
// AUTO-LABEL: func.func @total
// AUTO: arith.addf {{.*}} : f32
// CHECK-LABEL: func.func @total
// CHECK: arith.addf {{.*}} : f16
func.func @total(%x: tensor<4x2xf16>) -> tensor<4xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<4xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<4xf16>) -> tensor<4xf16>
  %sum = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x2xf16>) outs(%init : tensor<4xf16>) {
  ^bb0(%e: f16, %acc: f16):
    %total = arith.addf %acc, %e : f16
    linalg.yield %total : f16
  } -> tensor<4xf16>
  return %sum : tensor<4xf16>
}

// Two rows by 512 terms: the engine takes both rows in one pass with f32 sums, and there is nothing to gain. The weights are
// broadcast over the rows, as importers write it; the bias is added in f32 then. Nine rows are worth it.
// LOOSE-LABEL: func.func @few_rows
// LOOSE: arith.addf {{.*}} : f32
// LOOSE: arith.addf {{.*}} : f32
// LOOSE: arith.truncf
func.func @few_rows(%x: tensor<2x1x512xf16>, %w: tensor<512x16xf16>, %b: tensor<16xf16>) -> tensor<2x1x16xf16> {
  %zero = arith.constant 0.0 : f16
  %many = tensor.empty() : tensor<2x512x16xf16>
  %empty = tensor.empty() : tensor<2x1x16xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<2x1x16xf16>) -> tensor<2x1x16xf16>
  %ws = linalg.broadcast ins(%w : tensor<512x16xf16>) outs(%many : tensor<2x512x16xf16>) dimensions = [0]
  %p = linalg.batch_matmul ins(%x, %ws : tensor<2x1x512xf16>, tensor<2x512x16xf16>)
    outs(%init : tensor<2x1x16xf16>) -> tensor<2x1x16xf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, j, k)>, affine_map<(i, j, k) -> (k)>,
    affine_map<(i, j, k) -> (i, j, k)>], iterator_types = ["parallel", "parallel", "parallel"]}
    ins(%p, %b : tensor<2x1x16xf16>, tensor<16xf16>) outs(%empty : tensor<2x1x16xf16>) {
  ^bb0(%e: f16, %c: f16, %o: f16):
    %r = arith.addf %e, %c : f16
    linalg.yield %r : f16
  } -> tensor<2x1x16xf16>
  return %y : tensor<2x1x16xf16>
}

// LOOSE-LABEL: func.func @nine_rows
// LOOSE: arith.addf {{.*}} : f16
func.func @nine_rows(%x: tensor<9x512xf16>, %w: tensor<512x16xf16>) -> tensor<9x16xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<9x16xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<9x16xf16>) -> tensor<9x16xf16>
  %y = linalg.matmul ins(%x, %w : tensor<9x512xf16>, tensor<512x16xf16>) outs(%init : tensor<9x16xf16>) -> tensor<9x16xf16>
  return %y : tensor<9x16xf16>
}
