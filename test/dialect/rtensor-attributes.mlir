// RUN: t10-opt --verify-roundtrip %s | filecheck %s

// Keys print in alphabetical order, whatever the order they are written in.
// CHECK: func.func private @all_keys(tensor<6x8xf16, #rtensor.layout<{cores = 4 : i64, fs = [2, 1], ft = [1, 2], rp = [0, 2], scatter = 2 : i64}>>)
func.func private @all_keys(tensor<6x8xf16, #rtensor.layout<{scatter = 2, rp = [0, 2], ft = [1, 2], fs = [2, 1], cores = 4}>>)

// 5 pieces of a dim of 7 elements: 2 each, padded to 10.
// CHECK: @padded(tensor<7xf32, #rtensor.layout<{fs = [5], ft = [1], rp = [0]}>>)
func.func private @padded(tensor<7xf32, #rtensor.layout<{fs = [5], ft = [1], rp = [0]}>>)

// A compound dim h + kh may be cut into more sub-tensors than it has elements: they overlap by the halo.
// CHECK: @halo(tensor<4xf32, #rtensor.layout<{fs = [6], ft = [1], halo = [2], rp = [0]}>>)
func.func private @halo(tensor<4xf32, #rtensor.layout<{fs = [6], ft = [1], rp = [0], halo = [2]}>>)

// CHECK: @scalar(tensor<f32, #rtensor.layout<{fs = [], ft = [], rp = []}>>)
func.func private @scalar(tensor<f32, #rtensor.layout<{fs = [], ft = [], rp = []}>>)

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
