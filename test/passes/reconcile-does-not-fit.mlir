// RUN: not t10-opt --t10-reconcile="chip=%S/Inputs/tiny-16.yaml" %s 2>&1 | filecheck %s

// Two weights of 64 KiB over 16 cores take 8 KiB of every core, even at rest; tiny-16 has 10 KiB behind the 20 KiB of code
// and stacks and the shift buffer. One error, at the operator, with bytes needed and bytes available.
// CHECK: reconcile-does-not-fit.mlir:{{[0-9]+}}:8: error: operator 'contraction{{.*}}': needs {{[0-9]+}} bytes per core while it runs, {{[0-9]+}} of {{[0-9]+}} are available on tiny-16
// CHECK-SAME: weights at rest take 8192
// CHECK-SAME: use a chip with more cores
// CHECK-NOT: error:
func.func @main(%x: tensor<16x128xf32>, %w0: tensor<128x128xf32> {t10.weight}, %w1: tensor<128x128xf32> {t10.weight})
    -> tensor<16x128xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x128xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x128xf32>) -> tensor<16x128xf32>
  %h = linalg.matmul ins(%x, %w0 : tensor<16x128xf32>, tensor<128x128xf32>) outs(%init : tensor<16x128xf32>)
    -> tensor<16x128xf32>
  %y = linalg.matmul ins(%h, %w1 : tensor<16x128xf32>, tensor<128x128xf32>) outs(%init : tensor<16x128xf32>)
    -> tensor<16x128xf32>
  return %y : tensor<16x128xf32>
}
