// RUN: t10-opt --verify-roundtrip --mlir-print-local-scope %s | filecheck %s

// Keys print in alphabetical order, whatever the order they are written in. `phases` are rows: [stride, divisor, modulus,
// sharer axes ...]; a tensor dim has one number per axis that indexes it.
// CHECK: func.func private @all_keys(tensor<6x8xf16, #rtensor.layout<#rtensor.grid<{core_order = [0, 1], f_op = [2, 4, 1],
// CHECK-SAME: lengths = [3, 2, 8], loop_order = [2], phases = {{\[\[}}], [], {{\[\[}}4, 2, 2, 1]]], steps = [1, 1, 2]}>,
// CHECK-SAME: {at = [0, 1], fs = [2, 1], ft = [1, 2], map = affine_map<(d0, d1, d2) -> (d0, d2)>, rp = [0, 4], scatter = 2 : i64}>>)
#grid = #rtensor.grid<{phases = [[], [], [[4, 2, 2, 1]]], core_order = [0, 1], loop_order = [2], steps = [1, 1, 2], lengths = [3, 2, 8], f_op = [2, 4, 1]}>
func.func private @all_keys(tensor<6x8xf16, #rtensor.layout<#grid, {scatter = 2, at = [0, 1], rp = [0, 4], ft = [1, 2], fs = [2, 1], map = affine_map<(m, n, k) -> (m, k)>}>>)

// 5 parts of 2 indices for 7 elements: the last cores hold padding.
// CHECK: @padded(tensor<7xf32, #rtensor.layout<{{.*}}f_op = [5], lengths = [2]
#five = #rtensor.grid<{f_op = [5], lengths = [2], steps = [1], loop_order = [], core_order = [0], phases = [[]]}>
func.func private @padded(tensor<7xf32, #rtensor.layout<#five, {map = affine_map<(m) -> (m)>, fs = [5], ft = [1], rp = [0]}>>)

// A compound dim h + kh has a number per axis: 2 parts of 2 rows, each with its halo of 2; 3 + 2 windows of 3 taps in time.
// CHECK: @halo(tensor<6xf32, #rtensor.layout<{{.*}}fs = {{\[\[}}2, 1]], ft = {{\[\[}}1, 3]], map = affine_map<(d0, d1, d2) -> (d0 + d2)>, rp = {{\[\[}}0, 1]]
#conv = #rtensor.grid<{f_op = [2, 3, 1], lengths = [2, 1, 3], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[1, 1, 3, 1]]]}>
func.func private @halo(tensor<6xf32, #rtensor.layout<#conv, {map = affine_map<(h, o, kh) -> (h + kh)>, fs = [[2, 1]], ft = [[1, 3]], rp = [[0, 1]]}>>)

// CHECK: @scalar(tensor<f32, #rtensor.layout<{{.*}}, {fs = [], ft = [], map = affine_map<(d0) -> ()>, rp = []}>>)
func.func private @scalar(tensor<f32, #rtensor.layout<#five, {map = affine_map<(m) -> ()>, fs = [], ft = [], rp = []}>>)

// CHECK: @linear(tensor<8x8xf32, #rtensor.linear<{cores = 16 : i64}>>)
// CHECK-SAME: rtensor.place = #rtensor.place<{address = 64 : i64, bytes = 16 : i64}>
func.func private @linear(tensor<8x8xf32, #rtensor.linear<{cores = 16}>>) attributes {rtensor.place = #rtensor.place<{bytes = 16, address = 64}>}

// The paper's example: A is cut 3x in time along k, B 2x: 6/3 = 2 and 6/2 = 3 elements per partition. One pace: 2.
// CHECK-LABEL: func.func @planned
// CHECK: linalg.matmul {rtensor.candidates = [#rtensor.plan<{f_op = [2, 3, 1]}>, #rtensor.plan<{f_op = [1, 3, 1]}>],
// CHECK-SAME: rtensor.plan = #rtensor.plan<{active_bytes = 96 : i64, core_order = [0, 1, 2],
// CHECK-SAME: cycles = {compute = 100 : i64, shift = 40 : i64}, f_op = [2, 3, 1],
// CHECK-SAME: ft = {{\[\[}}1, 1, 3], [1, 1, 2], [1, 1, 1]], lengths = [1, 1, 6], loop_order = [2],
// CHECK-SAME: phases = {{\[\[}}], [], {{\[\[}}2, 1, 3, 1], [3, 1, 2, 0]]], reduce = "none", rp = [0, 0, 2], steps = [1, 1, 3]}>}
func.func @planned(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %d = linalg.matmul {
    rtensor.plan = #rtensor.plan<{
      f_op = [2, 3, 1], lengths = [1, 1, 6], ft = [[1, 1, 3], [1, 1, 2], [1, 1, 1]], rp = [0, 0, 2], steps = [1, 1, 3],
      loop_order = [2], core_order = [0, 1, 2], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]], reduce = "none",
      cycles = {compute = 100, shift = 40}, active_bytes = 96}>,
    rtensor.candidates = [#rtensor.plan<{f_op = [2, 3, 1]}>, #rtensor.plan<{f_op = [1, 3, 1]}>]
  } ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return %d : tensor<2x3xf16>
}
