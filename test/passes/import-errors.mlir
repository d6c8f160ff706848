// RUN: t10-opt --t10-import --split-input-file --verify-diagnostics %s

func.func @main_graph(%arg0: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error@below {{com.acme.FusedThing is of domain 'com.acme', which is not ONNX's, and no function of the model}}
  %0 = "onnx.Custom"(%arg0) <{function_name = "FusedThing"}> {domain_name = "com.acme"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  onnx.Return %0 : tensor<2x4xf32>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()

// -----

func.func @main_graph(%arg0: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error@below {{this old form is not handled}}
  %0 = "onnx.GridSampleV10"(%arg0, %arg0) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  onnx.Return %0 : tensor<2x4xf32>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()

// -----

// expected-error@below {{dim 0 of input 'x' is 'batch' (expected a number, at least 1) (give it with --shape x=1x4 or --shape batch=1)}}
func.func @main_graph(%arg0: tensor<?x4xf32> {onnx.dim_params = "0:batch", onnx.name = "x"}) -> tensor<?x4xf32> {
  %0 = "onnx.Relu"(%arg0) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  onnx.Return %0 : tensor<?x4xf32>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()

// -----

func.func @main_graph(%arg0: tensor<2x4xf32> {onnx.name = "x"}) -> tensor<2x?xi64> {
  // expected-error@below {{NonZero makes 'nz' with one column per element that is not zero (expected a shape known before the model runs) (keep the mask instead of places}}
  %0 = "onnx.NonZero"(%arg0) {onnx_node_name = "nz"} : (tensor<2x4xf32>) -> tensor<2x?xi64>
  onnx.Return %0 : tensor<2x?xi64>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()

// -----

func.func @main_graph(%arg0: tensor<2x4xf32> {onnx.name = "x"}) -> tensor<2x4xf32> {
  // expected-error@below {{onnx.Constant of type tensor<2xi64> has elided data (use the .onnx.mlir file, not the .tmp file}}
  %0 = onnx.Constant dense_resource<__elided__> : tensor<2xi64>
  %1 = "onnx.Reshape"(%arg0, %0) : (tensor<2x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  onnx.Return %1 : tensor<2x4xf32>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()

// -----

// expected-error@unknown {{is of element type string (expected float16}}
func.func @main_graph() -> (tensor<2x!onnx.String> {onnx.name = "t"}) {
  %0 = onnx.Constant dense<["a", "\C3\A9\22q"]> : tensor<2x!onnx.String>
  onnx.Return %0 : tensor<2x!onnx.String>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()

// -----

// expected-error@below {{input 's' is of type sequence (expected a tensor)}}
func.func @main_graph(%arg0: !onnx.Seq<tensor<?xf32>> {onnx.name = "s"}, %arg1: tensor<i64> {onnx.name = "i"}) -> tensor<?xf32> {
  %0 = "onnx.SequenceAt"(%arg0, %arg1) : (!onnx.Seq<tensor<?xf32>>, tensor<i64>) -> tensor<?xf32>
  onnx.Return %0 : tensor<?xf32>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
