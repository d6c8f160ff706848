// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1" --t10-lower-ipu %s | filecheck %s

// The paper's example: along k, A's window holds 2 elements and B's 3, and both turn by 2. A window is a circular buffer:
// element k lies in slot k mod 3 of B's. A sub-task of 2 points that begins in slot 2 goes on in slot 0: it is cut there, and
// the second piece runs in a compute set of its own on the tiles where that happens. Each of the three positions has both.
// CHECK: }) {comment = "box 1x1x2 at position [0, 0, 0]", cycles = [[CYCLES:[0-9]+]] : i64, kind = "sub_task", op_name = "product", sym_name = "sub_task:product"}
// CHECK: }) {comment = "box 1x1x2 at position [0, 0, 0]", cycles = {{[1-9][0-9]*}} : i64, kind = "sub_task", op_name = "product", sym_name = "sub_task:product.1"}

// The slots that a shift replaces wrap as well: 8 bytes from offset 8 of the shift buffer (behind A's) are copied out in one piece on
// tiles 0, 2, 3 and 5, and on tiles 1 and 4 in two, of 4 bytes, at offsets 0 and 8 of B: slots 0 and 2.
// CHECK: "ipu.pattern"() {{.*}}runs = dense<{{\[\[}}0, 0, 8, 0, 0, 8, 1, 0, 0], [0, 1, 8, 1, 0, 4, 2, 4, 8], [0, 2, 8, 2, 4, 8, 1, 0, 0], [0, 3, 8, 3, 0, 8, 1, 0, 0], [0, 4, 8, 4, 0, 4, 2, 4, 8], [0, 5, 8, 5, 4, 8, 1, 0, 0]]> : tensor<6x9xi32>, sym_name = "[[SEAM:[0-9a-f]*]]"}

// Three sub-tasks of two pieces, a shift of A and B between each two: 1 x 2 of A and 2 x 1 of B, 4 elements, 16 bytes. What
// has passed is copied out to A, then in B. After the last, B, which turned in its place of rest, goes home: 2 more elements.
// Offsets differ at every position, so nothing repeats.
// CHECK: "ipu.sequence"() ({
// CHECK-NEXT: "ipu.sequence"() ({
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:product"}
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:product.1"}
// CHECK-NEXT: "ipu.copy"(%[[A:.*]], %[[B:.*]], %[[BUFFER:.*]]) {bytes = 16 : i64, comment = "k advances forward by 2", {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {bytes = 0 : i64, cycles = 0 : i64, kind = "copy_out"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[B]]) {{.*}}kind = "copy_out", {{.*}}pattern = "[[SEAM]]"
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:product.2"}
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:product.3"}
// CHECK-NEXT: "ipu.copy"(%[[A]], %[[B]], %[[BUFFER]]) {bytes = 16 : i64, {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[B]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:product.4"}
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:product.5"}
// CHECK-NEXT: "ipu.copy"(%[[B]], %[[BUFFER]]) {bytes = 8 : i64, {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[B]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: }) {op_name = "product"}
func.func @main(%a: tensor<2x6xf32>, %b: tensor<6x3xf32> {t10.weight}) -> tensor<2x3xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<2x6xf32>, tensor<6x3xf32>) outs(%i : tensor<2x3xf32>) -> tensor<2x3xf32>
    loc("product")
  return %c : tensor<2x3xf32>
}
