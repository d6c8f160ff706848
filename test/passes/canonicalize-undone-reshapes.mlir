// RUN: t10-opt --t10-canonicalize %s | t10-opt --t10-canonicalize | filecheck %s
#rest = #rtensor.linear<{cores = 16}>
#few = #rtensor.linear<{cores = 4}>
#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>

// What was reshaped to and fro is moved from where it lies.
// CHECK-LABEL: func.func @undone
// CHECK-SAME: (%[[X:.*]]: tensor<8x8xf16, #{{.*}}>)
// CHECK-NEXT: %[[Y:.*]] = "rtensor.relayout"(%[[X]])
// CHECK-NEXT: return %[[Y]] :
func.func @undone(%x: tensor<8x8xf16, #rest>) -> tensor<8x8xf16, #rows> {
  %s = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 4, 8] : tensor<8x8xf16, #rest> into tensor<2x4x8xf16>
  %t = tensor.collapse_shape %s [[0, 1], [2]] : tensor<2x4x8xf16> into tensor<8x8xf16>
  %y = "rtensor.relayout"(%t) : (tensor<8x8xf16>) -> tensor<8x8xf16, #rows>
  return %y : tensor<8x8xf16, #rows>
}

// One reshape stays.
// CHECK-LABEL: func.func @reshaped
// CHECK-NEXT: %[[S:.*]] = tensor.expand_shape
// CHECK-NEXT: "rtensor.relayout"(%[[S]])
func.func @reshaped(%x: tensor<64xf16, #rest>) -> tensor<8x8xf16, #rows> {
  %s = tensor.expand_shape %x [[0, 1]] output_shape [8, 8] : tensor<64xf16, #rest> into tensor<8x8xf16>
  %y = "rtensor.relayout"(%s) : (tensor<8x8xf16>) -> tensor<8x8xf16, #rows>
  return %y : tensor<8x8xf16, #rows>
}
