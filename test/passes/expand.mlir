// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1" --t10-expand %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1" --t10-expand --canonicalize --cse --t10-expand --t10-verify-plan %s | filecheck %s

// The paper's example as a program: A (cut 3x) and B (cut 2x) turn by 2 along k, in 3 steps. B is a weight, stored with k
// innermost. At every time both stand at the position along k, and the sub-task adds a box of 1 x 1 x 2 points.
// CHECK: #[[GRID:.*]] = #rtensor.grid<{core_order = [0, 1], f_op = [2, 3, 1], lengths = [1, 1, 6], loop_order = [2], phases = {{.*}}, steps = [1, 1, 3]}>
// CHECK: #[[C:.*]] = #rtensor.layout<#[[GRID]], {fs = [2, 3], ft = [1, 1], map = #{{.*}}, rp = [0, 0]}>
// CHECK: #[[A:.*]] = #rtensor.layout<#[[GRID]], {fs = [2, 1], ft = [1, 3], map = #{{.*}}, rp = [0, 2]}>
// CHECK: #[[B:.*]] = #rtensor.layout<#[[GRID]], {fs = [3, 1], ft = [1, 2], map = #{{.*}}, rp = [0, 2]}>
// CHECK: func.func @main(%[[X:.*]]: tensor<2x6xf16>, %[[W:.*]]: tensor<3x6xf16> {{.*}}) -> tensor<2x3xf16, #[[C]]>
// CHECK: %[[A0:.*]] = "rtensor.resident"(%[[X]]) : (tensor<2x6xf16>) -> tensor<2x6xf16, #[[A]]>
// CHECK-NEXT: %[[B0:.*]] = "rtensor.resident"(%[[W]]) : (tensor<3x6xf16>) -> tensor<3x6xf16, #[[B]]>
// CHECK: %[[ZERO:.*]] = "rtensor.fill"() {combine = "sum"} : () -> tensor<2x3xf32, #[[C]]>
// CHECK: %[[SUM:.*]]:3 = scf.for %[[T:.*]] = %c0 to %c3 step %c1 iter_args(%[[AT:.*]] = %[[A0]], %[[BT:.*]] = %[[B0]], %[[ST:.*]] = %[[ZERO]])
// CHECK-NEXT: %[[P:.*]] = "rtensor.position"(%[[T]]) {grid = #[[GRID]]} : (index) -> index
// CHECK-NEXT: %[[AP:.*]] = "rtensor.shift"(%[[AT]], %[[P]]) {axis = 2 : i64}
// CHECK-NEXT: %[[BP:.*]] = "rtensor.shift"(%[[BT]], %[[P]]) {axis = 2 : i64}
// CHECK-NEXT: %[[NEXT:.*]] = "rtensor.sub_task"(%[[ST]], %[[P]]) ({
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[AP]], %[[BP]] : {{.*}}) outs(%[[ST]] :
// CHECK: scf.yield %[[AP]], %[[BP]], %[[NEXT]]

// B turned where it rests and goes home; then the sums are rounded to f16, in memory of their own.
// CHECK: %[[HOME:.*]] = "rtensor.shift"(%[[SUM]]#1, %c0{{.*}}) {axis = 2 : i64}
// CHECK-NEXT: "rtensor.rest"(%[[HOME]])
// CHECK-NEXT: %[[OUT:.*]] = "rtensor.allocate"() : () -> tensor<2x3xf16, #[[C]]>
// CHECK-NEXT: %[[END:.*]] = "rtensor.sub_task"(%[[OUT]]) ({
// CHECK-NEXT: linalg.generic {{.*}} ins(%[[SUM]]#2 : {{.*}}) outs(%[[OUT]] :
// CHECK: arith.truncf
// CHECK: "rtensor.yield"(%[[END]])
// CHECK-NEXT: }) {kind = "contraction", op_name = "product"}
// CHECK-NOT: rtensor.plan
func.func @main(%a: tensor<2x6xf16>, %b: tensor<6x3xf16> {t10.weight}) -> tensor<2x3xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<2x3xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<2x3xf16>) -> tensor<2x3xf16>
  %c = linalg.matmul ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%init : tensor<2x3xf16>) -> tensor<2x3xf16>
    loc("product")
  return %c : tensor<2x3xf16>
}
