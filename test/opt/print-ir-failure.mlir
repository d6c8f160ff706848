// RUN: not t10-opt --cse --one-shot-bufferize --mlir-print-ir-after-failure %s 2>&1 | filecheck %s
// RUN: not t10-opt --cse --one-shot-bufferize --mlir-print-ir-after-all %s 2>&1 | filecheck %s --check-prefix=ALL

// CHECK-NOT: IR Dump After cse
// CHECK: IR Dump After one-shot-bufferize Failed
// CHECK: "func.func"
// CHECK: error: op was not bufferized
// ALL: IR Dump After cse //
// ALL: IR Dump After one-shot-bufferize Failed
func.func @f(%w: tensor<8xf16, #rtensor.linear<{cores = 8}>>) -> tensor<8xf16, #rtensor.linear<{cores = 4}>> {
  %a = "rtensor.setup"(%w)
    : (tensor<8xf16, #rtensor.linear<{cores = 8}>>) -> tensor<8xf16, #rtensor.linear<{cores = 4}>>
  return %a : tensor<8xf16, #rtensor.linear<{cores = 4}>>
}
