// RUN: t10-opt --alias-layouts %s | filecheck %s
// RUN: t10-opt %s -o %t.1.mlir
// RUN: t10-opt --alias-layouts %s | t10-opt | diff %t.1.mlir -

// CHECK: #layout = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 2]}>
// CHECK-NEXT: #plan = #rtensor.plan<{cycles = {compute = 3 : i64}, f_op = [2]}>
// CHECK-NEXT: #plan1 = #rtensor.plan<{f_op = [3], reduce = "all"}>
// CHECK: func.func @f(%arg0: tensor<6x8xf16, #layout>) -> tensor<6x8xf16, #layout>
// CHECK-SAME: rtensor.candidates = [#plan, #plan1], rtensor.plan = #plan
// CHECK: @once(tensor<4xf16, #rtensor.layout<{linear = 4 : i64}>>)
// CHECK-SAME: note = "#rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 2]}>"
#l = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 2]}>
func.func @f(%x: tensor<6x8xf16, #l>) -> tensor<6x8xf16, #l> attributes {
    rtensor.plan = #rtensor.plan<{f_op = [2], cycles = {compute = 3}}>,
    rtensor.candidates = [#rtensor.plan<{f_op = [2], cycles = {compute = 3}}>, #rtensor.plan<{f_op = [3], reduce = "all"}>]} {
  return %x : tensor<6x8xf16, #l>
}
func.func private @once(tensor<4xf16, #rtensor.layout<{linear = 4}>>)
  attributes {note = "#rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 2]}>"}
