// RUN: t10-opt --t10-fuse=orders=keep --t10-partition="chip=test-4 f-op=1,1,4 ft=1x1x1,1x1x1,1x1x1" --t10-lower-ipu %s | filecheck %s

// k is split over 4 tiles: each holds partial sums of all 8 x 16 elements in f32. Tile k ends with the two rows from 2k on,
// 32 elements, 128 bytes: it gets them from the 3 others, 384 bytes. The epilogue adds them to its own and rounds them to
// f16.
// CHECK: %[[ACC:.*]] = "ipu.alloc"() {{.*}}element = f32, {{.*}}role = "partial", shape = [8, 16], sym_name = "accumulator:product"}
// CHECK-NEXT: %[[C:.*]] = "ipu.alloc"() {{.*}}ft=[1, 1] rp=[0, 0], one of 4 chunks", element = f16, {{.*}}role = "output", shape = [32], sym_name = "value:product:0"}
// CHECK-NEXT: %[[BUFFER:.*]] = "ipu.alloc"() {{.*}}sym_name = "shift:f32"}

// On every tile the sums begin at another place: 128 bytes further for each chunk. The result begins at 0.
// CHECK: "ipu.vertex"(%[[BUFFER]], %[[ACC]], %[[C]]) {{.*}}words = [{offset = 0 : i64, operand = 0 : i64}, {offset = array<i64: 0, 128, 256, 384>, operand = 1 : i64}, {offset = 0 : i64, operand = 2 : i64}
// CHECK: kind = "epilogue"
// CHECK: direction = "output"
// CHECK: "ipu.execute"() {compute_set = "sub_task:product"}
// CHECK-NEXT: "ipu.copy"(%[[ACC]], %[[BUFFER]]) {bytes = 384 : i64, comment = "partial results of 4 cores", {{.*}}kind = "reduce"
// CHECK-NEXT: "ipu.execute"() {compute_set = "epilogue:product"}
// CHECK-NEXT: }) {op_name = "product"}
func.func @main(%a: tensor<8x8xf16>, %b: tensor<8x16xf16> {t10.weight}) -> tensor<8x16xf16> {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<8x16xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<8x16xf16>) -> tensor<8x16xf16>
  %c = linalg.matmul ins(%a, %b : tensor<8x8xf16>, tensor<8x16xf16>) outs(%init : tensor<8x16xf16>) -> tensor<8x16xf16>
    loc("product")
  return %c : tensor<8x16xf16>
}
