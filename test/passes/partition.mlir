// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1" %s | filecheck %s
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1 operator=product" %s | filecheck %s
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16 f-op=2,3,1" %s | filecheck %s --check-prefix=SEARCH-FT

// C[m, n] += A[m, k] * B[k, n] with m, n, k = 2, 3, 6, cut in 2 x 3 x 1: six cores. A lacks n, so the 3 cores of a row
// share its part of A and may cut it three times; B lacks m and is shared by 2.
// A partition says nothing yet about pace, steps or price.
// CHECK: module attributes {t10.chip = "test-16", t10.cost_model = "ipu"}
// CHECK: rtensor.candidates = [#rtensor.plan<{f_op = [2, 3, 1], ft = {{\[}}[1, 1, 3], [1, 1, 2], [1, 1, 1]]}>]
// CHECK-NOT: rp =

// With F_op given, every ft is a candidate: k of A is cut by a divisor of 3, k of B by one of 2, in lexicographic order.
// SEARCH-FT: rtensor.candidates = [#rtensor.plan<{f_op = [2, 3, 1], ft = {{\[}}[1, 1, 1], [1, 1, 1], [1, 1, 1]]}>,
// SEARCH-FT-SAME: #rtensor.plan<{f_op = [2, 3, 1], ft = {{\[}}[1, 1, 1], [1, 1, 2], [1, 1, 1]]}>,
// SEARCH-FT-SAME: #rtensor.plan<{f_op = [2, 3, 1], ft = {{\[}}[1, 1, 3], [1, 1, 1], [1, 1, 1]]}>,
// SEARCH-FT-SAME: #rtensor.plan<{f_op = [2, 3, 1], ft = {{\[}}[1, 1, 3], [1, 1, 2], [1, 1, 1]]}>]
func.func @main(%a: tensor<2x6xf32>, %b: tensor<6x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<2x6xf32>, tensor<6x3xf32>) outs(%init : tensor<2x3xf32>) -> tensor<2x3xf32>
    loc("product")
  return %c : tensor<2x3xf32>
}
