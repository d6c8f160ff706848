// RUN: t10-opt --t10-fuse %s -o %t.mlir
// RUN: filecheck %s --input-file=%t.mlir
// RUN: t10-opt --t10-fuse %t.mlir | diff %t.mlir -
// RUN: t10-opt --t10-fuse=orders=keep %s | filecheck %s --check-prefix=KEEP
// RUN: not t10-opt --t10-fuse=orders=given %s 2>&1 | filecheck %s --check-prefix=BAD

// BAD: orders is 'given' (expected matrix or keep)

// A weight is stored with the summed axis innermost. The host does that: the argument has the new type, and says how.
// CHECK-DAG: #[[XK:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[WK:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: func.func @weight
// CHECK-SAME: %[[W:arg1]]: tensor<6x8xf32> {t10.order = array<i64: 1, 0>, t10.weight}
// CHECK: linalg.generic {indexing_maps = [#[[XK]], #[[WK]], {{.*}} ins(%arg0, %[[W]] :
// KEEP-LABEL: func.func @weight
// KEEP-SAME: %arg1: tensor<8x6xf32> {t10.weight}
func.func @weight(%x: tensor<4x8xf32>, %w: tensor<8x6xf32> {t10.weight}) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// An input is stored as a weight is: the host puts it in order.
// CHECK-LABEL: func.func @input
// CHECK-SAME: %[[B:arg1]]: tensor<6x8xf32> {t10.order = array<i64: 1, 0>})
// CHECK-NOT: kind = "transpose"
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[B]] :
// KEEP-LABEL: func.func @input
// KEEP-NOT: kind = "transpose"
// KEEP: return
func.func @input(%a: tensor<4x8xf32>, %b: tensor<8x6xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// Readers want it in different orders: a transpose is put in between for one of them, as a view.
// CHECK-LABEL: func.func @crossed
// CHECK-SAME: (%arg0: tensor<64x64xf16>, %arg1: tensor<64x64xf16>)
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<64x64xf16>) outs({{.*}} : tensor<64x64xf16>) attrs = {{ *}}{kind = "transpose"}
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[T]] :
// CHECK: %[[U:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<64x64xf16>) outs({{.*}} : tensor<64x64xf16>) attrs = {{ *}}{kind = "transpose"}
// CHECK: linalg.generic {{.*}} ins(%arg1, %[[U]] :
func.func @crossed(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> (tensor<64x64xf16>, tensor<64x64xf16>) {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<64x64xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<64x64xf16>) -> tensor<64x64xf16>
  %y = linalg.matmul ins(%a, %b : tensor<64x64xf16>, tensor<64x64xf16>) outs(%init : tensor<64x64xf16>) -> tensor<64x64xf16>
  %z = linalg.matmul ins(%b, %a : tensor<64x64xf16>, tensor<64x64xf16>) outs(%init : tensor<64x64xf16>) -> tensor<64x64xf16>
  return %y, %z : tensor<64x64xf16>, tensor<64x64xf16>
}

// An argument that lies somewhere already has its order.
// CHECK-LABEL: func.func @lying
// CHECK-SAME: tensor<64x48xf16, #linear>)
// CHECK: kind = "transpose"
func.func @lying(%a: tensor<32x64xf16>, %b: tensor<64x48xf16, #rtensor.linear<{cores = 16}>>) -> tensor<32x48xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<32x48xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<32x48xf16>) -> tensor<32x48xf16>
  %y = linalg.matmul ins(%a, %b : tensor<32x64xf16>, tensor<64x48xf16, #rtensor.linear<{cores = 16}>>)
    outs(%init : tensor<32x48xf16>) -> tensor<32x48xf16>
  return %y : tensor<32x48xf16>
}

// A matrix times a vector has nothing for the matrix engine: it stays as it is.
// CHECK-LABEL: func.func @vector
// CHECK-NOT: kind = "transpose"
// CHECK: return
func.func @vector(%a: tensor<8xf32>, %b: tensor<8x6xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %y = linalg.vecmat ins(%a, %b : tensor<8xf32>, tensor<8x6xf32>) outs(%init : tensor<6xf32>) -> tensor<6xf32>
  return %y : tensor<6xf32>
}

// The second product sums over the rows of the first one's result: that is made with its rows innermost.
// CHECK-LABEL: func.func @values
// CHECK-SAME: tensor<5x8xf32> {t10.order = array<i64: 1, 0>, t10.weight}
// CHECK: %[[V:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<5x7xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[V]] : tensor<4x7xf32>, tensor<5x7xf32>)
// CHECK-NOT: kind = "transpose"
// CHECK: return %{{.*}} : tensor<4x5xf32>
func.func @values(%x: tensor<7x8xf32>, %p: tensor<4x7xf32>, %w: tensor<8x5xf32> {t10.weight}) -> tensor<4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7x5xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<7x5xf32>) -> tensor<7x5xf32>
  %v = linalg.matmul ins(%x, %w : tensor<7x8xf32>, tensor<8x5xf32>) outs(%i : tensor<7x5xf32>) -> tensor<7x5xf32>
  %f = tensor.empty() : tensor<4x5xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<4x5xf32>) -> tensor<4x5xf32>
  %y = linalg.matmul ins(%p, %v : tensor<4x7xf32>, tensor<7x5xf32>) outs(%j : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// Feature maps have their channels innermost from the first convolution to the last one, through paddings and what is
// computed element by element in between, and so has the picture; only at the end stands a transpose.
// CHECK-LABEL: func.func @feature_maps
// CHECK-SAME: %arg0: tensor<1x10x10x4xf32> {t10.order = array<i64: 0, 2, 3, 1>}
// CHECK-SAME: tensor<8x3x3x4xf32> {t10.order = array<i64: 0, 2, 3, 1>, t10.weight}
// CHECK-NOT: kind = "transpose"
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<1x8x8x8xf32>)
// CHECK: tensor.pad %{{.*}} low[0, 1, 1, 0] high[0, 1, 1, 0]
// CHECK: : tensor<1x8x8x8xf32> to tensor<1x10x10x8xf32>
// CHECK-NOT: kind = "transpose"
// CHECK: kind = "convolution"
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<1x6x8x8xf32>) attrs = {{ *}}{kind = "transpose"}
func.func @feature_maps(%x: tensor<1x4x10x10xf32>, %w0: tensor<8x4x3x3xf32> {t10.weight}, %w1: tensor<6x8x3x3xf32> {t10.weight}) -> tensor<1x6x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x8x8x8xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %c = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%x, %w0 : tensor<1x4x10x10xf32>, tensor<8x4x3x3xf32>) outs(%i : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %t = linalg.tanh ins(%c : tensor<1x8x8x8xf32>) outs(%e : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %p = tensor.pad %t low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %h: index, %v: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x8xf32> to tensor<1x8x10x10xf32>
  %f = tensor.empty() : tensor<1x6x8x8xf32>
  %j = linalg.fill ins(%zero : f32) outs(%f : tensor<1x6x8x8xf32>) -> tensor<1x6x8x8xf32>
  %y = linalg.conv_2d_nchw_fchw {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w1 : tensor<1x8x10x10xf32>, tensor<6x8x3x3xf32>) outs(%j : tensor<1x6x8x8xf32>) -> tensor<1x6x8x8xf32>
  return %y : tensor<1x6x8x8xf32>
}

// Few rows: the weight streams past the engine, and what it makes has the rows innermost. The model's output keeps its order.
// CHECK-LABEL: func.func @few_rows
// CHECK-SAME: tensor<8192x4096xf16> {t10.order = array<i64: 1, 0>, t10.weight}
// CHECK: rtensor.operator
// CHECK: tensor<8192x4xf16>
// CHECK: kind = "transpose"
// CHECK: return %{{.*}} : tensor<4x8192xf16>
func.func @few_rows(%x: tensor<4x4096xf16>, %w: tensor<4096x8192xf16> {t10.weight}) -> tensor<4x8192xf16> {
  %zero = arith.constant 0.0 : f16
  %e = tensor.empty() : tensor<4x8192xf16>
  %init = linalg.fill ins(%zero : f16) outs(%e : tensor<4x8192xf16>) -> tensor<4x8192xf16>
  %y = linalg.matmul ins(%x, %w : tensor<4x4096xf16>, tensor<4096x8192xf16>) outs(%init : tensor<4x8192xf16>) -> tensor<4x8192xf16>
  return %y : tensor<4x8192xf16>
}
