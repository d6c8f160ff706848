// How plans are chosen: all together (the default), or by Algorithm 1 in one of its readings. Greedy execution time alone
// is what `literal` looks at; whichever way, the module is complete and right.
// RUN: t10-opt --t10-place="chip=test-16" --t10-verify-plan %s | filecheck %s
// RUN: t10-opt --t10-place="chip=test-16 reconcile=greedy" --t10-verify-plan %s | filecheck %s
// RUN: t10-opt --t10-place="chip=test-16 reconcile=greedy reading=literal" --t10-verify-plan %s | filecheck %s
// RUN: t10-opt --t10-place="chip=test-16 reconcile=greedy reading=aware" --t10-verify-plan %s | filecheck %s
// RUN: t10-opt --t10-place="chip=test-16 gap=0.1 time-limit=1 exhaustive" --t10-verify-plan %s | filecheck %s
// RUN: not t10-opt --t10-reconcile="chip=test-16 reconcile=fastest" %s 2>&1 | filecheck %s --check-prefix=METHOD
// RUN: not t10-opt --t10-reconcile="chip=test-16 reconcile=greedy reading=fast" %s 2>&1 | filecheck %s --check-prefix=READING
// RUN: not t10-opt --t10-reconcile="chip=test-16 gap=2" %s 2>&1 | filecheck %s --check-prefix=GAP

// CHECK-COUNT-2: "rtensor.operator"
// METHOD: error: reconcile is 'fastest' (expected exact or greedy)
// READING: error: reading is 'fast' (expected literal, aware or best)
// GAP: error: gap is 2.0
func.func @main(%x: tensor<16x32xf32>, %w0: tensor<32x32xf32> {t10.weight}, %w1: tensor<32x8xf32> {t10.weight})
    -> tensor<16x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<16x32xf32>
  %i0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<16x32xf32>) -> tensor<16x32xf32>
  %h = linalg.matmul ins(%x, %w0 : tensor<16x32xf32>, tensor<32x32xf32>) outs(%i0 : tensor<16x32xf32>)
    -> tensor<16x32xf32>
  %e1 = tensor.empty() : tensor<16x8xf32>
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<16x8xf32>) -> tensor<16x8xf32>
  %y = linalg.matmul ins(%h, %w1 : tensor<16x32xf32>, tensor<32x8xf32>) outs(%i1 : tensor<16x8xf32>)
    -> tensor<16x8xf32>
  return %y : tensor<16x8xf32>
}
