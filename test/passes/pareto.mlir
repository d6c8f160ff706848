// RUN: t10-opt --mlir-print-local-scope --t10-pareto %s | filecheck %s
// RUN: t10-opt --mlir-print-local-scope --t10-pareto --t10-pareto %s | filecheck %s
// RUN: t10-opt --t10-align-pace %s | t10-opt --mlir-print-local-scope --t10-pareto | filecheck %s
// RUN: t10-opt --mlir-print-local-scope --t10-pareto="max-front=1" %s | filecheck %s --check-prefix=ONE

// Three partitions of C[m, n] += A[m, k] * B[k, n], 16 each way, on 4 x 4 cores. What a core holds of each operand, in f32:
//   nothing rotates:     A 4 x 16, B 16 x 4, C 4 x 4:  4 * (64 + 64 + 16) = 576 bytes;
//   A and B in 4 parts:  A 4 x 4,  B 4 x 4,  C 4 x 4:  4 * (16 + 16 + 16) = 192 bytes, but 3 shifts and 4 short steps;
//   A alone in 2 parts:  A 4 x 8,  B 16 x 4, C 4 x 4:  4 * (32 + 64 + 16) = 448 bytes: between the two.
// Candidates stand fastest last, in the order of their memory, each with its cycles.
// CHECK: rtensor.candidates = [#rtensor.plan<{active_bytes = 192
// CHECK-SAME: ft = {{\[}}[1, 1, 4], [1, 1, 4], [1, 1, 1]]
// CHECK-SAME: active_bytes = 576
// CHECK-SAME: shift = 0
// CHECK-SAME: ft = {{\[}}[1, 1, 1], [1, 1, 1], [1, 1, 1]]

// One plan: the fastest.
// ONE: rtensor.candidates = [#rtensor.plan<{active_bytes = 576
// ONE-NOT: active_bytes
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
module attributes {t10.chip = "test-16"} {
  func.func @main(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> tensor<16x16xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<16x16xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x16xf32>) -> tensor<16x16xf32>
    %c = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%init : tensor<16x16xf32>) attrs = {op_name = "product",
      rtensor.candidates = [#rtensor.plan<{f_op = [4, 4, 1], ft = [[1, 1, 4], [1, 1, 4], [1, 1, 1]]}>,
                            #rtensor.plan<{f_op = [4, 4, 1], ft = [[1, 1, 2], [1, 1, 1], [1, 1, 1]]}>,
                            #rtensor.plan<{f_op = [4, 4, 1], ft = [[1, 1, 1], [1, 1, 1], [1, 1, 1]]}>]} {
    ^bb0(%x: f32, %y: f32, %acc: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
    } -> tensor<16x16xf32>
    return %c : tensor<16x16xf32>
  }
}
