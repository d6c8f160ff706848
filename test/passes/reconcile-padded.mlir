// Two tensors that rotate along one axis with factors 3 and 2: k = 7 is padded to 12, the least multiple of both, so a
// partition of A is 12 / 3 = 4 long and the pace 4. The grid says so: the tensors have 7 indices along k.
// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1" --t10-expand --t10-verify-plan %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1" --t10-expand --t10-lower-ipu %s | filecheck %s --check-prefix=IPU

// CHECK: #[[GRID:.*]] = #rtensor.grid<{{.*}}lengths = [1, 1, 12], {{.*}}steps = [1, 1, 3]}>
// CHECK: #[[A:.*]] = #rtensor.layout<#[[GRID]], {fs = [2, 1], ft = [1, 3], {{.*}}rp = [0, 4]}>
// CHECK: #[[B:.*]] = #rtensor.layout<#[[GRID]], {fs = [3, 1], ft = [1, 2], {{.*}}rp = [0, 4]}>
// CHECK-LABEL: func.func @matmul
// CHECK: -> tensor<2x7xf32, #[[A]]>
// CHECK: -> tensor<3x7xf32, #[[B]]>
// IPU: kind = "shift"
func.func @matmul(%a: tensor<2x7xf32>, %b: tensor<7x3xf32> {t10.weight}) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<2x7xf32>, tensor<7x3xf32>) outs(%init : tensor<2x3xf32>) -> tensor<2x3xf32>
  return %c : tensor<2x3xf32>
}
