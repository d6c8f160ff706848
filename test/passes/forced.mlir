// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16" %s | filecheck %s
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16" --t10-partition="chip=test-16" %s | filecheck %s
// RUN: t10-opt --mlir-print-local-scope --t10-align-pace="chip=test-16" %s | filecheck %s --check-prefix=PACE
// RUN: t10-opt --mlir-print-local-scope --t10-reconcile="chip=test-16" %s | filecheck %s --check-prefix=CHOSEN
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16 plan=%S/Inputs/pins.json" %s | filecheck %s --check-prefix=FILE
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16 f-op=1,3,1 operator=product" %s | filecheck %s --check-prefix=OPTION

// The user has chosen the partition of one operator: it is the only candidate, whatever else would be faster. Fusing keeps
// the attribute, also where relu becomes the product's epilogue.
// CHECK: rtensor.candidates = [#rtensor.plan<{f_op = [2, 3, 1], ft = {{\[}}[1, 1, 3], [1, 1, 2], [1, 1, 1]]}>]
// CHECK-NOT: f_op = [2, 3, 1], ft = {{\[}}[1, 1, 1]
// CHECK: rtensor.forced = {f_op = [2, 3, 1], ft = {{\[}}[1, 1, 3], [1, 1, 2], [1, 1, 1]], rp = [0, 0, 2]}

// PACE: f_op = [2, 3, 1], ft = {{\[}}[1, 1, 3], [1, 1, 2], [1, 1, 1]], lengths = [1, 1, 6]
// PACE-SAME: rp = [0, 0, 2], steps = [1, 1, 3]

// A chosen plan stays a wish no longer.
// CHOSEN: rtensor.plan = #rtensor.plan<{
// CHOSEN-SAME: f_op = [2, 3, 1], ft = {{\[}}[1, 1, 3], [1, 1, 2], [1, 1, 1]]
// CHOSEN-NOT: rtensor.forced

// A file may name axes and tensors; it wins over the attribute. What it leaves out is searched: here ft of F_op 2 x 3.
// FILE-DAG: f_op = [2, 3, 1], ft = {{\[}}[1, 1, 1], [1, 1, 1], [1, 1, 1]]
// FILE-DAG: f_op = [2, 3, 1], ft = {{\[}}[1, 1, 3], [1, 1, 2], [1, 1, 1]]
// FILE: rtensor.forced = {f_op = [2, 3, 1], idle_level = 1 : i64}

// Options win over both.
// OPTION: rtensor.forced = {f_op = [1, 3, 1]}
func.func @main(%a: tensor<2x6xf32> {t10.name = "a"}, %b: tensor<6x3xf32> {t10.name = "b", t10.weight}) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = linalg.matmul {rtensor.forced = {f_op = [2, 3, 1], ft = [[1, 1, 3], [1, 1, 2], [1, 1, 1]], rp = [0, 0, 2]}}
    ins(%a, %b : tensor<2x6xf32>, tensor<6x3xf32>) outs(%init : tensor<2x3xf32>) -> tensor<2x3xf32> loc("product")
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<2x3xf32>) outs(%empty : tensor<2x3xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.maximumf %in, %zero : f32
    linalg.yield %r : f32
  } -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
