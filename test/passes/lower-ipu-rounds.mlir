// RUN: t10-opt --split-input-file --t10-lower-ipu="chip=%S/Inputs/short-4.yaml" %s | filecheck %s

// The shift buffer takes 64 bytes. What passes in one advance, 2 x 8 elements of A and 1 x 8 of B, are 64 and 32 bytes: two
// rounds, and what has come is copied out before the next begins.
// CHECK: sym_name = "shift:f32"
// CHECK: "ipu.execute"() {compute_set = "sub_task:rotated"}
// CHECK-NEXT: "ipu.copy"(%[[A:.*]], %[[BUFFER:.*]]) {bytes = 64 : i64, {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[A]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: "ipu.copy"(%[[B:.*]], %[[BUFFER]]) {bytes = 32 : i64, {{.*}}kind = "shift"
// CHECK-NEXT: "ipu.copy"(%[[BUFFER]], %[[B]]) {{.*}}kind = "copy_out"
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:rotated.1"}
func.func @main(%a: tensor<4x16xf32>, %b: tensor<16x2xf32> {t10.weight}) -> tensor<4x2xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x2xf32>) -> tensor<4x2xf32>
  %c = linalg.matmul {rtensor.forced = {f_op = [2, 2, 1], ft = [[1, 1, 2], [1, 1, 2], [1, 1, 1]]}}
    ins(%a, %b : tensor<4x16xf32>, tensor<16x2xf32>) outs(%init : tensor<4x2xf32>) -> tensor<4x2xf32> loc("rotated")
  return %c : tensor<4x2xf32>
}

// -----

// Partial sums of 4 x 8 elements on 4 tiles: a chunk is 8 elements, 32 bytes, and the buffer takes two of the three that a
// tile needs: 64 bytes, which are added, then 32, which the epilogue adds.
// Rows are: variable, source tile and offset, target tile and offset, bytes, pieces. Tile 0 takes chunk 0 of tiles 1 and 2,
// then of 3; tile 1 chunk 1, which begins 32 bytes further on, of tiles 2 and 3, then of 0.
// CHECK: runs = dense<{{\[\[}}0, 1, 0, 0, 0, 32, 1, 0, 0], [0, 2, 0, 0, 32, 32, 1, 0, 0], [0, 2, 32, 1, 0, 32, 1, 0, 0], [0, 3, 32, 1, 32, 32, 1, 0, 0], {{.*}}> : tensor<8x9xi32>, sym_name = "[[FIRST:[0-9a-f]*]]"}
// CHECK: runs = dense<{{\[\[}}0, 3, 0, 0, 0, 32, 1, 0, 0], [0, 0, 32, 1, 0, 32, 1, 0, 0], {{.*}}> : tensor<4x9xi32>, sym_name = "[[SECOND:[0-9a-f]*]]"}
// CHECK: "ipu.execute"() {compute_set = "sub_task:summed"}
// CHECK-NEXT: "ipu.copy"{{.*}}bytes = 64 : i64, {{.*}}kind = "reduce", {{.*}}pattern = "[[FIRST]]"
// CHECK-NEXT: "ipu.execute"() {compute_set = "combine:summed"}
// CHECK-NEXT: "ipu.copy"{{.*}}bytes = 32 : i64, {{.*}}cycles = 0 : i64, kind = "reduce", {{.*}}pattern = "[[SECOND]]"
// CHECK-NEXT: "ipu.execute"() {compute_set = "epilogue:summed"}
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x8xf32> {t10.weight}) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8xf32>) -> tensor<4x8xf32>
  %c = linalg.matmul {rtensor.forced = {f_op = [1, 1, 4], ft = [[1, 1, 1], [1, 1, 1], [1, 1, 1]]}}
    ins(%a, %b : tensor<4x8xf32>, tensor<8x8xf32>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32> loc("summed")
  return %c : tensor<4x8xf32>
}
