// RUN: t10-opt --t10-align-pace %s | filecheck %s
// RUN: t10-opt --t10-align-pace --t10-align-pace %s | filecheck %s
// RUN: t10-opt --pass-pipeline="builtin.module(t10-align-pace,func.func(canonicalize,cse))" %s | filecheck %s

// The paper's example: 2 x 3 cores, A cut 3x in time along k and B 2x. Partitions of A are 6/3 = 2 long, of B 6/2 = 3: one
// pace for both, the smaller: rp = 2, in 6/2 = 3 steps. k is the only loop.
// Windows start at 2 * n + 3 * m mod 6 on core (m, n): 0 2 4 / 3 5 1. The first term is n's digit (stride 2, of 3), the
// second m's (stride 3, of 2): so windows of A start 2 apart along a row, windows of B 3 apart along a column.
// CHECK: f_op = [2, 3, 1], ft = {{\[}}[1, 1, 3], [1, 1, 2], [1, 1, 1]], lengths = [1, 1, 6], loop_order = [2]
// CHECK-SAME: phases = {{\[}}[], [], {{\[}}[2, 1, 3, 1], [3, 1, 2, 0]]], reduce = "none", rp = [0, 0, 2], steps = [1, 1, 3]
// CHECK-NOT: rtensor.plan =
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
module attributes {t10.chip = "test-16"} {
  func.func @main(%a: tensor<2x6xf32>, %b: tensor<6x3xf32>) -> tensor<2x3xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<2x3xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x3xf32>) -> tensor<2x3xf32>
    %c = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<2x6xf32>, tensor<6x3xf32>) outs(%init : tensor<2x3xf32>) attrs = {op_name = "product",
      rtensor.candidates = [#rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 1, 3], [1, 1, 2], [1, 1, 1]]}>]} {
    ^bb0(%x: f32, %y: f32, %acc: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
    } -> tensor<2x3xf32>
    return %c : tensor<2x3xf32>
  }
}
