// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1" --t10-lower-ipu %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x3,1x1x2,1x1x1" --t10-lower-ipu --t10-lower-ipu %s | filecheck %s

// The paper's example on 2 x 3 cores: A cut 3x, B 2x along k, pace 2. Six tiles work; the shift buffer is on all 16. B rests
// as it is used (3 x 1 per tile), and A is handed in as it is used (1 x 2 per tile).
// CHECK: "ipu.graph"
// CHECK: %[[BUFFER:.*]] = "ipu.alloc"() {address = 20480 : i64, element = ui8, mapping = {{\[}}[0, 15]], role = "buffer", shape = [8192], sym_name = "shift"}
// CHECK: %[[B:.*]] = "ipu.alloc"() {address = 28672 : i64, element = f32, mapping = {{\[}}[0, 5]], role = "weight", shape = [3, 1], sym_name = "idle:arg1"}
// CHECK: %[[A:.*]] = "ipu.alloc"() {{.*}}mapping = {{\[}}[0, 5]], role = "input", shape = [1, 2], sym_name = "input:arg0"}
// CHECK: %[[C:.*]] = "ipu.alloc"() {{.*}}role = "output", shape = [1, 1], sym_name = "value:product:0"}

// One vertex per tile, on a box of 1 x 1 x 2 points.
// CHECK: "ipu.vertex"(%[[C]]) {codelet = "fill"
// CHECK: "ipu.vertex"(%[[A]], %[[B]], %[[C]]) {box = [1, 1, 2], codelet = "sub_task", cycles = {{[0-9]+}} : i64, mapping = {{\[}}[0, 5]], op_name = "product"}

// Three sub-tasks, a shift of A and B between each two: 1 x 2 of A and 2 x 1 of B, 4 elements, 16 bytes. Then B, which
// turned in its place of rest, goes home: 2 more elements.
// CHECK: "ipu.execute"() {compute_set = "fill:product"}
// CHECK-NEXT: "ipu.repeat"() ({
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:product"}
// CHECK-NEXT: "ipu.copy"(%[[A]], %[[B]], %[[BUFFER]]) {axis = 2 : i64, bytes = 16 : i64, {{.*}}direction = "forward", kind = "shift"
// CHECK-NEXT: }) {count = 2 : i64}
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:product"}
// CHECK-NEXT: "ipu.copy"(%[[B]], %[[BUFFER]]) {axis = 2 : i64, bytes = 8 : i64, {{.*}}direction = "forward", kind = "shift"
// CHECK-NEXT: }) {op_name = "product"}
// CHECK: {chip = "test-16", memory_bytes = 638976 : i64, sym_name = "main", tiles = 16 : i64}
// CHECK-NOT: func.func
func.func @main(%a: tensor<2x6xf32>, %b: tensor<6x3xf32> {t10.weight}) -> tensor<2x3xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x3xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<2x6xf32>, tensor<6x3xf32>) outs(%i : tensor<2x3xf32>) -> tensor<2x3xf32>
    loc("product")
  return %c : tensor<2x3xf32>
}
