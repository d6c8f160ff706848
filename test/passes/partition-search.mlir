// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16 max-candidates=1200" %s | filecheck %s
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-4" %s | filecheck %s --check-prefix=SMALL
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16 max-candidates=1200" --t10-partition="chip=test-4" %s | filecheck %s --check-prefix=SMALL
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16 max-candidates=1200" %s -o %t.mlir
// RUN: grep -o "#rtensor.plan" %t.mlir | wc -l | filecheck %s --check-prefix=COUNT

// Parts of 16, 8, 6, 4, 3, 2 and 1 elements are 1, 2, 3, 4, 6, 8 and 16 along an axis, other numbers only pad more. 65 products
// of three of them are at most 16, so few that there are no constraints: one core may do, and be first. Every ft is a candidate
// under its F_op, 1,183 in all. Under F_op [1, 1, 16] A and B are on one core each and the 16 that share C may rotate it.
// CHECK: chip = "test-16"
// CHECK: rtensor.candidates = [#rtensor.plan<{f_op = [1, 1, 1], ft = {{\[\[}}1, 1, 1], [1, 1, 1], [1, 1, 1]]}>,
// CHECK-SAME: #rtensor.plan<{f_op = [1, 1, 16], ft = {{\[\[}}1, 1, 1], [1, 1, 1], [1, 1, 1]]}>,
// CHECK-SAME: #rtensor.plan<{f_op = [1, 1, 16], ft = {{\[\[}}1, 1, 1], [1, 1, 1], [1, 2, 1]]}>,
// CHECK-NOT: f_op = [{{([0-9]+, )*([579]|1[0-57-9])(, [0-9]+)*}}]
// CHECK: return
// COUNT: 1183

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
