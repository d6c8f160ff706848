// RUN: t10-opt --t10-partition="chip=test-16" %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-4" %s | filecheck %s --check-prefix=SMALL
// RUN: t10-opt --t10-partition="chip=test-16 parallelism=0.2 padding=0.5" --t10-partition="chip=test-16" %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-16" --t10-partition="chip=test-4" %s | filecheck %s --check-prefix=SMALL

// 16^3 points and 16 cores: at least 0.9 * 16 = 14.4 of them must work, and no axis may be padded by more than 1/9, so an
// axis of 16 is cut in 1, 2, 4, 8 or 16: every candidate is a product of powers of two that is 16.
// CHECK: chip = "test-16"
// CHECK: rtensor.candidates = [#rtensor.plan<{
// CHECK-NOT: f_op = [{{([0-9]+, )*([35679]|1[0-57-9])(, [0-9]+)*}}]
// CHECK-NOT: f_op = [1, 1, 1], ft
// CHECK: return

// On four cores none may cut an axis in more than four.
// SMALL: chip = "test-4"
// SMALL: f_op = [{{[124], [124], [124]}}], ft
// SMALL-NOT: f_op = [{{[0-9, ]*(16|8)[0-9, ]*}}]
// SMALL: return
func.func @main(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x16xf32>) -> tensor<16x16xf32>
  %c = linalg.matmul ins(%a, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%init : tensor<16x16xf32>)
    -> tensor<16x16xf32>
  return %c : tensor<16x16xf32>
}
