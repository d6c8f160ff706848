// RUN: t10-opt --t10-partition="chip=test-4 f-op=4,1,1 ft=1x1x1,1x1x1,1x1x1" --t10-lower-ipu %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-4 f-op=2,1,2 ft=2x1x1,1x1x1,2x1x1" --t10-lower-ipu %s | filecheck %s --check-prefix=TURN

// Every tile looks up one of 4 indices in the whole table: 8 rows of 2. Indices are 8 bytes, as the model has them.
// CHECK: %[[TABLE:.*]] = "ipu.alloc"() {{.*}}role = "weight", shape = [16], sym_name = "idle:arg0"}
// CHECK: %[[INDEX:.*]] = "ipu.alloc"() {{.*}}element = i64, {{.*}}role = "input", shape = [1], sym_name = "input:arg1"}
// CHECK: "ipu.vertex"(%[[INDEX]], %[[TABLE]], %[[OUT:[^,)]*]]{{.*}}) {{.*}}words = [{offset = 0 : i64, operand = 0 : i64}, {offset = 0 : i64, operand = 1 : i64}, {offset = 0 : i64, operand = 2 : i64}
// CHECK: }) {comment = "box 1x2x8 at position [0, 0, 0]", {{.*}}kind = "sub_task"
// CHECK-NOT: compute_set = "fill:lookup"
// CHECK: "ipu.execute"() {compute_set = "sub_task:lookup"}
// CHECK-NEXT: }) {op_name = "lookup"}

// The table cut in two: two tiles have half of it each and share 2 indices and their results, which turn. Results start from
// zero, a row that lies in the other half adds nothing, and after one step every result has passed both halves.
// One phase takes an index (8 bytes) and a result row (2 * 4 bytes); the second copy belongs to it and costs no cycles more.
// TURN: "ipu.execute"() {compute_set = "fill:lookup"}
// TURN-NEXT: "ipu.execute"() {compute_set = "sub_task:lookup"}
// TURN-NEXT: "ipu.copy"(%[[INDEX:.*]], %[[WIDE:.*]]) {bytes = 8 : i64, {{.*}}kind = "shift"
// TURN-NEXT: "ipu.copy"(%[[OUT:.*]], %[[NARROW:.*]]) {bytes = 8 : i64, {{.*}}cycles = 0 : i64, kind = "shift"
// TURN-NEXT: "ipu.copy"(%[[WIDE]], %[[INDEX]]) {{.*}}kind = "copy_out"
// TURN-NEXT: "ipu.copy"(%[[NARROW]], %[[OUT]]) {{.*}}kind = "copy_out"
// TURN-NEXT: "ipu.execute"() {compute_set = "sub_task:lookup"}
// TURN-NEXT: }) {op_name = "lookup"}
func.func @main(%table: tensor<8x2xf32> {t10.weight}, %i: tensor<4xi64>) -> tensor<4x2xf32> {
  %e = tensor.empty() : tensor<4x2xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
    ins(%i : tensor<4xi64>) outs(%e : tensor<4x2xf32>) {
  ^bb0(%p: i64, %o: f32):
    %column = linalg.index 1 : index
    %x = arith.index_cast %p : i64 to index
    %u = tensor.extract %table[%x, %column] : tensor<8x2xf32>
    linalg.yield %u : f32
  } -> tensor<4x2xf32> loc("lookup")
  return %r : tensor<4x2xf32>
}
