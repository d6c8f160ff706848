// RUN: t10-opt --t10-canonicalize %s | t10-opt --t10-canonicalize | filecheck %s
#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turning = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#two = #rtensor.grid<{f_op = [1, 1, 4], lengths = [4, 4, 1], steps = [2, 2, 1], loop_order = [0, 1], core_order = [2], phases = [[[2, 1, 2, 2]], [[2, 2, 2, 2]], []]}>
#both = #rtensor.layout<#two, {map = affine_map<(k, l, n) -> (k, l)>, fs = [1, 1], ft = [2, 2], rp = [2, 2]}>

// The second shift home moves nothing, whichever constant says so.
// CHECK-LABEL: func.func @home
// CHECK: %[[Y:.*]] = "rtensor.shift"
// CHECK-NEXT: return %[[Y]] :
func.func @home(%x: tensor<4xf16, #turning>) -> tensor<4xf16, #turning> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : index
  %y = "rtensor.shift"(%x, %c0) {axis = 1} : (tensor<4xf16, #turning>, index) -> tensor<4xf16, #turning>
  %z = "rtensor.shift"(%y, %zero) {axis = 1} : (tensor<4xf16, #turning>, index) -> tensor<4xf16, #turning>
  return %z : tensor<4xf16, #turning>
}

// Along another axis it does.
// CHECK-LABEL: func.func @axes
// CHECK: "rtensor.shift"{{.*}}axis = 0
// CHECK-NEXT: %[[Z:.*]] = "rtensor.shift"{{.*}}axis = 1
// CHECK-NEXT: return %[[Z]] :
func.func @axes(%x: tensor<4x4xf16, #both>) -> tensor<4x4xf16, #both> {
  %c0 = arith.constant 0 : index
  %y = "rtensor.shift"(%x, %c0) {axis = 0} : (tensor<4x4xf16, #both>, index) -> tensor<4x4xf16, #both>
  %z = "rtensor.shift"(%y, %c0) {axis = 1} : (tensor<4x4xf16, #both>, index) -> tensor<4x4xf16, #both>
  return %z : tensor<4x4xf16, #both>
}
