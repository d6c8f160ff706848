// RUN: t10-opt --t10-partition="chip=test-4 f-op=4,1,1,1" --t10-lower-ipu %s | filecheck %s

// A convolution of 3 x 3 with a border of 1 on 4 x 4, a row of the output per tile: a window of 3 rows and 6 columns, 24
// bytes a row. Tile 0's first row is border: 24 bytes of zeros, and 4 more, where the next row's border begins: 28 bytes at 0.
// Between two rows lie 4 + 4 bytes of border, at 44, and 4 at the end, at 68. Tile 1 has three rows of the image: 4 bytes at
// 0, two pieces of 8 bytes 24 apart from 20 on, 4 bytes at 68. On tile 3 the last row is border, from 44 on: 28 bytes.
// CHECK: %[[X:.*]] = "ipu.alloc"() {{.*}}role = "activation", shape = [1, 1, 3, 6], sym_name = "operand:conv:0"}
// CHECK: "ipu.pattern"() {constants = ["0.0"], fill_values = dense<0> : tensor<12xi32>, fills = dense<{{\[\[}}0, 0, 28, 1, 0], [0, 44, 8, 1, 0], [0, 68, 4, 1, 0], [1, 0, 4, 1, 0], [1, 20, 8, 2, 24], [1, 68, 4, 1, 0],
// CHECK-SAME: [3, 44, 28, 1, 0]]> : tensor<12x5xi32>

// The image itself: row 0 lies on tile 0 and goes to byte 28 of tile 0 (row 1, column 1 of the window) and 4 of tile 1.
// CHECK-SAME: runs = dense<{{\[\[}}0, 0, 0, 0, 28, 16, 1, 0, 0], [0, 1, 0, 0, 52, 16, 1, 0, 0], [0, 0, 0, 1, 4, 16, 1, 0, 0],
// CHECK: "ipu.copy"(%{{.*}}, %[[X]]) {bytes = 32 : i64, {{.*}}kind = "relayout"
func.func @main(%x: tensor<1x1x4x4xf32>, %w: tensor<1x1x3x3xf32> {t10.weight}) -> tensor<1x1x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x1x4x4xf32> to tensor<1x1x6x6xf32>
  %e = tensor.empty() : tensor<1x1x4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : tensor<1x1x6x6xf32>, tensor<1x1x3x3xf32>) outs(%init : tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32> loc("conv")
  return %r : tensor<1x1x4x4xf32>
}
