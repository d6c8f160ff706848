// RUN: t10-opt --t10-lower-ipu="chip=test-4" %s | filecheck %s

// All 4 tiles need the whole weight, 4 x 4 in f32; each keeps a quarter (idle level 4): row n of its transpose, elements 4n
// to 4n + 3. Setup brings a tile the 3 rows it lacks, 3 * 16 = 48 bytes, and copies its own.
// CHECK: %[[IDLE:.*]] = "ipu.alloc"() {{.*}}role = "weight", shape = [4], sym_name = "idle:arg1"}
// CHECK: %[[ACTIVE:.*]] = "ipu.alloc"() {{.*}}fs=[1, 1] ft=[1, 1] {{.*}}role = "weight", shape = [4, 4], sym_name = "operand:product:1"}
// CHECK: "ipu.table"() {elements = dense<{{\[\[}}0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]> : tensor<4x4xi32>, sym_name = "[[TABLE:table[0-9]]]"}
// CHECK: "ipu.host"(%[[IDLE]]) {direction = "weight", {{.*}}table = "[[TABLE]]"
// CHECK: "ipu.sequence"() ({
// CHECK-NEXT: "ipu.sequence"() ({
// CHECK-NEXT: "ipu.copy"(%[[IDLE]], %[[ACTIVE]]) {bytes = 48 : i64, comment = "arg1 to where product reads it", {{.*}}kind = "setup"
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:product"}
func.func @main(%x: tensor<4x4xf32>, %w: tensor<4x4xf32> {t10.weight}) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.matmul {rtensor.forced = {f_op = [4, 1, 1], idle_level = 4}}
    ins(%x, %w : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32> loc("product")
  return %y : tensor<4x4xf32>
}
