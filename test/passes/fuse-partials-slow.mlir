// RUN: t10-opt --t10-fuse="partials=f16 chip=test-4" %s | filecheck %s
// RUN: t10-opt --t10-fuse="partials=mixed chip=test-4" %s | filecheck %s
// RUN: t10-opt --t10-fuse="partials=f16 chip=test-4" --t10-fuse="partials=f16 chip=test-4" %s | filecheck %s
// RUN: t10-opt --t10-fuse="partials=f16 chip=test-4 orders=keep" %s | filecheck %s --check-prefix=KEEP

// Rows of 100 are no whole blocks: sums in f16 take longer here, so they are f32, and rounded with the bias. The result
// is stored as sums in f32 are fastest. Without orders for a chip nothing is counted.
// CHECK-LABEL: func.func @bias
// CHECK: %[[P:.*]] = arith.mulf {{.*}} : f32
// CHECK: arith.addf %{{.*}}, %[[P]] : f32
// CHECK: %[[E:.*]] = arith.extf
// CHECK: %[[S:.*]] = arith.addf %{{.*}}, %[[E]] : f32
// CHECK: arith.truncf %[[S]] : f32 to f16
// CHECK: return
// KEEP-LABEL: func.func @bias
// KEEP-NOT: f32
func.func @bias(%x: tensor<10x100xf16>, %w: tensor<100x100xf16>, %b: tensor<100xf16>) -> tensor<10x100xf16> {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<10x100xf32>
  %narrow = tensor.empty() : tensor<10x100xf16>
  %init = linalg.fill ins(%zero : f32) outs(%wide : tensor<10x100xf32>) -> tensor<10x100xf32>
  %sum = linalg.matmul ins(%x, %w : tensor<10x100xf16>, tensor<100x100xf16>) outs(%init : tensor<10x100xf32>) -> tensor<10x100xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%sum, %b : tensor<10x100xf32>, tensor<100xf16>) outs(%narrow : tensor<10x100xf16>) {
  ^bb0(%p: f32, %q: f16, %o: f16):
    %e = arith.extf %q : f16 to f32
    %s = arith.addf %p, %e : f32
    %r = arith.truncf %s : f32 to f16
    linalg.yield %r : f16
  } -> tensor<10x100xf16>
  return %y : tensor<10x100xf16>
}
