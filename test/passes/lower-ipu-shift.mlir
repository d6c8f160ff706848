// RUN: t10-opt --t10-partition="chip=test-4 f-op=2,2,1 ft=1x1x2,1x1x2,1x1x1" --t10-lower-ipu %s | filecheck %s

// Two tiles share every row of A and two every column of B; each keeps half of it, 4 of 8 elements, and the halves turn along
// k by 4: the whole window. One round: 16 bytes of A, then 16 of B.
// Rows are: source variable, tile, offset; target tile, offset; bytes, pieces, and the pieces' distances. Tiles 0 and 1
// exchange A's halves, and so do 2 and 3; B's change hands between 0 and 2, and between 1 and 3.
// CHECK: "ipu.pattern"() {{.*}}runs = dense<{{\[\[}}0, 1, 0, 0, 0, 16, 1, 0, 0], [1, 2, 0, 0, 16, 16, 1, 0, 0], [0, 0, 0, 1, 0, 16, 1, 0, 0], [1, 3, 0, 1, 16, 16, 1, 0, 0], [0, 3, 0, 2, 0, 16, 1, 0, 0], [1, 0, 0, 2, 16, 16, 1, 0, 0], [0, 2, 0, 3, 0, 16, 1, 0, 0], [1, 1, 0, 3, 16, 16, 1, 0, 0]]> : tensor<8x9xi32>, sym_name = "[[SHIFT:[0-9a-f]*]]"}
// From the buffer to A: offset 0 to offset 0, on every tile by itself. To B: from offset 16.
// CHECK-NEXT: "ipu.pattern"() {{.*}}runs = dense<{{\[\[}}0, 0, 0, 0, 0, 16, 1, 0, 0], [0, 1, 0, 1, 0, 16, 1, 0, 0], [0, 2, 0, 2, 0, 16, 1, 0, 0], [0, 3, 0, 3, 0, 16, 1, 0, 0]]> : tensor<4x9xi32>, sym_name = "[[FIRST:[0-9a-f]*]]"}
// CHECK-NEXT: "ipu.pattern"() {{.*}}runs = dense<{{\[\[}}0, 0, 16, 0, 0, 16, 1, 0, 0], [0, 1, 16, 1, 0, 16, 1, 0, 0], {{.*}}> : tensor<4x9xi32>, sym_name = "[[SECOND:[0-9a-f]*]]"}
// B goes home alone, from the second of two positions back, and is copied out as A was: the pattern is written once.
// CHECK-NEXT: "ipu.pattern"() {{.*}}runs = dense<{{\[\[}}0, 2, 0, 0, 0, 16, 1, 0, 0], [0, 3, 0, 1, 0, 16, 1, 0, 0], [0, 0, 0, 2, 0, 16, 1, 0, 0], [0, 1, 0, 3, 0, 16, 1, 0, 0]]> : tensor<4x9xi32>, sym_name = "[[HOME:[0-9a-f]*]]"}
// CHECK-NOT: "ipu.pattern"
// CHECK: "ipu.execute"() {compute_set = "sub_task:product"}
// CHECK-NEXT: "ipu.copy"(%[[A:.*]], %[[B:.*]], %[[BUFFER:.*]]) {bytes = 32 : i64, comment = "k advances forward by 4", {{.*}}pattern = "[[SHIFT]]", sym_name = "shift:product:k:forward"}
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}pattern = "[[FIRST]]", sym_name = "copy_out:product:k:forward"}
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[B]]) {{.*}}pattern = "[[SECOND]]", sym_name = "copy_out:product:k:forward.1"}
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:product.1"}
// CHECK-NEXT: "ipu.copy"(%[[B]], %[[BUFFER]]) {bytes = 16 : i64, {{.*}}pattern = "[[HOME]]", sym_name = "shift:product:k:backward"}
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[B]]) {{.*}}pattern = "[[FIRST]]"
// CHECK-NEXT: }) {op_name = "product"}
func.func @main(%a: tensor<2x8xf32>, %b: tensor<8x2xf32> {t10.weight}) -> tensor<2x2xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %c = linalg.matmul ins(%a, %b : tensor<2x8xf32>, tensor<8x2xf32>) outs(%i : tensor<2x2xf32>) -> tensor<2x2xf32>
    loc("product")
  return %c : tensor<2x2xf32>
}
