// RUN: t10-opt --t10-partition="chip=test-16" --t10-lower-ipu %s | filecheck %s
// RUN: t10-opt --t10-lower-ipu="chip=test-16" %s | filecheck %s
// RUN: t10-opt --t10-partition --t10-lower-ipu %s | filecheck %s --check-prefix=MK2
// RUN: t10-opt --t10-import --t10-fuse --t10-partition="chip=test-16" --t10-place --t10-verify-plan %s | t10-opt --t10-lower-ipu | filecheck %s

// From the onnx dialect, as onnx-mlir --EmitONNXIR writes it, to tiles in two passes: what they need runs by itself.
// Bias and Relu join the product they follow; the weight, 32 x 4, is an argument, not text in the module.
// CHECK: t10.chip = "test-16"
// CHECK-SAME: t10.cost_model = "ipu"
// CHECK: "ipu.graph"
// CHECK: sym_name = "idle:constant"
// CHECK: kind = "sub_task"
// CHECK: kind = "epilogue"
// CHECK-NOT: kind = "sub_task"
// CHECK: "ipu.sequence"
// CHECK: compute_set = "sub_task:[[OP:[^"]*]]"
// CHECK: compute_set = "epilogue:[[OP]]"
// CHECK: {op_name = "[[OP]]"}
// CHECK: tiles = 16
// MK2: "ipu.graph"
// MK2: chip = "ipu-mk2"{{.*}}tiles = 1472
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
