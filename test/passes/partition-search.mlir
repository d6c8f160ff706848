// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16" %s | filecheck %s
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-4" %s | filecheck %s --check-prefix=SMALL
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16 parallelism=0.2 padding=0.5" --t10-partition="chip=test-16" %s | filecheck %s
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16" --t10-partition="chip=test-4" %s | filecheck %s --check-prefix=SMALL
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16" %s -o %t.mlir
// RUN: grep -o "#rtensor.plan" %t.mlir | wc -l | filecheck %s --check-prefix=COUNT

// 16^2 results and 16 cores: at least 0.9 * 256 / (256 + 32) * 16 = 12.8 of them must work, and no axis may be padded by
// more than about 1/6, so an axis of 16 is cut in 1, 2, 4, 8 or 16: every F_op is one of the 15 products of powers of two
// that are 16. Every ft is a candidate under it, 495 in all: first of F_op [1, 1, 16], where A and B are on one core each
// and the 16 that share C may rotate it.
// CHECK: chip = "test-16"
// CHECK: rtensor.candidates = [#rtensor.plan<{f_op = [1, 1, 16], ft = {{\[}}[1, 1, 1], [1, 1, 1], [1, 1, 1]]}>,
// CHECK-SAME: #rtensor.plan<{f_op = [1, 1, 16], ft = {{\[}}[1, 1, 1], [1, 1, 1], [1, 2, 1]]}>,
// CHECK-NOT: f_op = [{{([0-9]+, )*([35679]|1[0-57-9])(, [0-9]+)*}}]
// CHECK-NOT: f_op = [1, 1, 1], ft
// CHECK: return
// COUNT: 495

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
