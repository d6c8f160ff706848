// RUN: t10-opt --t10-fuse=partials=f16 %s | filecheck %s
// RUN: t10-opt --t10-fuse=partials=f16 --t10-fuse=partials=f16 %s | filecheck %s
// RUN: t10-opt --t10-fuse %s | filecheck %s --check-prefix=WIDE
// RUN: not t10-opt --t10-fuse=partials=f64 %s 2>&1 | filecheck %s --check-prefix=BAD

// BAD: partials is 'f64' (expected f32 or f16)

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
