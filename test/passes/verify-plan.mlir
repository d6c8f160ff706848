// RUN: t10-opt --t10-verify-plan %s | filecheck %s --check-prefix=RIGHT
// RUN: sed -e "s/\[3, 1, 2, 0\]/[2, 1, 2, 0]/" %s | not t10-opt --t10-verify-plan 2>&1 | filecheck %s --check-prefix=PHASE
// RUN: sed -e "s/\[3, 1, 2, 0\]/[3, 2, 2, 0]/" %s | not t10-opt --t10-verify-plan 2>&1 | filecheck %s --check-prefix=DIGIT
// RUN: sed -e "s/reduce = .none./reduce = \"scatter\"/" %s | not t10-opt --t10-verify-plan 2>&1 | filecheck %s --check-prefix=REDUCE
// RUN: sed -e "s/, rp = \[0, 0, 2\]//" %s | not t10-opt --t10-verify-plan 2>&1 | filecheck %s --check-prefix=MISSING
// RUN: sed -e "s/rp = \[0, 0, 2\]/rp = [0, 0, 1]/" %s | not t10-opt --t10-verify-plan 2>&1 | filecheck %s --check-prefix=PACE
// RUN: sed -e "s/test-16/test-4/" %s | not t10-opt --t10-verify-plan 2>&1 | filecheck %s --check-prefix=CORES

// The same at the compute-shift level, where types and places are the plan.
// RUN: t10-opt --t10-place %s -o %t.placed.mlir
// RUN: t10-opt --t10-verify-plan %t.placed.mlir | diff %t.placed.mlir -
// RUN: sed -e "s/test-16/test-4/" %t.placed.mlir | not t10-opt --t10-verify-plan 2>&1 | filecheck %s --check-prefix=CORES
// RUN: sed -e "s/\[3, 1, 2, 0\]/[2, 1, 2, 0]/" %t.placed.mlir | not t10-opt --t10-verify-plan 2>&1 | filecheck %s --check-prefix=TILES
// RUN: sed -e "s/bytes = 8192/bytes = 4096/" %t.placed.mlir | not t10-opt --t10-verify-plan 2>&1 | filecheck %s --check-prefix=SIZE
// RUN: sed -e "s/address = 245760/address = 278528/" %t.placed.mlir | not t10-opt --t10-verify-plan 2>&1 | filecheck %s --check-prefix=OVERLAP
// RUN: sed -e "s/address = 311296/address = 4096/" %t.placed.mlir | not t10-opt --t10-verify-plan 2>&1 | filecheck %s --check-prefix=RESERVED
// RUN: sed -e "s/{rtensor.place = [^>]*>} : (tensor<2x6xf32>)/: (tensor<2x6xf32>)/" %t.placed.mlir | not t10-opt --t10-verify-plan 2>&1 | filecheck %s --check-prefix=NOWHERE

// The paper's example, planned. Every core of the 2 x 3 starts at 3 * m + 2 * n mod 6 along k.
// RIGHT: #rtensor.plan<{
// RIGHT-SAME: rp = [0, 0, 2], steps = [1, 1, 3]

// Both cores of a column start alike in B: they hold one half of it twice, and the other half is nowhere.
// PHASE: <stdin>:{{[0-9]+}}:{{[0-9]+}}: error: product: ring tiling: found 1 windows in ring 0 of sub-tensor (0, 0) of input 1
// Two cores have one digit of two values. (This, the pace and the reduction the attribute's own verifier sees, before any pass runs.)
// DIGIT: error: 'rtensor.operator' op rtensor.plan: phases[2] takes the digit (sigma / 2) mod 2 of 2 cores
// Every output element is on one core only: there is nothing to combine.
// REDUCE: error: 'rtensor.operator' op rtensor.plan: reduce = "scatter" with 1 replicas of the output, expected none
// MISSING: error: rtensor.plan: plan has no 'rp'
// Three steps of one element do not sweep six.
// PACE: error: 'rtensor.operator' op rtensor.plan: rp[2] = 1 in 3 steps does not cover lengths[2] = 6
// CORES: error: product: cores: found f_op = [2, 3, 1] needs 6 cores, expected at most 4
// A layout checks its windows by itself.
// TILES: error: {{.*}}windows leave parts of a sub-tensor on no core
// Everything that owns memory has a place that is as large as its type and its chip say, and apart from what lives with it.
// SIZE: error: shift has a place of 4096 bytes, expected 8192
// OVERLAP: error: idle:arg1 and value:product:0 live at once and overlap at address 278528
// RESERVED: error: input:arg0: capacity: found bytes [4096, 4112), expected within [20480, 638912)
// NOWHERE: error: rtensor.resident has no rtensor.place (run --t10-place first)
#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
module attributes {t10.chip = "test-16", t10.cost_model = "ipu"} {
  func.func @main(%arg0: tensor<2x6xf32>, %arg1: tensor<6x3xf32> {t10.weight}) -> tensor<2x3xf32> {
    %1 = "rtensor.operator"() ({
      %cst = arith.constant 0.000000e+00 : f32
      %2 = tensor.empty() : tensor<2x3xf32>
      %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<2x3xf32>) -> tensor<2x3xf32>
      %4 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<2x6xf32>, tensor<6x3xf32>) outs(%3 : tensor<2x3xf32>) {
      ^bb0(%in: f32, %in_0: f32, %out: f32):
        %5 = arith.mulf %in, %in_0 : f32
        %6 = arith.addf %out, %5 : f32
        linalg.yield %6 : f32
      } -> tensor<2x3xf32>
      "rtensor.yield"(%4) : (tensor<2x3xf32>) -> ()
    }) {kind = "contraction", op_name = "product", rtensor.idle_level = 1, rtensor.plan = #rtensor.plan<{active_bytes = 32, core_order = [0, 1, 2], cycles = {compute = 1125, reduce = 0, relayout = 0, setup = 0, shift = 885}, f_op = [2, 3, 1], ft = [[1, 1, 3], [1, 1, 2], [1, 1, 1]], lengths = [1, 1, 6], loop_order = [2], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]], reduce = "none", rp = [0, 0, 2], steps = [1, 1, 3], weight_bytes = 16}>} : () -> tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}
