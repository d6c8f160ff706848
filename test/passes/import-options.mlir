// What the hints of errors name are options of t10-opt, too: of the import, wherever in the pipeline that is.
// RUN: t10-opt --shape batch=3 --constant axes=1, --dtype=fp16 --t10-fuse %s | filecheck %s
// RUN: t10-opt --shape=batch=3 --constant=axes=1, --dtype fp16 --dump-pass-pipeline --t10-import %s -o /dev/null 2>&1 | filecheck %s --check-prefix=PIPELINE
// RUN: not t10-opt --t10-import --shape batch=3 %s 2>&1 | filecheck %s --check-prefix=CONSTANT
// RUN: not t10-opt --t10-import --constant axes=1, %s 2>&1 | filecheck %s --check-prefix=SHAPE
// RUN: not t10-opt --shape batch=3 --t10-import=shape=batch=3 %s 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not t10-opt --t10-import --shape batch=3 --constant axes=1, --dtype=fp8 %s 2>&1 | filecheck %s --check-prefix=DTYPE
// RUN: sed 's/onnx[.]ReduceMax/onnx.Frobnicate/' %s | not t10-opt --shape batch=3 2>&1 | filecheck %s --check-prefix=STDIN

// CHECK-LABEL: func.func @main_graph(%arg0: tensor<3x4xf16> {{.*}}{t10.name = "x"}) -> (tensor<3x1xf16>
// CHECK: linalg.generic

// PIPELINE: t10-import{shape="batch=3" constant="axes=1," dtype="fp16"}

// CONSTANT: import-options.mlir:
// CONSTANT-SAME: :8: error: operator 'max': ReduceMax needs constants for its axes ('axes' is computed)
// CONSTANT-SAME: --constant axes=
// CONSTANT-NEXT: {{^}}  %0 = "onnx.ReduceMax"
// CONSTANT-NEXT: {{^}}       ^{{$}}

// SHAPE: import-options.mlir:
// SHAPE-SAME: error: dim 0 of input 'x' is 'batch'
// SHAPE-SAME: --shape batch=1
// SHAPE-NEXT: func.func @main_graph(
// SHAPE-NEXT: {{^}}                     ^{{$}}

// TWICE: t10-opt: error: --shape is an option of the pipeline's t10-import, too: give it once

// DTYPE: error: --dtype is 'fp8' (expected fp16, bf16=f32, bf16=f16)

// STDIN: <stdin>:
// STDIN-SAME: :8: error: operator 'max': onnx-mlir.Frobnicate is of domain 'onnx-mlir'
// STDIN-NEXT: {{^}}  %0 = "onnx.Frobnicate"
// STDIN-NEXT: {{^}}       ^{{$}}
func.func @main_graph(%arg0: tensor<?x4xf32> {onnx.dim_params = "0:batch", onnx.name = "x"}, %arg1: tensor<1xi64> {onnx.name = "axes"}) -> tensor<?x1xf32> {
  %0 = "onnx.ReduceMax"(%arg0, %arg1) {onnx_node_name = "max"} : (tensor<?x4xf32>, tensor<1xi64>) -> tensor<?x1xf32>
  onnx.Return %0 : tensor<?x1xf32>
}
"onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
