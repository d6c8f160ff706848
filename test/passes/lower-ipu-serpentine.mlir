// RUN: t10-opt --t10-lower-ipu %s | filecheck %s
// RUN: t10-opt --t10-lower-ipu %s | grep -c "kind = .shift." | filecheck %s --check-prefix=SHIFTS
// RUN: t10-opt --t10-lower-ipu %s | grep -c "kind = .sub_task." | filecheck %s --check-prefix=TASKS

// Two loops: n in 3 steps outside (rings of W's columns), k in 4 inside (rings of A's). The inner loop runs there, back, and
// there again; the outer one always advances. 3 * 4 = 12 sub-tasks, and a shift between each two of them: 3 * 3 = 9 along k
// and 2 along n.
// TASKS: {{^}}12{{$}}
// SHIFTS: {{^}}11{{$}}
// CHECK: compute_set = "sub_task:product"
// CHECK-NEXT: "ipu.copy"(%[[A:.*]], %[[BUFFER:.*]]) {{.*}}comment = "k advances forward by 2", {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: compute_set = "sub_task:product.1"
// CHECK-NEXT: "ipu.copy"(%[[A]], %[[BUFFER]]) {{.*}}comment = "k advances forward by 2", {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: compute_set = "sub_task:product.2"
// CHECK-NEXT: "ipu.copy"(%[[A]], %[[BUFFER]]) {{.*}}comment = "k advances forward by 2", {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: compute_set = "sub_task:product.3"
// CHECK-NEXT: "ipu.copy"(%[[W:.*]], %[[BUFFER]]) {{.*}}comment = "n advances forward by 2", {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[W]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: compute_set = "sub_task:product.4"
// CHECK-NEXT: "ipu.copy"(%[[A]], %[[BUFFER]]) {{.*}}comment = "k advances backward by 2", {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: compute_set = "sub_task:product.5"
// CHECK-NEXT: "ipu.copy"(%[[A]], %[[BUFFER]]) {{.*}}comment = "k advances backward by 2", {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: compute_set = "sub_task:product.6"
// CHECK-NEXT: "ipu.copy"(%[[A]], %[[BUFFER]]) {{.*}}comment = "k advances backward by 2", {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: compute_set = "sub_task:product.7"
// CHECK-NEXT: "ipu.copy"(%[[W]], %[[BUFFER]]) {{.*}}comment = "n advances forward by 2", {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[W]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: compute_set = "sub_task:product.8"
// CHECK-NEXT: "ipu.copy"(%[[A]], %[[BUFFER]]) {{.*}}comment = "k advances forward by 2", {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: compute_set = "sub_task:product.9"
// CHECK-NEXT: "ipu.copy"(%[[A]], %[[BUFFER]]) {{.*}}comment = "k advances forward by 2", {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: compute_set = "sub_task:product.10"
// CHECK-NEXT: "ipu.copy"(%[[A]], %[[BUFFER]]) {{.*}}comment = "k advances forward by 2", {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: compute_set = "sub_task:product.11"
// CHECK-NEXT: }) {op_name = "product"}
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
