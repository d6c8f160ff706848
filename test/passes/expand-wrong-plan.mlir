// RUN: not t10-opt --t10-expand %s 2>&1 | filecheck %s
// RUN: not t10-opt --compile-to=program %s 2>&1 | filecheck %s

// A plan that is written by hand is proved before it is expanded: here two ranks have the same part of a ring.
// CHECK: expand-wrong-plan.mlir:{{[0-9]+}}:{{[0-9]+}}: error: product: ring tiling: found 2 windows in ring 0
// CHECK: error: the plan breaks

#map = affine_map<(d0, d1, d2) -> (d0, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1)>
#plan = #rtensor.plan<{active_bytes = 48 : i64, core_order = [2, 0, 1], cycles = {compute = 538 : i64, reduce = 0 : i64, relayout = 0 : i64, setup = 0 : i64, shift = 1395 : i64}, f_op = [4, 4, 1], ft = [[1, 1, 4], [1, 1, 4], [1, 1, 1]], lengths = [1, 1, 8], loop_order = [2], phases = [[], [], [[2, 1, 4, 1], [2, 1, 4, 1]]], reduce = "none", rp = [0, 0, 2], steps = [1, 1, 4], weight_bytes = 16 : i64}>
module attributes {t10.chip = "test-16", t10.cost_model = "ipu"} {
  func.func @main(%arg0: tensor<4x8xf32> {t10.name = "a"}, %arg1: tensor<4x8xf32> {t10.name = "b", t10.order = array<i64: 1, 0>, t10.weight}) -> (tensor<4x4xf32> {t10.name = "y"}) {
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4x4xf32>
    %1 = linalg.fill ins(%cst : f32) outs(%0 : tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%arg0, %arg1 : tensor<4x8xf32>, tensor<4x8xf32>) outs(%1 : tensor<4x4xf32>) attrs =  {kind = "contraction", op_name = "product", rtensor.idle_level = 1 : i64, rtensor.plan = #plan} {
    ^bb0(%in: f32, %in_0: f32, %out: f32):
      %3 = arith.mulf %in, %in_0 : f32
      %4 = arith.addf %out, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<4x4xf32>
    return %2 : tensor<4x4xf32>
  }
}
