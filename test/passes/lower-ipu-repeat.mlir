// RUN: t10-opt --t10-partition="chip=test-16 f-op=4,4,1 ft=1x1x4,1x1x4,1x1x1" --t10-lower-ipu %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-16 f-op=4,4,1 ft=1x1x4,1x1x1,1x1x1" --t10-lower-ipu %s | filecheck %s --check-prefix=WINDOW

// Rings of 4 tiles for both operands: windows hold 8 / 4 = 2 elements and turn by 2, so that every sub-task reads slots 0 and
// 1. The first sets its sum, the other three add to it: they are the same compute set, and the loop is one.
// CHECK: "ipu.execute"() {compute_set = "sub_task:product"}
// CHECK-NEXT: "ipu.repeat"() ({
// CHECK-NEXT: "ipu.copy"(%[[A:.*]], %[[B:.*]], %[[BUFFER:.*]]) {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[B]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:product.1"}
// CHECK-NEXT: }) {count = 3 : i64}
// CHECK-NEXT: "ipu.copy"(%[[B]], %[[BUFFER]]) {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[B]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: }) {op_name = "product"}

// Only A turns: B holds all of k, and every sub-task reads other slots of it. Nothing repeats.
// WINDOW: compute_set = "sub_task:product"
// WINDOW-NOT: "ipu.repeat"
// WINDOW: compute_set = "sub_task:product.1"
// WINDOW-NOT: "ipu.repeat"
// WINDOW: compute_set = "sub_task:product.2"
// WINDOW-NOT: "ipu.repeat"
// WINDOW: compute_set = "sub_task:product.3"
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x4xf32> {t10.weight}) -> tensor<4x4xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x4xf32>) outs(%i : tensor<4x4xf32>) -> tensor<4x4xf32>
    loc("product")
  return %c : tensor<4x4xf32>
}
