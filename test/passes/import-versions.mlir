// RUN: t10-opt --t10-import --t10-fuse %s | filecheck %s

// Old forms under names of their own (axes as attributes), absent operands, and shapes computed from constants.
// CHECK-LABEL: func.func @main_graph
// CHECK-SAME: t10.name = "x"
// CHECK-NOT: onnx.
// CHECK: kind = "pooling", op_name = "pool"
// CHECK: kind = "reduction", op_name = "mean"
func.func @main_graph(%arg0: tensor<1x2x8x8xf32> {onnx.name = "x"}) -> (tensor<1x2xf32> {onnx.name = "y"}) {
  %none = "onnx.NoValue"() <{value}> : () -> none
  %0 = "onnx.MaxPoolSingleOut"(%arg0) <{auto_pad = "NOTSET", ceil_mode = 0 : si64, kernel_shape = [2, 2], storage_order = 0 : si64, strides = [2, 2]}> {onnx_node_name = "pool"} : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32>
  %1 = "onnx.ReduceMeanV13"(%0) <{axes = [2, 3], keepdims = 1 : si64}> {onnx_node_name = "mean"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x1x1xf32>
  %2 = "onnx.Clip"(%1, %none, %none) {onnx_node_name = "clip"} : (tensor<1x2x1x1xf32>, none, none) -> tensor<1x2x1x1xf32>
  %3 = "onnx.SqueezeV11"(%2) <{axes = [2, 3]}> {onnx_node_name = "squeeze"} : (tensor<1x2x1x1xf32>) -> tensor<1x2xf32>
  return %3 : tensor<1x2xf32>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
