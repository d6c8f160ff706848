// Weights go through the pipe in a file of their own: as the program stores them, under the names that the text has.
// RUN: rm -rf %t && mkdir -p %t
// RUN: cat %s | t10-opt --t10-partition=chip=test-4 --t10-lower-ipu --save-weights=%t/w.npz -o %t/m.mlir
// RUN: t10-translate --ipu-to-poplar %t/m.mlir --weights %t/w.npz -o %t/program
// RUN: filecheck %s < %t/program/weights.json
// RUN: cp %s %t/m.onnx.mlir && t10 compile %t/m.onnx.mlir --chip test-4 -o %t/compiled --quiet
// RUN: diff -r %t/compiled/program %t/program

// Without them nothing is written, unless that is meant.
// RUN: not t10-translate --ipu-to-poplar %t/m.mlir -o %t/none 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not test -e %t/none
// RUN: t10-translate --ipu-to-poplar %t/m.mlir -o %t/none --no-weights && test ! -s %t/none/weights.bin
// RUN: t10-opt --dtype=fp16 %s --save-weights=%t/raw.npz -o /dev/null
// RUN: not t10-translate --ipu-to-poplar %t/m.mlir -o %t/none --weights %t/raw.npz 2>&1 | filecheck %s --check-prefix=TYPE
// RUN: not t10-translate --ipu-to-asm %t/m.mlir --no-weights 2>&1 | filecheck %s --check-prefix=USAGE
// RUN: not t10-translate --ipu-to-poplar %t/m.mlir -o %t/none --no-weights --weights w.npz 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: not t10-opt --split-input-file --save-weights=%t/w.npz %s 2>&1 | filecheck %s --check-prefix=SPLIT
// RUN: not t10-opt --save-weights=%t/absent/w.npz %s 2>&1 | filecheck %s --check-prefix=UNWRITTEN

// CHECK: "name": "fc.weight", "dtype": "f32", "shape": [
// NONE: t10-translate: error: 1 of 1 weights of the program have no values: fc.weight (t10-opt --save-weights=FILE.npz
// TYPE: t10-translate: error: weight fc.weight is of type float16 (expected f32)
// USAGE: t10-translate: error: --weights and --no-weights are for --ipu-to-poplar -o FOLDER
// BOTH: t10-translate: error: --weights and --no-weights exclude each other
// UNWRITTEN-NOT: module
// UNWRITTEN: t10-opt: error: cannot write {{.*}}absent/w.npz: No such file or directory
// SPLIT: --save-weights is for one module
module {
  func.func @main_graph(%arg0: tensor<2x4xf32> {onnx.name = "x"}) -> (tensor<2x32xf32> {onnx.name = "y"}) {
    %0 = onnx.Constant dense<[[1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.], [1., 2., 3., 4.], [5., 6., 7., 8.]]> : tensor<32x4xf32> loc(#loc1)
    %1 = "onnx.Transpose"(%0) <{perm = [1, 0]}> : (tensor<32x4xf32>) -> tensor<4x32xf32>
    %2 = "onnx.MatMul"(%arg0, %1) {onnx_node_name = "/fc"} : (tensor<2x4xf32>, tensor<4x32xf32>) -> tensor<2x32xf32>
    return %2 : tensor<2x32xf32>
  }
}
#loc1 = loc("Initializer_fc.weight")
