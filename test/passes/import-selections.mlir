// RUN: t10-opt --t10-import --t10-fuse --split-input-file %s | filecheck %s

// The first of each row are found by ranks: who is ahead is compared inside the sum that counts them, so that no tensor holds
// all pairs; values and places are picked by rank. Ties go to the smaller place. Halves are compared as f32.
// CHECK-LABEL: func.func @top
// CHECK: %[[RANK:.*]] = linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]{{.*}}op_name = "best.rank"
// CHECK: %[[WINS:.*]] = arith.cmpf ogt
// CHECK: %[[TIES:.*]] = arith.cmpf oeq
// CHECK: %[[EARLIER:.*]] = arith.cmpf olt
// CHECK: %[[FIRST:.*]] = arith.andi %[[TIES]], %[[EARLIER]]
// CHECK: %[[AHEAD:.*]] = arith.ori %[[WINS]], %[[FIRST]]
// CHECK: arith.select %[[AHEAD]]
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK: arith.truncf {{.*}} to f16
// CHECK: op_name = "best.values"
// CHECK: arith.maximumf
// CHECK: arith.fptosi {{.*}} to i64
// CHECK: op_name = "best.indices"
// CHECK-NOT: op_name
func.func @top(%arg0: tensor<4x12xf16> {onnx.name = "x"}) -> (tensor<4x3xf16> {onnx.name = "v"}, tensor<4x3xi64> {onnx.name = "i"}) {
  %0 = onnx.Constant dense<3> : tensor<1xi64>
  %1:2 = "onnx.TopK"(%arg0, %0) {axis = -1 : si64, largest = 1 : si64, sorted = 1 : si64, onnx_node_name = "best"} : (tensor<4x12xf16>, tensor<1xi64>) -> (tensor<4x3xf16>, tensor<4x3xi64>)
  onnx.Return %1#0, %1#1 : tensor<4x3xf16>, tensor<4x3xi64>
}
"onnx.EntryPoint"() <{func = @top}> : () -> ()

// -----

// The place of the largest: the maximum, then the least place of it or of a NaN.
// CHECK-LABEL: func.func @arg
// CHECK: op_name = "where.max"
// CHECK: arith.cmpf oeq
// CHECK-NEXT: arith.cmpf une
// CHECK-NEXT: arith.ori
// CHECK-NEXT: arith.select
// CHECK: arith.minimumf
// CHECK: op_name = "where.index"
// CHECK-NOT: op_name
func.func @arg(%arg0: tensor<4x12xf32> {onnx.name = "x"}) -> (tensor<4xi64> {onnx.name = "i"}) {
  %0 = "onnx.ArgMax"(%arg0) {axis = 1 : si64, keepdims = 0 : si64, onnx_node_name = "where"} : (tensor<4x12xf32>) -> tensor<4xi64>
  onnx.Return %0 : tensor<4xi64>
}
"onnx.EntryPoint"() <{func = @arg}> : () -> ()
