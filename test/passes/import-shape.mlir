// RUN: t10-opt "--t10-import=shape=batch=3" %s | filecheck %s

// A symbolic dim gets its extent from an option of the pass.
// CHECK: func.func @main_graph(%arg0: tensor<3x4xf32> {t10.name = "x"}) -> (tensor<3x4xf32> {t10.name = "result0"})
func.func @main_graph(%arg0: tensor<?x4xf32> {onnx.dim_params = "0:batch", onnx.name = "x"}) -> tensor<?x4xf32> {
  %0 = "onnx.Relu"(%arg0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  onnx.Return %0 : tensor<?x4xf32>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
