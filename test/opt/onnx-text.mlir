// Text of onnx-mlir is read as it is: custom assembly, properties, unknown dialect. Lines stay where they are.
// RUN: t10-opt %s | filecheck %s
// RUN: sed 's/tensor<2x3xf32>$/tensor<2x3xf32/' %s | not t10-opt 2>&1 | filecheck %s --check-prefix=ERR

// CHECK: "onnx.Constant"() {{.*}}dense<2.000000e+00> : tensor<2x3xf32>
// CHECK: "onnx.Add"(%arg0, %{{.*}}) {onnx_node_name = "/add"}
// CHECK: "onnx.EntryPoint"()
// ERR: <stdin>:{{1[0-9]}}:{{[0-9]+}}: error:
module attributes {"onnx-mlir.symbol-postfix" = "m"} {
  func.func @main_graph(%arg0: tensor<2x3xf32> {onnx.name = "x"}) -> (tensor<2x3xf32> {onnx.name = "y"}) {
    %0 = onnx.Constant dense<2.000000e+00> : tensor<2x3xf32>
    %1 = "onnx.Add"(%arg0, %0) {onnx_node_name = "/add"} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
  "onnx.EntryPoint"() {func = @main_graph} : () -> ()
}
