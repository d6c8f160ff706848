// RUN: not t10-opt --t10-import %s 2>&1 | filecheck %s
// RUN: not t10 compile %s --chip test-4 -o %t 2>&1 | filecheck %s

// What onnx-mlir --EmitMLIR writes is lowered too far.
// CHECK: error: {{.*}}import-krnl-errors.mlir holds krnl operations: onnx-mlir has lowered the model to loops
// CHECK-SAME: --EmitONNXIR instead of --EmitMLIR
module attributes {"onnx-mlir.symbol-postfix" = "m"} {
  func.func @main_graph(%arg0: memref<2x4xf32> {onnx.name = "x"}) -> (memref<2x4xf32> {onnx.name = "y"}) attributes {llvm.emit_c_interface} {
    %0 = "krnl.global"() <{name = "constant_0", shape = [2, 4], value = dense<1.0> : tensor<2x4xf32>}> : () -> memref<2x4xf32>
    return %0 : memref<2x4xf32>
  }
  "krnl.entry_point"() {func = @main_graph, numInputs = 1 : i32, numOutputs = 1 : i32, signature = ""} : () -> ()
}
