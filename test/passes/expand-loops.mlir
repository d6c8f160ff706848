// RUN: t10-opt --t10-expand %s | filecheck %s

// Two rotating axes are two nests, the dearer one outside (see align-pace-loops.mlir): what turns along n is shifted after
// every full sweep along k, what turns along k after every sub-task. The inner nest goes to and fro.
// CHECK: "rtensor.nest"(%[[A:.*]], %[[W:.*]], %{{.*}}) ({
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[A1:.*]]: tensor<12x8xf32{{.*}}>, %[[W1:.*]]: tensor<8x24xf32{{.*}}>, %[[C1:.*]]: tensor<12x24xf32
// CHECK-NEXT: %[[SWEPT:.*]] = "rtensor.nest"(%[[A1]], %[[W1]], %[[C1]]) ({
// CHECK-NEXT: ^bb0(%{{.*}}: index, %[[A2:.*]]: tensor<12x8xf32{{.*}}>, %[[W2:.*]]: tensor<8x24xf32{{.*}}>, %[[C2:.*]]: tensor<12x24xf32
// CHECK-NEXT: "rtensor.operator"(%[[A2]], %[[W2]], %[[C2]])
// CHECK: rtensor.sub_task = [4, 2, 2]
// CHECK-NEXT: "rtensor.shift"(%[[A2]]) {axis = 1 : i64, direction = "forward", pace = 2 : i64}
// CHECK-NOT: "rtensor.shift"(%[[W2]])
// CHECK: }) {axes = [2], {{.*}}rp = [2], steps = [4]}
// CHECK-NEXT: "rtensor.shift"(%[[W1]]) {axis = 1 : i64, direction = "forward", pace = 2 : i64}
// CHECK-NEXT: "rtensor.yield"(%[[SWEPT]])
// CHECK-NEXT: }) {axes = [1], {{.*}}rp = [2], steps = [3]}
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
module attributes {t10.chip = "test-16"} {
  func.func @main(%a: tensor<12x8xf32>, %w: tensor<8x24xf32>) -> tensor<12x24xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<12x24xf32>
    %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<12x24xf32>) -> tensor<12x24xf32>
    %c = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %w : tensor<12x8xf32>, tensor<8x24xf32>) outs(%init : tensor<12x24xf32>) attrs = {op_name = "product",
      rtensor.forced = {f_op = [3, 4, 1], ft = [[1, 1, 4], [1, 3, 1], [1, 1, 1]]},
      rtensor.candidates = [#rtensor.plan<{f_op = [3, 4, 1], ft = [[1, 1, 4], [1, 3, 1], [1, 1, 1]]}>]} {
    ^bb0(%x: f32, %y: f32, %acc: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
    } -> tensor<12x24xf32>
    return %c : tensor<12x24xf32>
  }
}
