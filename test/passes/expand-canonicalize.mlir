// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,2,4" --t10-expand %s -o %t.mlir
// RUN: t10-opt --canonicalize %t.mlir | filecheck %s
// RUN: t10-opt --t10-lower-ipu %t.mlir -o %t.lowered.mlir
// RUN: t10-opt --canonicalize --cse --loop-invariant-code-motion --t10-lower-ipu %t.mlir | diff %t.lowered.mlir -

// The chunks that a reduce-scatter leaves are copied to the result. Canonicalization takes a linalg.generic that copies
// for nothing: the sub-task that hands out what it reads is the copy still.
// CHECK: %[[SUMS:.*]] = "rtensor.reduce"
// CHECK-NEXT: %[[RESULT:.*]] = "rtensor.allocate"
// CHECK-NEXT: "rtensor.sub_task"(%[[RESULT]]) ({
// CHECK-NEXT: "rtensor.yield"(%[[SUMS]])
func.func @main(%a: tensor<8x16xf32>, %b: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%f : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}
