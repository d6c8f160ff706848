// RUN: t10-opt --t10-import --split-input-file %s | filecheck %s

// Module attributes of onnx-mlir, named results with absent ones among them, packs of results, a hexadecimal constant,
// an empty one, and the entry point with its function as a property.
// CHECK-LABEL: func.func @main_graph
// CHECK-SAME: tensor<4x6xf32> {t10.name = "x"}
// CHECK-SAME: -> (tensor<4x2xf32> {t10.name = "y"})
// CHECK-NOT: onnx.
// CHECK: math.rsqrt
// CHECK: tensor.extract_slice
// CHECK: arith.{{(cmpf ugt|maximumf)}}
module attributes {llvm.data_layout = "e-m:e-p270:32:32", llvm.target_triple = "x86_64-pc-linux-gnu", "onnx-mlir.symbol-postfix" = "m"} {
  func.func @main_graph(%arg0: tensor<4x6xf32> {onnx.name = "x"}) -> (tensor<4x2xf32> {onnx.name = "y"}) attributes {llvm.emit_c_interface} {
    %0 = "onnx.NoValue"() <{value}> {onnx_node_name = "onnx.NoValue_0"} : () -> none
    %1 = onnx.Constant dense<"0x0000803F0000803F0000803F0000803F0000803F0000803F"> : tensor<6xf32>
    %2 = onnx.Constant dense<2> : tensor<3xi64>
    %3 = onnx.Constant {onnx_node_name = "/empty", value = dense<> : tensor<0xi64>} : tensor<0xi64>
    %Y, %Mean, %InvStdDev = "onnx.LayerNormalization"(%arg0, %1, %0) <{axis = -1 : si64, epsilon = 9.99999974E-6 : f32, stash_type = 1 : si64}> {onnx_node_name = "/ln"} : (tensor<4x6xf32>, tensor<6xf32>, none) -> (tensor<4x6xf32>, none, none)
    %4:3 = "onnx.Split"(%Y, %2) <{axis = 1 : si64}> {onnx_node_name = "n\22quote"} : (tensor<4x6xf32>, tensor<3xi64>) -> (tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
    %5 = "onnx.Relu"(%4#1) {onnx_node_name = "relu 1"} : (tensor<4x2xf32>) -> tensor<4x2xf32>
    return %5 : tensor<4x2xf32>
  }
  "onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
}

// -----

// The generic form (--mlir-print-op-generic), symbolic dims with values of their own, and shapes that IR computes.
// CHECK-LABEL: func.func @main_graph
// CHECK-SAME: tensor<2x8xf32> {t10.name = "x"}
// CHECK-SAME: -> (tensor<2x2x4xf32> {t10.name = "y"})
// CHECK: tensor.expand_shape
"builtin.module"() ({
  "func.func"() <{arg_attrs = [{onnx.name = "x"}], function_type = (tensor<2x8xf32>) -> tensor<2x2x4xf32>, res_attrs = [{onnx.name = "y"}], sym_name = "main_graph"}> ({
  ^bb0(%arg0: tensor<2x8xf32>):
    %0 = "onnx.Constant"() <{value = dense<[2, 4]> : tensor<2xi64>}> : () -> tensor<2xi64>
    %1 = "onnx.Dim"(%arg0) <{axis = 0 : si64}> : (tensor<2x8xf32>) -> tensor<1xi64>
    %2 = "onnx.Concat"(%1, %0) <{axis = 0 : si64}> : (tensor<1xi64>, tensor<2xi64>) -> tensor<3xi64>
    %3 = "onnx.Reshape"(%arg0, %2) <{allowzero = 0 : si64}> : (tensor<2x8xf32>, tensor<3xi64>) -> tensor<2x2x4xf32>
    "onnx.Return"(%3) : (tensor<2x2x4xf32>) -> ()
  }) : () -> ()
  "onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
}) {"onnx-mlir.symbol-postfix" = "m"} : () -> ()

// -----

// --preserveLocations: aliases of locations at both ends of the text, and on arguments.
// CHECK-LABEL: func.func @main_graph
// CHECK: linalg.generic
#loc = loc(unknown)
module {
  func.func @main_graph(%arg0: tensor<8x8xf32> {onnx.name = "x"} loc("input")) -> (tensor<8x8xf32> {onnx.name = "y"}) {
    %0 = onnx.Constant dense<2.0> : tensor<f32> loc(#loc1)
    %1 = "onnx.Mul"(%arg0, %0) : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32> loc(#loc2)
    onnx.Return %1 : tensor<8x8xf32> loc(#loc)
  } loc(#loc)
  "onnx.EntryPoint"() <{func = @main_graph}> : () -> () loc(#loc)
} loc(#loc)
#loc1 = loc("Initializer_w")
#loc2 = loc("/mul")

// -----

// Layouts of the SIMD data path are onnx-mlir's own affair: the tensor is the same.
// CHECK-LABEL: func.func @main_graph
// CHECK-NOT: layout
// CHECK: linalg.generic
func.func @main_graph(%arg0: tensor<1x4x8x8xf32> {onnx.name = "x"}) -> (tensor<1x4x8x8xf32> {onnx.name = "y"}) {
  %0 = "onnx.LayoutTransform"(%arg0) <{target_layout = #onnx.layout<{dataLayout = "NCHW4C"}>}> : (tensor<1x4x8x8xf32>) -> tensor<1x4x8x8xf32, #onnx.layout<{dataLayout = "NCHW4C"}>>
  %1 = "onnx.Exp"(%0) {onnx_node_name = "exp"} : (tensor<1x4x8x8xf32, #onnx.layout<{dataLayout = "NCHW4C"}>>) -> tensor<1x4x8x8xf32, #onnx.layout<{dataLayout = "NCHW4C"}>>
  %2 = "onnx.LayoutTransform"(%1) <{target_layout = "STANDARD"}> : (tensor<1x4x8x8xf32, #onnx.layout<{dataLayout = "NCHW4C"}>>) -> tensor<1x4x8x8xf32>
  return %2 : tensor<1x4x8x8xf32>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()

// -----

// Elided weights (.tmp files) are arguments like any other: the model can be planned.
// CHECK-LABEL: func.func @main_graph
// CHECK-SAME: tensor<16x8xf32> {t10.name = "constant", t10.weight}
// CHECK: linalg.matmul
func.func @main_graph(%arg0: tensor<4x16xf32> {onnx.name = "x"}) -> (tensor<4x8xf32> {onnx.name = "y"}) {
  %0 = onnx.Constant dense_resource<__elided__> : tensor<16x8xf32>
  %1 = "onnx.MatMul"(%arg0, %0) {onnx_node_name = "mm"} : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()

// -----

// A shape from ConstantOfShape, in its form without attributes too, and a region whose operations stand in place of it.
// CHECK-LABEL: func.func @main_graph
// CHECK: math.sqrt
// CHECK-NOT: onnx.
func.func @main_graph(%arg0: tensor<2x3xf32> {onnx.name = "x"}) -> (tensor<2x3xf32> {onnx.name = "y"}) {
  %0 = onnx.Constant dense<[2, 3]> : tensor<2xi64>
  %1 = onnx.ConstantOfShape(%0) {onnx_node_name = "ones", value = dense<1.0> : tensor<1xf32>} : (tensor<2xi64>) -> tensor<2x3xf32>
  %2 = onnx.ConstantOfShape(%0) : (tensor<2xi64>) -> tensor<2x3xf32>
  %3 = "onnx.Fused"(%arg0, %1) ({
  ^bb0(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>):
    %4 = "onnx.Add"(%a, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %5 = "onnx.Sqrt"(%4) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    onnx.Yield {onnx_node_name = "onnx.Yield_4"} %5 : tensor<2x3xf32>
  }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %6 = "onnx.Add"(%3, %2) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  "onnx.DimGroup"(%6) <{axis = 0 : si64, group_id = 1 : si64}> : (tensor<2x3xf32>) -> ()
  return %6 : tensor<2x3xf32>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
