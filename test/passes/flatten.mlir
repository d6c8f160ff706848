// RUN: t10-opt --t10-flatten --split-input-file %s | filecheck %s
// RUN: t10-opt --t10-flatten --t10-flatten --split-input-file %s | filecheck %s
// RUN: t10-opt --t10-fuse --split-input-file %s | filecheck %s --check-prefix=FUSED

// A call is the operations of what is called; only the function that no other calls is left.
// CHECK-LABEL: func.func @main
// CHECK: linalg.exp
// CHECK: linalg.exp
// CHECK-NOT: call
// CHECK-NOT: func.func
// FUSED-LABEL: func.func @main
// FUSED-NOT: call
func.func private @once(%a: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @once(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = call @once(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Rows 0, 2 and 4: three times the body, what is carried handed on.
// CHECK-LABEL: func.func @rows
// CHECK: tensor.extract_slice %arg0[0] [1] [1]
// CHECK: tensor.extract_slice %arg0[2] [1] [1]
// CHECK: tensor.extract_slice %arg0[4] [1] [1]
// CHECK: linalg.add
// CHECK-NOT: scf.for
// FUSED-LABEL: func.func @rows
func.func @rows(%a: tensor<6xf32>, %b: tensor<1xf32>) -> tensor<1xf32> {
  %low = arith.constant 0 : index
  %high = arith.constant 5 : index
  %step = arith.constant 2 : index
  %r = scf.for %i = %low to %high step %step iter_args(%sum = %b) -> (tensor<1xf32>) {
    %x = tensor.extract_slice %a[%i] [1] [1] : tensor<6xf32> to tensor<1xf32>
    %e = tensor.empty() : tensor<1xf32>
    %n = linalg.add ins(%sum, %x : tensor<1xf32>, tensor<1xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
    scf.yield %n : tensor<1xf32>
  }
  return %r : tensor<1xf32>
}

// -----

// A loop within a loop, and a branch that is known: 2 * 2 sums, no product.
// CHECK-LABEL: func.func @nested
// CHECK-COUNT-4: linalg.add
// CHECK-NOT: linalg
// CHECK: return
// FUSED-LABEL: func.func @nested
func.func @nested(%a: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %yes = arith.constant true
  %e = tensor.empty() : tensor<4xf32>
  %r = scf.for %i = %zero to %two step %one iter_args(%x = %a) -> (tensor<4xf32>) {
    %s = scf.for %j = %zero to %two step %one iter_args(%y = %x) -> (tensor<4xf32>) {
      %t = scf.if %yes -> (tensor<4xf32>) {
        %n = linalg.add ins(%y, %a : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
        scf.yield %n : tensor<4xf32>
      } else {
        %n = linalg.mul ins(%y, %a : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
        scf.yield %n : tensor<4xf32>
      }
      scf.yield %t : tensor<4xf32>
    }
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
