// RUN: t10-opt --t10-partition="chip=test-4 f-op=2,2,1 ft=1x1x1,1x1x1,1x1x1" --t10-lower-ipu %s | filecheck %s

// A bias that is added to a product is its epilogue: it runs on the 2 x 2 sums of every tile, in place (one field is both
// input and output), with the 2 elements of the bias that belong to the tile's columns.
// CHECK: %[[BIAS:.*]] = "ipu.alloc"() {{.*}}role = "weight", shape = [2], sym_name = "idle:arg2"}
// CHECK: %[[C:.*]] = "ipu.alloc"() {{.*}}role = "output", shape = [2, 2], sym_name = "value:product:0"}
// CHECK-NOT: sym_name = "accumulator:product"
// CHECK: "ipu.vertex"(%[[BIAS]], %[[C]]) {codelet = "Vector_addf_f32_f32_f32_{{.*}}_in_place_0", {{.*}}words = [0, {offset = 0 : i64, operand = 0 : i64}, {offset = 0 : i64, operand = 1 : i64},
// CHECK-NEXT: }) {cycles = {{[0-9]+}} : i64, kind = "epilogue", op_name = "product", sym_name = "epilogue:product"}
// CHECK: "ipu.execute"() {compute_set = "sub_task:product"}
// CHECK-NEXT: "ipu.execute"() {compute_set = "epilogue:product"}
// CHECK-NEXT: }) {op_name = "product"}
func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32> {t10.weight}, %bias: tensor<4xf32> {t10.weight}) -> tensor<4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = linalg.matmul ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
    loc("product")
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%c, %bias : tensor<4x4xf32>, tensor<4xf32>) outs(%empty : tensor<4x4xf32>) {
  ^bb0(%in: f32, %add: f32, %out: f32):
    %s = arith.addf %in, %add : f32
    linalg.yield %s : f32
  } -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
