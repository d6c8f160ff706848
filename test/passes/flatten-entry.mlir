// RUN: t10-opt --t10-flatten=entry=second --t10-partition="chip=test-16 max-candidates=1" %s | filecheck %s
// RUN: t10-opt --t10-flatten=entry=inner %s | filecheck --check-prefix=INNER %s
// RUN: not t10-opt --t10-flatten=entry=third %s 2>&1 | filecheck --check-prefix=NONE %s

// NONE: error: entry is 'third' (expected a function with a body: @first, @second, @inner, @innermost)

// CHECK-NOT: @first
// CHECK: func.func @second
// CHECK: op_name = "exp"
// CHECK-NOT: func.func

// INNER-NOT: @first
// INNER: func.func @inner(
// INNER-NEXT: math.exp
// INNER-NOT: func.func
func.func @first(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @second(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = func.call @inner(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}
func.func private @inner(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @innermost(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @innermost(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = math.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
