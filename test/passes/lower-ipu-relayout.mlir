// RUN: t10-opt --t10-partition="chip=test-4 f-op=4,1 operator=first" --t10-partition="chip=test-4 f-op=2,2 operator=second" --t10-lower-ipu %s | filecheck %s

// The first operator leaves a row of 4 on every tile; the second works on blocks of 2 x 2 of columns 1 to 3, followed by a
// column of zeros. The slice and the padding cost nothing: the exchange reads through them.
// Rows are: variable, source tile and offset, target tile and offset, bytes. Tile 0 needs columns 1 and 2 of rows 0 and 1,
// bytes 4 to 11 of tiles 0 and 1; tile 1 column 3, bytes 12 to 15, and zeros in slots 1 and 3, at bytes 4 and 12: two pieces
// of 4 bytes, 8 apart. Tiles 2 and 3 get the same of rows 2 and 3.
// CHECK: "ipu.pattern"() {constants = ["0.0"], fill_values = dense<0> : tensor<2xi32>, fills = dense<{{\[\[}}1, 4, 4, 2, 8], [3, 4, 4, 2, 8]]> : tensor<2x5xi32>,
// CHECK-SAME: runs = dense<{{\[\[}}0, 0, 4, 0, 0, 8, 1, 0, 0], [0, 1, 4, 0, 8, 8, 1, 0, 0], [0, 0, 12, 1, 0, 4, 1, 0, 0], [0, 1, 12, 1, 8, 4, 1, 0, 0], [0, 2, 4, 2, 0, 8, 1, 0, 0], [0, 3, 4, 2, 8, 8, 1, 0, 0], [0, 2, 12, 3, 0, 4, 1, 0, 0], [0, 3, 12, 3, 8, 4, 1, 0, 0]]>
// CHECK-SAME: sym_name = "[[PATTERN:[0-9a-f]*]]"
// CHECK: "ipu.execute"() {compute_set = "sub_task:first"}
// CHECK-NEXT: }) {op_name = "first"}
// CHECK-NEXT: "ipu.sequence"() ({

// The most that any tile gets from another: 8 bytes. Tile 0 copies the rest of its block from itself.
// CHECK-NEXT: "ipu.copy"({{.*}}) {bytes = 8 : i64, comment = "first:0.slice to where second reads it", {{.*}}kind = "relayout", op_name = "second", pattern = "[[PATTERN]]"
// CHECK-NEXT: "ipu.execute"() {compute_set = "sub_task:second"}
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %y = linalg.exp ins(%x : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32> loc("first")
  %s = tensor.extract_slice %y[0, 1] [4, 3] [1, 1] : tensor<4x4xf32> to tensor<4x3xf32>
  %p = tensor.pad %s low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x3xf32> to tensor<4x4xf32>
  %z = linalg.exp ins(%p : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32> loc("second")
  return %z : tensor<4x4xf32>
}
