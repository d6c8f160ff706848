// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1" --t10-expand %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1" --t10-expand --canonicalize --cse --t10-expand --t10-verify-plan %s | filecheck %s

// The paper's example as a program: A (cut 3x) and B (cut 2x) turn by 2 along k, in 3 steps. The accumulator starts from
// zero, every sub-task adds a box of 1 x 1 x 2 points, then both are shifted along their dim 1: B is a
// weight, stored with k innermost.
// CHECK: "rtensor.operator"(%{{.*}}, %arg1) ({
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<2x3xf32
// CHECK-NEXT: %[[SUM:.*]] = "rtensor.nest"(%[[A:.*]], %[[B:.*]], %[[ZERO]]) ({
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[AK:.*]]: tensor<2x6xf16{{.*}}>, %[[BK:.*]]: tensor<3x6xf16{{.*}}>, %[[ACC:.*]]: tensor<2x3xf32
// CHECK-NEXT: %[[NEXT:.*]] = "rtensor.operator"(%[[AK]], %[[BK]], %[[ACC]]) ({
// CHECK: linalg.generic
// CHECK: kind = "contraction", op_name = "product"{{.*}} rtensor.sub_task = [1, 1, 2]}
// CHECK-NEXT: "rtensor.shift"(%[[AK]]) {axis = 1 : i64, direction = "forward", pace = 2 : i64}
// CHECK-NEXT: "rtensor.shift"(%[[BK]]) {axis = 1 : i64, direction = "forward", pace = 2 : i64}
// CHECK-NEXT: "rtensor.yield"(%[[NEXT]])
// CHECK-NEXT: }) {axes = [2], {{.*}}rp = [2], steps = [3]}

// B turned where it rests and goes home; then the sums are rounded to f16: the epilogue is an operator of its own.
// CHECK-NEXT: "rtensor.shift"(%[[B]]) {axis = 1 : i64, direction = "forward", pace = 2 : i64}
// CHECK-NEXT: %[[OUT:.*]] = "rtensor.operator"(%[[SUM]]) ({
// CHECK: arith.truncf
// CHECK: kind = "elementwise", op_name = "product"
// CHECK-NEXT: "rtensor.yield"(%[[OUT]])
// CHECK: rtensor.plan = #rtensor.plan<{
func.func @main(%a: tensor<2x6xf16>, %b: tensor<6x3xf16> {t10.weight}) -> tensor<2x3xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<2x3xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<2x3xf16>) -> tensor<2x3xf16>
  %c = linalg.matmul ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%init : tensor<2x3xf16>) -> tensor<2x3xf16>
    loc("product")
  return %c : tensor<2x3xf16>
}
