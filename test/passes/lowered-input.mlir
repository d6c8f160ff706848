// What needs operators or plans says what it was given.
// RUN: t10-opt --t10-lower-ipu="chip=test-16" %s -o %t.mlir
// RUN: not t10-opt --t10-verify-plan %t.mlir 2>&1 | filecheck %s

// CHECK: error: module is lowered to the ipu dialect, which holds no operators and no plans (take the module as it was before --t10-lower-ipu)
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %c = linalg.add ins(%a, %a : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}
