// RUN: t10-opt --t10-canonicalize %s | t10-opt --t10-canonicalize | filecheck %s
#rest = #rtensor.linear<{cores = 16}>
#few = #rtensor.linear<{cores = 4}>
#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>

// Only the layout at the end counts; the place is that of the last.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[X:.*]]: tensor<8x8xf16, #[[REST:.*]]>, %[[W:.*]]: tensor<8x8xf16
// CHECK-NEXT: %[[Y:.*]] = "rtensor.relayout"(%[[X]]) {rtensor.place = #rtensor.place<{address = 64 : i64, bytes = 32 : i64}>}
// CHECK-NEXT: %[[V:.*]] = "rtensor.setup"(%[[W]])
// CHECK-NEXT: %[[C:.*]] = "rtensor.cast"(%[[W]])
// CHECK-NEXT: return %[[Y]], %[[V]], %[[C]] :
func.func @chain(%x: tensor<8x8xf16, #rest>, %w: tensor<8x8xf16, #rest>) -> (tensor<8x8xf16, #rows>, tensor<8x8xf16, #rows>, tensor<8x8xf16, #rows>) {
  %0 = "rtensor.relayout"(%x) {rtensor.place = #rtensor.place<{address = 0, bytes = 32}>} : (tensor<8x8xf16, #rest>) -> tensor<8x8xf16, #few>
  %1 = "rtensor.relayout"(%0) : (tensor<8x8xf16, #few>) -> tensor<8x8xf16, #rest>
  %2 = "rtensor.relayout"(%1) {rtensor.place = #rtensor.place<{address = 64, bytes = 32}>} : (tensor<8x8xf16, #rest>) -> tensor<8x8xf16, #rows>
  %3 = "rtensor.setup"(%w) : (tensor<8x8xf16, #rest>) -> tensor<8x8xf16, #few>
  %4 = "rtensor.setup"(%3) : (tensor<8x8xf16, #few>) -> tensor<8x8xf16, #rows>
  %5 = "rtensor.cast"(%w) : (tensor<8x8xf16, #rest>) -> tensor<8x8xf16, #few>
  %6 = "rtensor.cast"(%5) : (tensor<8x8xf16, #few>) -> tensor<8x8xf16, #rows>
  return %2, %4, %6 : tensor<8x8xf16, #rows>, tensor<8x8xf16, #rows>, tensor<8x8xf16, #rows>
}

// The first stays where something else reads it, and moves of two kinds are no chain.
// CHECK-LABEL: func.func @kept
// CHECK-SAME: (%[[X:.*]]: tensor<8x8xf16, #[[REST]]>)
// CHECK-NEXT: %[[A:.*]] = "rtensor.relayout"(%[[X]])
// CHECK-NEXT: %[[B:.*]] = "rtensor.relayout"(%[[X]])
// CHECK-NEXT: %[[C:.*]] = "rtensor.setup"(%[[A]])
// CHECK-NEXT: return %[[A]], %[[B]], %[[C]] :
func.func @kept(%x: tensor<8x8xf16, #rest>) -> (tensor<8x8xf16, #few>, tensor<8x8xf16, #rows>, tensor<8x8xf16, #rows>) {
  %0 = "rtensor.relayout"(%x) : (tensor<8x8xf16, #rest>) -> tensor<8x8xf16, #few>
  %1 = "rtensor.relayout"(%0) : (tensor<8x8xf16, #few>) -> tensor<8x8xf16, #rows>
  %2 = "rtensor.setup"(%0) : (tensor<8x8xf16, #few>) -> tensor<8x8xf16, #rows>
  return %0, %1, %2 : tensor<8x8xf16, #few>, tensor<8x8xf16, #rows>, tensor<8x8xf16, #rows>
}
