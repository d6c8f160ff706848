// Passes that need straight code flatten first, and elementwise operations on tensors become operators.
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=1" --split-input-file %s | filecheck %s

// CHECK-LABEL: func.func @calls
// CHECK-SAME: tensor<4xf32>
// CHECK: linalg.generic
// CHECK-SAME: op_name = "add"
// CHECK-NOT: func.func
func.func private @sum(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @calls(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = func.call @sum(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @loops
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK: math.exp
// CHECK-NOT: math.exp
func.func @loops(%x: tensor<4xf32>) -> tensor<4xf32> {
  %low = arith.constant 0 : index
  %step = arith.constant 1 : index
  %high = arith.constant 2 : index
  %r = scf.for %k = %low to %high step %step iter_args(%a = %x) -> tensor<4xf32> {
    %y = math.exp %a : tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// Private functions that the model does not call are no second model, whatever they call.
// CHECK-LABEL: func.func @model
// CHECK-NOT: func.func
func.func @model(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.negf %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @unused(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @endless(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @endless(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
