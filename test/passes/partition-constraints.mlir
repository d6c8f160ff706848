// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=ipu-mk2" %s | filecheck %s
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=ipu-mk2 parallelism=0.2 padding=0.5" --t10-partition="chip=ipu-mk2" %s | filecheck %s
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=ipu-mk2" %s -o %t.mlir
// RUN: grep -o "#rtensor.plan" %t.mlir | wc -l | filecheck %s --check-prefix=COUNT
// RUN: t10-opt --t10-partition="chip=ipu-mk2 max-candidates=1" %s | filecheck %s --check-prefix=SPACE
// RUN: t10-opt --t10-partition="chip=ipu-mk2 max-candidates=1 exhaustive" %s | filecheck %s --check-prefix=EVERY
// RUN: t10-opt --t10-partition="chip=ipu-mk2" --t10-pareto %s -o %t.listed.mlir
// RUN: t10-opt --t10-partition="chip=ipu-mk2 max-candidates=1" --t10-align-pace="max-candidates=1" --t10-pareto %s | diff %t.listed.mlir -

// n = 23 * 16^4 results and 1,472 cores: at least 0.9 * n / (n + 2 * 1472) * 1472 = 1,322.2 of them must work, and no axis may
// be padded by more than about 1/9, so an axis of 16 is cut in 1, 2, 4, 8 or 16. That of 23 may be cut in 1, 2, 3, 4, 5, 6, 8, 12 or
// 23: only 23 times 64 is from 1,323 to 1,472. 64 is a product of four powers of two up to 16 in 68 ways. Three quarters of 1,472
// cores are enough where nothing rotates: 5 times 256 is from 1,104 to 1,472, and 256 is such a product in 85 ways.
// CHECK: rtensor.candidates = [#rtensor.plan<{f_op = [5, 1, 1, 16, 16], ft = {{\[\[}}1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]]}>,
// CHECK-NOT: f_op = [{{[0-9]+, ([0-9]+, )*([35679]|1[0-57-9])(, [0-9]+)*}}]
// CHECK-NOT: f_op = [{{([0-46-9]|1[0-9])}},
// CHECK: return
// COUNT: 153

// SPACE: rtensor.space = #rtensor.space<{at_most = 153 : i64, cores = 1472 : i64, least_cores = 1472 : i64, n_f_op = 68 : i64, padding = 0.8991
// SPACE-SAME: unrotated = {least_cores = 1280 : i64, n_f_op = 153 : i64, padding = 0.8991
// EVERY: least_cores = 1 : i64, n_f_op = {{[0-9]+}} : i64, padding = 0.000000e+00 : f64
func.func @main(%a: tensor<23x16x16x16x16xf32>, %b: tensor<23x16x16x16x16xf32>) -> tensor<23x16x16x16x16xf32> {
  %empty = tensor.empty() : tensor<23x16x16x16x16xf32>
  %c = linalg.add ins(%a, %b : tensor<23x16x16x16x16xf32>, tensor<23x16x16x16x16xf32>) outs(%empty : tensor<23x16x16x16x16xf32>)
    -> tensor<23x16x16x16x16xf32>
  return %c : tensor<23x16x16x16x16xf32>
}
