// RUN: t10-opt --t10-partition="chip=test-16 f-op=2,2,4 ft=1x1x1,1x1x1,1x1x1" --t10-lower-ipu %s | filecheck %s

// k is split over 4 cores: each holds partial sums of a 4 x 4 block in f32, gets 3 times 4 elements of the others, 48 bytes,
// adds them up and rounds its 4 elements to f16.
// CHECK: sym_name = "accumulator:[[OP:[^"]*]]"} : () -> !ipu.tensor
// CHECK: %[[C:.*]] = "ipu.alloc"() {{.*}}element = f16, {{.*}}role = "output", shape = [4], sym_name = "value:[[OP]]:0"}
// CHECK: codelet = "sub_task"
// CHECK: codelet = "combine"
// CHECK: "ipu.vertex"(%[[ACC:.*]], %[[C]]) {codelet = "epilogue"
// CHECK: compute_set = "fill:[[OP]]"
// CHECK-NEXT: compute_set = "sub_task:[[OP]]"
// CHECK-NEXT: "ipu.copy"(%[[ACC]], %{{.*}}) {bytes = 48 : i64, {{.*}}kind = "reduce"
// CHECK-NEXT: compute_set = "combine:[[OP]]"
// CHECK-NEXT: compute_set = "epilogue:[[OP]]"
// CHECK-NEXT: }) {op_name = "[[OP]]"}
func.func @main(%a: tensor<8x16xf16>, %b: tensor<16x8xf16>) -> tensor<8x8xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<8x8xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<8x8xf16>) -> tensor<8x8xf16>
  %c = linalg.matmul ins(%a, %b : tensor<8x16xf16>, tensor<16x8xf16>) outs(%init : tensor<8x8xf16>) -> tensor<8x8xf16>
  return %c : tensor<8x8xf16>
}
