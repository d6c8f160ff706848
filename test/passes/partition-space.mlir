// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=100" %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=100 exhaustive" %s | filecheck %s --check-prefix=EVERY
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=1 f-op=4,4,1" %s | filecheck %s --check-prefix=ONE
// RUN: t10-opt --t10-align-pace="chip=test-16 max-candidates=100" %s | filecheck %s --check-prefix=ALIGNED
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=100" --t10-align-pace="max-candidates=1000" %s -o %t.late.mlir
// RUN: t10-opt --t10-align-pace="chip=test-16 max-candidates=1000" %s | diff %t.late.mlir -

// Listed or not, priced one by one or searched in one call: the same front, bit for bit.
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=1000" --t10-align-pace --t10-pareto %s -o %t.listed.mlir
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=0" --t10-align-pace="max-candidates=0" --t10-pareto %s | diff %t.listed.mlir -
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=0" %s | t10-opt --t10-align-pace="max-candidates=1000" | t10-opt --t10-pareto | diff %t.listed.mlir -
// RUN: t10-opt --t10-pareto="chip=test-16" %s | diff %t.listed.mlir -
// RUN: t10-opt --mlir-print-local-scope %t.listed.mlir | filecheck %s --check-prefix=FRONT

// Prerequisites leave spaces where nobody looks, lists where the pass after them is the one that reads them.
// RUN: t10-opt --t10-pareto="chip=test-16" --mlir-print-ir-after=t10-align-pace %s 2>&1 >%t | filecheck %s --check-prefix=ALIGNED
// RUN: t10-opt --mlir-print-local-scope --t10-align-pace="chip=test-16" --mlir-print-ir-after=t10-partition %s 2>&1 >%t | filecheck %s --check-prefix=LISTED

// A space that is not the operator's is refused.
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=100" %s | sed "s/n_f_op = 15/n_f_op = 14/" | not t10-opt --t10-pareto 2>&1 | filecheck %s --check-prefix=OTHER
// RUN: t10-opt --t10-align-pace="chip=test-16 max-candidates=100" %s | not t10-opt --pass-pipeline="builtin.module(t10-pareto{max-front=0})" 2>&1 | filecheck %s --check-prefix=FRONTLESS
// RUN: not t10-opt --t10-partition="chip=test-16 max-candidates=-1" %s 2>&1 | filecheck %s --check-prefix=FEWER
// RUN: t10-opt --t10-partition="chip=test-16" %s | not t10-opt --t10-align-pace="max-candidates=-1" 2>&1 | filecheck %s --check-prefix=FEWER

// All 16 cores work: 0.9 * 256 / (256 + 32) = 0.8 of them must, 13, and the fewest that a product of the factors of 16 has
// from there on are 16. The 15 F_op have 495 ft between them, more than may be listed.
// CHECK: op_name = "product", rtensor.space = #rtensor.space<{at_most = 495 : i64, cores = 16 : i64, least_cores = 16 : i64, n_f_op = 15 : i64, padding = 0.84705882352941175 : f64}>
// CHECK-NOT: rtensor.candidates

// Without constraints one core may do.
// EVERY: least_cores = 1 : i64, n_f_op = {{[0-9]+}} : i64, padding = 0.000000e+00 : f64

// One F_op is one of the constraints, however much its parts are padded: A and B are shared by 4 cores each, and cut along
// two axes by factors whose product divides 4 in 6 ways, 36 together.
// ONE: rtensor.space = #rtensor.space<{at_most = 36 : i64, cores = 16 : i64, f_op = [4, 4, 1], least_cores = 16 : i64, n_f_op = 1 : i64, padding = 0.000000e+00 : f64}>

// ALIGNED: rtensor.space = #rtensor.space<{aligned = true, at_most = 495 : i64
// LISTED: rtensor.candidates = [#rtensor.plan<{f_op = [1, 1, 16], ft
// FRONT: rtensor.candidates = [#rtensor.plan<{active_bytes
// FRONT-NOT: rtensor.space
// OTHER: error: operator 'product': the space counts 14 F_op, 15 are within its constraints (run --t10-partition anew)
// FRONTLESS: error: max_front is 0 (expected at least 1)
// FEWER: error: max-candidates is -1 (expected at least 0)
func.func @main(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<16x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<16x16xf32>) -> tensor<16x16xf32>
  %c = linalg.matmul ins(%a, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%init : tensor<16x16xf32>)
    -> tensor<16x16xf32> loc("product")
  return %c : tensor<16x16xf32>
}
