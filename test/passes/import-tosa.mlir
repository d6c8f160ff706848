// TOSA behind onnx-mlir: its entry point goes, its names stay, MLIR's own passes lower it.
// RUN: t10-opt --t10-import %s | filecheck %s
// RUN: t10-opt --t10-partition=chip=test-4 --t10-lower-ipu %s | filecheck %s --check-prefix=PROGRAM
// RUN: cp %s %t.mlir && t10 compile %t.mlir --chip test-4 -o %t --quiet
// RUN: sed 's/tosa[.]exp /tosa.nope /' %s | not t10-opt --t10-import 2>&1 | filecheck %s --check-prefix=NOPE
// RUN: not t10-opt --t10-import --shape x=2x4 %s 2>&1 | filecheck %s --check-prefix=SHAPE

// CHECK-NOT: onnx
// CHECK: func.func @main_graph(%arg0: tensor<2x4xf32> {t10.name = "x"}) -> (tensor<2x4xf32> {t10.name = "y"})
// CHECK-NOT: tosa
// CHECK: math.exp
// CHECK-NOT: EntryPoint
// PROGRAM: "ipu.graph"
// NOPE: <stdin>:{{[0-9]+}}:{{[0-9]+}}: error:
// SHAPE: error: --shape: the module holds no operation of the onnx dialect
module attributes {"onnx-mlir.symbol-postfix" = "m"} {
  func.func @main_graph(%arg0: tensor<2x4xf32> {onnx.name = "x"}) -> (tensor<2x4xf32> {onnx.name = "y"}) {
    %0 = tosa.exp %arg0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %1 = tosa.add %0, %arg0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    return %1 : tensor<2x4xf32>
  }
  "onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
}
