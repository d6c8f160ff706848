// RUN: t10-opt --t10-fuse %s | filecheck %s
// Quantised, dequantised by 0.5, transposed and quantised by 0.5 again: the byte that comes out is the first one.

// CHECK-LABEL: func.func @twice
// CHECK: arith.trunci
// CHECK-NOT: arith.trunci
// CHECK: return
func.func @twice(%x: tensor<4x8xf32> {t10.name = "x"}) -> (tensor<8x4xi8> {t10.name = "y", t10.type = "ui8"}) {
  %scale = arith.constant 5.000000e-01 : f32
  %low = arith.constant 0.000000e+00 : f32
  %high = arith.constant 2.550000e+02 : f32
  %e = tensor.empty() : tensor<4x8xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xi8>) {
  ^bb0(%a: f32, %o: i8):
    %0 = arith.divf %a, %scale : f32
    %1 = math.roundeven %0 : f32
    %2 = arith.maximumf %1, %low : f32
    %3 = arith.minimumf %2, %high : f32
    %4 = arith.fptosi %3 : f32 to i32
    %5 = arith.trunci %4 : i32 to i8
    linalg.yield %5 : i8
  } -> tensor<4x8xi8>
  %e1 = tensor.empty() : tensor<8x4xi8>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%q : tensor<4x8xi8>) outs(%e1 : tensor<8x4xi8>) {
  ^bb0(%a: i8, %o: i8):
    %0 = arith.uitofp %a : i8 to f32
    %1 = arith.mulf %0, %scale : f32
    %2 = arith.divf %1, %scale : f32
    %3 = math.roundeven %2 : f32
    %4 = arith.maximumf %3, %low : f32
    %5 = arith.minimumf %4, %high : f32
    %6 = arith.fptosi %5 : f32 to i32
    %7 = arith.trunci %6 : i32 to i8
    linalg.yield %7 : i8
  } -> tensor<8x4xi8>
  return %y : tensor<8x4xi8>
}
