// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1" --t10-lower-ipu %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1" --t10-lower-ipu --t10-lower-ipu %s | filecheck %s

// The paper's example on 2 x 3 cores: A cut 3x, B cut 2x along k. The parts of the graph, in order; what the program does is
// in lower-ipu-seam.mlir. Six tiles work; the shift buffer is on all 16. B rests as it is used (1 x 3 per tile: it is stored
// with k innermost), and A is handed in as it is used (1 x 2 per tile).
// CHECK: module attributes {t10.chip = "test-16", t10.cost_model = "ipu"} {
// CHECK-NEXT: "ipu.graph"() ({

// Addresses count from 0x4C000, where a tile's memory begins. The interleaved region begins at 0x80000, 212992 bytes further
// on, where the largest buffer lies: that of the shifts. A, B and C lie in other memory elements than each other, so that one
// bundle may access any two of them (test_emit_placement.py).
// CHECK-NEXT: %[[B:.*]] = "ipu.alloc"() {address = {{[0-9]+}} : i64, {{.*}}element = f32, mapping = {{\[\[}}0, 5]], role = "weight", shape = [3], sym_name = "idle:arg1"}
// CHECK-NEXT: %[[A:.*]] = "ipu.alloc"() {address = {{[0-9]+}} : i64, {{.*}}mapping = {{\[\[}}0, 5]], role = "input", shape = [2], sym_name = "input:arg0"}
// CHECK-NEXT: %[[C:.*]] = "ipu.alloc"() {address = {{[0-9]+}} : i64, comment = "product:0: 2x3 f32, fs=[2, 3] ft=[1, 1] rp=[0, 0]", {{.*}}role = "output", shape = [1, 1], sym_name = "value:product:0"}
// CHECK-NEXT: "ipu.alloc"() {address = 212992 : i64, {{.*}}element = f32, mapping = {{\[\[}}0, 15]], role = "buffer", shape = [2048], sym_name = "shift:f32"}

// A codelet is defined once; vertices point into the variables, a word per field, and their words lie behind the code.
// CHECK: "ipu.codelet"() {{.*}}assembly = ".section .text.__runCodelet_t10__[[NAME:[A-Za-z0-9_]*]]{{.*}}kind = "multi"{{.*}}sym_name = "[[NAME]]"
// CHECK: "ipu.compute_set"() ({
// CHECK-NEXT: "ipu.vertex"(%[[A]], %[[B]], %[[C]]{{.*}}) {codelet = "{{[A-Za-z0-9_]*}}", cycles = {{[0-9]+}} : i64, mapping = {{.*}}, op_name = "product", state = {{[0-9]+}} : i64, words = [{offset = {{[^}]*}}, operand = 0 : i64}, {offset = {{[^}]*}}, operand = 1 : i64}, {offset = 0 : i64, operand = 2 : i64}
// CHECK: }) {comment = "box 1x1x2 at position [0, 0, 0]", {{.*}}kind = "sub_task", op_name = "product", sym_name = "sub_task:product"}

// Patterns stand once, however many copies use them, then what crosses the host's link: tile 0 begins with elements 0, 1, 2
// of B (row 0 of its transpose, k = 0 to 2) and 0, 1 of A (row 0, k = 0 and 1).
// CHECK: "ipu.pattern"()
// CHECK: "ipu.table"() {elements = dense<{{\[\[}}0, 1, 2], {{.*}}> : tensor<6x3xi32>, sym_name = "table0"}
// CHECK-NEXT: "ipu.host"(%[[B]]) {direction = "weight", element = f32, name = "arg1", pieces = [{fill = "0", operand = 0 : i64, table = "table0"}], shape = [3, 6]}
// CHECK-NEXT: "ipu.table"() {elements = dense<{{\[\[}}0, 1], {{.*}}> : tensor<6x2xi32>, sym_name = "table1"}
// CHECK-NEXT: "ipu.host"(%[[A]]) {direction = "input", {{.*}}shape = [2, 6]}
// CHECK-NEXT: "ipu.table"() {elements = dense<{{\[\[}}0], [1], [2], [3], [4], [5]]> : tensor<6x1xi32>, sym_name = "table2"}
// CHECK-NEXT: "ipu.host"(%[[C]]) {direction = "output", {{.*}}name = "result0", {{.*}}shape = [2, 3]}

// The program: a sequence per operator. The chip reserves 20480 bytes for code and what belongs to it; data comes behind.
// CHECK-NEXT: "ipu.sequence"() ({
// CHECK-NEXT: "ipu.sequence"() ({
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:product"}
// CHECK: }) {op_name = "product"}
// CHECK-NEXT: })
// CHECK-NEXT: }) {chip = "test-16", memory_base = 311296 : i64, memory_bytes = 638976 : i64, regions = {code = 0 : i64, data = 20480 : i64, {{.*}}}, sym_name = "main", tiles = 16 : i64}
// CHECK-NOT: func.func
func.func @main(%a: tensor<2x6xf32>, %b: tensor<6x3xf32> {t10.weight}) -> tensor<2x3xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<2x6xf32>, tensor<6x3xf32>) outs(%i : tensor<2x3xf32>) -> tensor<2x3xf32>
    loc("product")
  return %c : tensor<2x3xf32>
}
