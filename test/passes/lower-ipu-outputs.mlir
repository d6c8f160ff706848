// RUN: t10-opt --t10-partition="chip=test-4 f-op=2,2" --t10-lower-ipu %s | filecheck %s

// A result is read through views: x transposed, 2 x 4, and a column of 0.5 behind it, 2 x 5. Every tile has 1 x 2 of the
// exponentials; elements 4 and 9 of the result are no tile's: a piece of its own, a constant.
// CHECK: "ipu.table"() {elements = dense<{{\[\[}}0, 1], [2, 3], [5, 6], [7, 8]]> : tensor<4x2xi32>, sym_name = "[[LIES:table[0-9]]]"}
// CHECK: "ipu.table"() {elements = dense<{{\[\[}}4, 9]]> : tensor<1x2xi32>, sym_name = "[[CONSTANT:table[0-9]]]"}
// CHECK: "ipu.host"(%{{.*}}) {direction = "output", {{.*}}pieces = [{fill = "0", operand = 0 : i64, table = "[[LIES]]"}, {fill = "0.5", operand = -1 : i64, table = "[[CONSTANT]]"}], shape = [2, 5]}
// CHECK: "ipu.execute"() {compute_set = "sub_task:exponential"}
// CHECK-NEXT: }) {op_name = "exponential"}
func.func @main(%x: tensor<4x2xf32>) -> tensor<2x5xf32> {
  %half = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<4x2xf32>
  %f = tensor.empty() : tensor<2x4xf32>
  %t = linalg.transpose ins(%x : tensor<4x2xf32>) outs(%f : tensor<2x4xf32>) permutation = [1, 0]
  %y = linalg.exp ins(%t : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) -> tensor<2x4xf32> loc("exponential")
  %p = tensor.pad %y low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %half : f32
  } : tensor<2x4xf32> to tensor<2x5xf32>
  return %p : tensor<2x5xf32>
}
