// RUN: t10-opt --t10-canonicalize %s | t10-opt --t10-canonicalize | filecheck %s
#rest = #rtensor.linear<{cores = 16}>
#few = #rtensor.linear<{cores = 4}>
#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turning = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>

// A relayout to the layout of its source is its source.
// CHECK-LABEL: func.func @same
// CHECK-SAME: (%[[X:.*]]: tensor<8x8xf16, #{{.*}}>, %[[Y:.*]]: tensor<8x8xf16, #{{.*}}>)
// CHECK-NEXT: return %[[X]], %[[Y]] :
func.func @same(%x: tensor<8x8xf16, #rows>, %y: tensor<8x8xf16, #rest>) -> (tensor<8x8xf16, #rows>, tensor<8x8xf16, #rest>) {
  %0 = "rtensor.relayout"(%x) : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #rows>
  %1 = "rtensor.relayout"(%y) : (tensor<8x8xf16, #rest>) -> tensor<8x8xf16, #rest>
  return %0, %1 : tensor<8x8xf16, #rows>, tensor<8x8xf16, #rest>
}

// A copy that rotates stays, as its source must not; so does a relayout that moves.
// CHECK-LABEL: func.func @moved
// CHECK-COUNT-2: "rtensor.relayout"
// CHECK: return
func.func @moved(%x: tensor<4xf16, #turning>, %y: tensor<8x8xf16, #rest>) -> (tensor<4xf16, #turning>, tensor<8x8xf16, #few>) {
  %0 = "rtensor.relayout"(%x) : (tensor<4xf16, #turning>) -> tensor<4xf16, #turning>
  %1 = "rtensor.relayout"(%y) : (tensor<8x8xf16, #rest>) -> tensor<8x8xf16, #few>
  return %0, %1 : tensor<4xf16, #turning>, tensor<8x8xf16, #few>
}
