// RUN: t10-opt --verify-roundtrip %s | t10-opt | filecheck %s
// RUN: t10-opt --mlir-print-op-generic %s | t10-opt | filecheck %s
// RUN: t10-opt --emit-bytecode %s | t10-opt | filecheck %s

#idle = #rtensor.layout<{linear = 16}>
#active = #rtensor.layout<{fs = [4, 1], ft = [1, 2], rp = [0, 4], cores = 4}>

// CHECK-LABEL: func.func @setup
// CHECK: "rtensor.setup"(%{{.*}}) {bytes = 24 : i64, cycles = 310 : i64}
// CHECK-SAME: (tensor<8x8xf16, #rtensor.layout<{linear = 16 : i64}>>)
// CHECK-SAME: -> tensor<8x8xf16, #rtensor.layout<{cores = 4 : i64, fs = [4, 1], ft = [1, 2], rp = [0, 4]}>>
func.func @setup(%w: tensor<8x8xf16, #idle>) -> tensor<8x8xf16, #active> {
  %a = "rtensor.setup"(%w) {bytes = 24, cycles = 310} : (tensor<8x8xf16, #idle>) -> tensor<8x8xf16, #active>
  return %a : tensor<8x8xf16, #active>
}

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
#cols = #rtensor.layout<{fs = [1, 4], ft = [1, 1], rp = [0, 0]}>

// CHECK-LABEL: func.func @relayout
// CHECK: "rtensor.relayout"(%{{.*}}) {bytes = 32 : i64, cycles = 450 : i64}
// CHECK-SAME: fs = [4, 1]{{.*}} -> {{.*}}fs = [1, 4]
func.func @relayout(%x: tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #cols> {
  %y = "rtensor.relayout"(%x) {bytes = 32, cycles = 450} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #cols>
  return %y : tensor<8x8xf16, #cols>
}

#partial = #rtensor.layout<{fs = [2, 1], ft = [1, 1], rp = [0, 0], cores = 4}>
#summed = #rtensor.layout<{fs = [2, 1], ft = [1, 1], rp = [0, 0], cores = 4, scatter = 4}>

// CHECK-LABEL: func.func @reduce
// CHECK: "rtensor.reduce"(%{{.*}}) {bytes = 96 : i64, cores = 4 : i64, cycles = 200 : i64, kind = "sum", mode = "scatter"}
// CHECK-SAME: scatter = 4
func.func @reduce(%x: tensor<8x8xf32, #partial>) -> tensor<8x8xf32, #summed> {
  %y = "rtensor.reduce"(%x) {kind = "sum", mode = "scatter", cores = 4, bytes = 96, cycles = 200}
    : (tensor<8x8xf32, #partial>) -> tensor<8x8xf32, #summed>
  return %y : tensor<8x8xf32, #summed>
}

// CHECK-LABEL: func.func @operator
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf16>, %[[W:.*]]: tensor<8x2xf16>, %[[INIT:.*]]: tensor<4x2xf16>)
// CHECK: "rtensor.operator"() ({
// CHECK-NEXT: linalg.matmul ins(%[[X]], %[[W]] : {{.*}}) outs(%[[INIT]] :
// CHECK: linalg.exp
// CHECK: "rtensor.yield"
// CHECK: kind = "contraction", op_name = "/mlp/MatMul"
// CHECK-SAME: rtensor.plan = #rtensor.plan<{f_op = [2, 1, 1]}>
func.func @operator(%x: tensor<4x8xf16>, %w: tensor<8x2xf16>, %init: tensor<4x2xf16>) -> tensor<4x2xf16> {
  %y = "rtensor.operator"() ({
    %c = linalg.matmul ins(%x, %w : tensor<4x8xf16>, tensor<8x2xf16>) outs(%init : tensor<4x2xf16>) -> tensor<4x2xf16>
    %e = linalg.exp ins(%c : tensor<4x2xf16>) outs(%init : tensor<4x2xf16>) -> tensor<4x2xf16>
    "rtensor.yield"(%e) : (tensor<4x2xf16>) -> ()
  }) {op_name = "/mlp/MatMul", kind = "contraction", rtensor.plan = #rtensor.plan<{f_op = [2, 1, 1]}>}
     : () -> tensor<4x2xf16>
  return %y : tensor<4x2xf16>
}

#turning = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>

// CHECK-LABEL: func.func @nest
// CHECK: "rtensor.nest"
// CHECK: ^bb0(%{{.*}}: index, %[[W:.*]]: tensor<6x8xf16, {{.*}}>, %[[ACC:.*]]: tensor<6xf16>):
// CHECK: "rtensor.shift"(%[[W]]) {axis = 1 : i64, direction = "forward", pace = 4 : i64}
// CHECK: "rtensor.yield"(%[[ACC]])
// CHECK: axes = [1], {{.*}}rp = [4], steps = [2]
func.func @nest(%a: tensor<6x8xf16, #turning>, %c: tensor<6xf16>) -> tensor<6xf16> {
  %r = "rtensor.nest"(%a, %c) ({
  ^bb0(%pos: index, %w: tensor<6x8xf16, #turning>, %acc: tensor<6xf16>):
    %n = "rtensor.shift"(%w) {axis = 1, pace = 4, direction = "forward"}
      : (tensor<6x8xf16, #turning>) -> tensor<6x8xf16, #turning>
    "rtensor.yield"(%acc) : (tensor<6xf16>) -> ()
  }) {axes = [1], steps = [2], rp = [4], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}
     : (tensor<6x8xf16, #turning>, tensor<6xf16>) -> tensor<6xf16>
  return %r : tensor<6xf16>
}
