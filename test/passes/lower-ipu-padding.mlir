// RUN: t10-opt --t10-partition="chip=test-4 f-op=4,1,1,1" --t10-lower-ipu %s | filecheck %s

// A convolution of 3 x 3 with a border of 1 on 4 x 16, a row of the output per tile: a window of 3 rows and 18 columns, 72
// bytes a row. Tile 0's first row is border: 72 bytes of zeros, and 4 more, where the next row's border begins: 76 bytes at 0.
// Between two rows lie 4 + 4 bytes of border, at 140, and 4 at the end, at 212. Tile 1 has three rows of the image: 4 bytes at
// 0, two pieces of 8 bytes 72 apart from 68 on, 4 bytes at 212. On tile 3 the last row is border, from 140 on: 76 bytes.
// CHECK: %[[X:.*]] = "ipu.alloc"() {{.*}}role = "activation", shape = [1, 1, 3, 18], sym_name = "operand:conv:0"}
// CHECK: "ipu.pattern"() {constants = ["0.0"], fill_values = dense<0> : tensor<12xi32>, fills = dense<{{\[\[}}0, 0, 76, 1, 0], [0, 140, 8, 1, 0], [0, 212, 4, 1, 0], [1, 0, 4, 1, 0], [1, 68, 8, 2, 72], [1, 212, 4, 1, 0],
// CHECK-SAME: [3, 140, 76, 1, 0]]> : tensor<12x5xi32>

// The image itself: it lies as its windows do, rows of 64 bytes 72 apart from byte 76 on (on tile 0) or 4 on. The first tile
// that holds a row gives it to others. Rows 0 and 1 of tile 0 go to byte 76 of tile 0 and 4 of tile 1; row 2, at 148 on tile 1,
// goes to tiles 1 to 3.
// CHECK-SAME: runs = dense<{{\[\[}}0, 0, 76, 0, 76, 64, 2, 72, 72], [0, 0, 76, 1, 4, 64, 2, 72, 72], [0, 1, 148, 1, 148, 64, 1, 0, 0],
// CHECK: "ipu.copy"(%{{.*}}, %[[X]]) {bytes = 128 : i64, {{.*}}kind = "relayout"
func.func @main(%x: tensor<1x1x4x16xf32>, %w: tensor<1x1x3x3xf32> {t10.weight}) -> tensor<1x1x4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<1x1x4x16xf32> to tensor<1x1x6x18xf32>
  %e = tensor.empty() : tensor<1x1x4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1x4x16xf32>) -> tensor<1x1x4x16xf32>
  %r = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : tensor<1x1x6x18xf32>, tensor<1x1x3x3xf32>) outs(%init : tensor<1x1x4x16xf32>) -> tensor<1x1x4x16xf32> loc("conv")
  return %r : tensor<1x1x4x16xf32>
}
