// RUN: not t10-opt --t10-reconcile="chip=%S/Inputs/tiny-16.yaml" %s 2>&1 | filecheck %s

// Two weights of 64 KiB over 16 cores take 8 KiB of every core, even at rest; tiny-16 has 9 KiB behind the 20 KiB of code
// and stacks, and a shift buffer in them. One error, at the operator; notes say what is held and what was tried.
// CHECK: reconcile-does-not-fit.mlir:{{[0-9]+}}:8: error: operator 'contraction{{.*}}': needs about {{[0-9,]+}} bytes per core while {{.*}}, tiny-16 has 29,696 (it fits with {{.*}})
// CHECK-NOT: error:
// CHECK: note: every core then holds
// CHECK: note: {{ *}}20,544 code and stacks (reserved), and what loads may read ahead
// CHECK-NEXT: note: {{ *}}8,192 weights at rest (2 of them)
// CHECK: note: tried:
// CHECK-NEXT: note: contraction{{.*}} on its smallest plan, f_op = [{{.*}}]
// CHECK: note: 2 x the cores (32): {{[0-9,]+}} bytes
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
