// RUN: t10-opt %s | filecheck %s
// RUN: t10-opt --mlir-print-local-scope %s | filecheck %s --check-prefix=LOCAL
// RUN: t10-opt --mlir-print-local-scope %s -o %t.1.mlir
// RUN: t10-opt %s | t10-opt --mlir-print-local-scope | diff %t.1.mlir -

// Grids, layouts and chosen plans are printed once each, a layout with the name of its grid, behind MLIR's own names.
// A candidate stands where it is, unless it stands twice.
// CHECK: #map = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-NEXT: #grid = #rtensor.grid<{core_order = [0], f_op = [2, 1]
// CHECK-NEXT: #linear = #rtensor.linear<{cores = 4 : i64}>
// CHECK-NEXT: #layout = #rtensor.layout<#grid, {fs = [2, 1], ft = [1, 1], map = #map, rp = [0, 0]}>
// CHECK-NEXT: #plan = #rtensor.plan<{cycles = {compute = 3 : i64}, f_op = [2]}>
// CHECK-NEXT: module
// CHECK: func.func @f(%arg0: tensor<6x8xf16, #layout>) -> tensor<6x8xf16, #layout>
// CHECK-SAME: rtensor.candidates = [#plan, #rtensor.plan<{f_op = [3], reduce = "all"}>], rtensor.plan = #plan
// CHECK: @once(tensor<4xf16, #linear>)
// A text that looks like an attribute is a text.
// CHECK-SAME: note = "#rtensor.linear<{cores = 4}>"
// LOCAL-NOT: #linear
// LOCAL: tensor<6x8xf16, #rtensor.layout<#rtensor.grid<{core_order = [0]
#grid = #rtensor.grid<{f_op = [2, 1], lengths = [3, 8], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[4, 1, 2, 0]]]}>
#l = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m, k)>, fs = [2, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<6x8xf16, #l>) -> tensor<6x8xf16, #l> attributes {
    rtensor.plan = #rtensor.plan<{f_op = [2], cycles = {compute = 3}}>,
    rtensor.candidates = [#rtensor.plan<{f_op = [2], cycles = {compute = 3}}>, #rtensor.plan<{f_op = [3], reduce = "all"}>]} {
  return %x : tensor<6x8xf16, #l>
}
func.func private @once(tensor<4xf16, #rtensor.linear<{cores = 4}>>) attributes {note = "#rtensor.linear<{cores = 4}>"}
