// RUN: t10-opt --t10-expand %s | filecheck %s

// Two rotating axes are one loop over 3 * 4 = 12 positions, the dearer axis outside (see align-pace-loops.mlir). What turns
// along n stands at the first position, what turns along k at the second; along k the positions go to and fro.
// CHECK: #[[GRID:.*]] = #rtensor.grid<{{.*}}loop_order = [1, 2], {{.*}}steps = [1, 3, 4]}>
// CHECK: scf.for %[[T:.*]] = %c0 to %c12 step %c1 iter_args(%[[A:.*]] = %{{.*}}, %[[W:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}}) ->
// CHECK-NEXT: %[[P:.*]]:2 = "rtensor.position"(%[[T]]) {grid = #[[GRID]]} : (index) -> (index, index)
// CHECK-NEXT: %[[A1:.*]] = "rtensor.shift"(%[[A]], %[[P]]#1) {axis = 2 : i64} : (tensor<12x8xf32
// CHECK-NEXT: %[[W1:.*]] = "rtensor.shift"(%[[W]], %[[P]]#0) {axis = 1 : i64} : (tensor<8x24xf32
// CHECK-NEXT: %[[C1:.*]] = "rtensor.sub_task"(%[[C]], %[[P]]#0, %[[P]]#1) ({
// CHECK: scf.yield %[[A1]], %[[W1]], %[[C1]]
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
