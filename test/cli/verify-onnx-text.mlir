// Text of onnx-mlir is compiled, run, proved, and compared with ONNX Runtime; exit code 1 when the tolerance is exceeded.
// RUN: t10 verify %s --chip test-4 | filecheck %s
// RUN: not t10 verify %s --chip test-4 --engine iss --tolerance 0 | filecheck %s --check-prefix=STRICT

// CHECK: y {{.*}} 2x3 {{.*}} float32 {{.*}} 1e-04 {{.*}} ok
// CHECK: test-4: {{.*}} (modelled, ipu); random inputs (seeds 0 to 2), reference ONNX Runtime
// CHECK: plan proved
// CHECK: verified
// STRICT: differs
// STRICT: test-4: {{.*}} (modelled, instruction-set simulator); random inputs
// STRICT: planned: {{[0-9,]+}} cycles (+0.00%)
// STRICT: FAILED: outputs differ by more than the tolerance: y[{{.*}}] is {{.*}}, expected {{.*}} (iss, seed {{.*}})
module attributes {"onnx-mlir.symbol-postfix" = "m"} {
  func.func @main_graph(%arg0: tensor<2x3xf32> {onnx.name = "x"}) -> (tensor<2x3xf32> {onnx.name = "y"}) {
    %0 = "onnx.Exp"(%arg0) {onnx_node_name = "/exp"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = "onnx.Tanh"(%0) {onnx_node_name = "/tanh"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
  "onnx.EntryPoint"() {func = @main_graph} : () -> ()
}
