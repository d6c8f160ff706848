// RUN: t10-opt --t10-import %s | filecheck %s
// RUN: t10-opt --t10-import %s | t10-opt --t10-import | filecheck %s

// The text onnx-mlir prints becomes linalg. The 4x32 weight (128 floats) is an argument marked as such; the bias of 4
// elements is small enough to be a constant; a location keeps the node's name.
// CHECK-LABEL: func.func @main_graph
// CHECK-SAME: tensor<2x32xf32> {t10.name = "x"}
// CHECK-SAME: tensor<32x4xf32> {t10.name = "constant", t10.weight}
// CHECK-SAME: -> (tensor<2x4xf32> {t10.name = "y"})
// CHECK-NOT: onnx.
// CHECK: arith.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
// CHECK: linalg.matmul
// CHECK-NOT: onnx.
module attributes {"onnx-mlir.symbol-postfix" = "fc"} {
  func.func @main_graph(%arg0: tensor<2x32xf32> {onnx.name = "x"}) -> (tensor<2x4xf32> {onnx.name = "y"}) {
    %0 = onnx.Constant dense<5.000000e-01> : tensor<32x4xf32>
    %1 = onnx.Constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %2 = "onnx.Gemm"(%arg0, %0, %1) <{alpha = 1.000000e+00 : f32, transB = 0 : si64}> {onnx_node_name = "/fc/Gemm"} : (tensor<2x32xf32>, tensor<32x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %3 = "onnx.Relu"(%2) {onnx_node_name = "/Relu"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    onnx.Return %3 : tensor<2x4xf32>
  }
  "onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
}
