// RUN: t10-opt --t10-canonicalize %s | t10-opt --t10-canonicalize | filecheck %s
#rest = #rtensor.linear<{cores = 16}>
#few = #rtensor.linear<{cores = 4}>
#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>

// A cast to the layout of its source is its source.
// CHECK-LABEL: func.func @same
// CHECK-SAME: (%[[X:.*]]: tensor<8x8xf16, #[[ROWS:.*]]>)
// CHECK-NEXT: return %[[X]] :
func.func @same(%x: tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #rows> {
  %y = "rtensor.cast"(%x) : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #rows>
  return %y : tensor<8x8xf16, #rows>
}

// One to another layout stays, and so does what gives a layout to a reshape.
// CHECK-LABEL: func.func @other
// CHECK-COUNT-2: "rtensor.cast"
// CHECK: return
func.func @other(%x: tensor<8x8xf16, #rows>, %z: tensor<8x8xf16>) -> (tensor<8x8xf16, #few>, tensor<8x8xf16, #few>) {
  %y = "rtensor.cast"(%x) : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #few>
  %w = "rtensor.cast"(%z) : (tensor<8x8xf16>) -> tensor<8x8xf16, #few>
  return %y, %w : tensor<8x8xf16, #few>, tensor<8x8xf16, #few>
}
