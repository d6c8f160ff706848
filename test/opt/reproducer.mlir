// A failing pass leaves input and pipeline behind; running that fails the same way; success leaves nothing.
// RUN: rm -f %t.mlir
// RUN: not t10-opt --verify-each=0 --cse --one-shot-bufferize --mlir-pass-pipeline-crash-reproducer=%t.mlir %s 2> %t.err
// RUN: filecheck %s --check-prefix=ERR < %t.err
// RUN: filecheck %s < %t.mlir
// RUN: not t10-opt --run-reproducer %t.mlir 2>&1 | filecheck %s --check-prefix=ERR
// RUN: not t10-opt --run-reproducer %s 2>&1 | filecheck %s --check-prefix=NONE
// RUN: not t10-opt --run-reproducer --cse %t.mlir 2>&1 | filecheck %s --check-prefix=BOTH
// RUN: t10-opt --cse --mlir-pass-pipeline-crash-reproducer=%t.gone.mlir %s -o /dev/null
// RUN: not test -e %t.gone.mlir
// RUN: not t10-opt --cse --mlir-pass-pipeline-crash-reproducer=%t.absent/x.mlir %s 2>&1 | filecheck %s --check-prefix=WRITE

// ERR: error: op was not bufferized
// CHECK: "rtensor.setup"
// CHECK: {-#
// CHECK-NEXT: external_resources: {
// CHECK-NEXT: mlir_reproducer: {
// CHECK-NEXT: pipeline: "builtin.module(cse,one-shot-bufferize)",
// CHECK-NEXT: disable_threading: true,
// CHECK-NEXT: verify_each: false
// NONE: --run-reproducer: the input holds no {-# external_resources
// BOTH: --run-reproducer runs the pipeline in the input
// WRITE: cannot write {{.*}}.absent/x.mlir: No such file or directory
func.func @f(%w: tensor<8xf16, #rtensor.linear<{cores = 8}>>) -> tensor<8xf16, #rtensor.linear<{cores = 4}>> {
  %a = "rtensor.setup"(%w)
    : (tensor<8xf16, #rtensor.linear<{cores = 8}>>) -> tensor<8xf16, #rtensor.linear<{cores = 4}>>
  return %a : tensor<8xf16, #rtensor.linear<{cores = 4}>>
}
