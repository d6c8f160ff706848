// RUN: t10-opt --t10-lower-ipu %s | filecheck %s

// Two loops: n in 3 steps outside (rings of W's columns), k in 4 inside (rings of A's). 3 is odd: the inner loop runs there,
// back, and there again; the outer one always advances. 3 * 4 sub-tasks, 3 * 3 shifts along k, 2 along n.
// CHECK: compute_set = "fill:product"
// CHECK-NEXT: "ipu.repeat"() ({
// CHECK-NEXT: compute_set = "sub_task:product"
// CHECK-NEXT: axis = 2 : i64, {{.*}}direction = "forward", kind = "shift"
// CHECK-NEXT: }) {count = 3 : i64}
// CHECK-NEXT: compute_set = "sub_task:product"
// CHECK-NEXT: axis = 1 : i64, {{.*}}direction = "forward", kind = "shift"
// CHECK-NEXT: "ipu.repeat"() ({
// CHECK-NEXT: compute_set = "sub_task:product"
// CHECK-NEXT: axis = 2 : i64, {{.*}}direction = "backward", kind = "shift"
// CHECK-NEXT: }) {count = 3 : i64}
// CHECK-NEXT: compute_set = "sub_task:product"
// CHECK-NEXT: axis = 1 : i64, {{.*}}direction = "forward", kind = "shift"
// CHECK-NEXT: "ipu.repeat"() ({
// CHECK-NEXT: compute_set = "sub_task:product"
// CHECK-NEXT: axis = 2 : i64, {{.*}}direction = "forward", kind = "shift"
// CHECK-NEXT: }) {count = 3 : i64}
// CHECK-NEXT: compute_set = "sub_task:product"
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
