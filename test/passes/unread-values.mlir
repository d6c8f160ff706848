// RUN: t10-opt --t10-place="chip=test-4" --t10-verify-plan %s | filecheck %s
// RUN: t10-opt --t10-lower-ipu="chip=test-4" %s | filecheck %s --check-prefix=LOWER

// An argument that nobody reads rests nowhere and has no allocation; one value may be returned twice, and a constant may
// be a result: it is a weight then.
// CHECK: func.func @main(%[[X:.*]]: tensor<4x6xf32>, %[[UNREAD:.*]]: tensor<3xf32>) -> (tensor<4x6xf32, #[[L:.*]]>, tensor<4x6xf32, #[[L]]>, tensor<3xf32, #linear>)
// CHECK: "rtensor.resident"(%[[X]])
// CHECK: %[[CONSTANT:.*]] = arith.constant dense<[1.0
// CHECK: %[[RESTING:.*]] = "rtensor.resident"(%[[CONSTANT]])
// CHECK-NOT: "rtensor.resident"
// CHECK: return %[[R:.*]], %[[R]], %[[RESTING]] :
// LOWER-NOT: input:arg1
// LOWER: sym_name = "idle:constant"
// LOWER-NOT: input:arg1
func.func @main(%x: tensor<4x6xf32>, %unused: tensor<3xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<3xf32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  %r = linalg.exp ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  return %r, %r, %c : tensor<4x6xf32>, tensor<4x6xf32>, tensor<3xf32>
}
