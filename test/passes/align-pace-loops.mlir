// RUN: t10-opt --t10-align-pace %s | filecheck %s

// Two axes rotate: n of W, cut 2x by the 2 cores along m, and k of A, cut 4x by the 4 cores along n.
// Per advance of k a core passes on rp_k = 8/4 = 2 columns of A's 8/2 = 4 rows: 8 elements, 32 bytes. Per advance of n,
// rp_n = 4/2 = 2 columns of W's 8 rows: 16 elements, 64 bytes. The dearer one is the outer loop (theorem 3): n, then k.
// CHECK: lengths = [4, 4, 8], loop_order = [1, 2]
// CHECK-SAME: rp = [0, 2, 2], steps = [1, 2, 4]
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
module attributes {t10.chip = "test-16"} {
  func.func @main(%a: tensor<8x8xf32>, %w: tensor<8x16xf32> {t10.weight}) -> tensor<8x16xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<8x16xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x16xf32>) -> tensor<8x16xf32>
    %c = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %w : tensor<8x8xf32>, tensor<8x16xf32>) outs(%init : tensor<8x16xf32>) attrs = {op_name = "product",
      rtensor.candidates = [#rtensor.plan<{f_op = [2, 4, 1], ft = [[1, 1, 4], [1, 2, 1], [1, 1, 1]]}>]} {
    ^bb0(%x: f32, %y: f32, %acc: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
    } -> tensor<8x16xf32>
    return %c : tensor<8x16xf32>
  }
}
