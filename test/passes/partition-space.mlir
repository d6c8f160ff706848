// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=100" %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=100 exhaustive" %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=1 f-op=4,4,1" %s | filecheck %s --check-prefix=ONE
// RUN: t10-opt --t10-align-pace="chip=test-16 max-candidates=100" %s | filecheck %s --check-prefix=ALIGNED
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=100" --t10-align-pace="max-candidates=1200" %s -o %t.late.mlir
// RUN: t10-opt --t10-align-pace="chip=test-16 max-candidates=1200" %s | diff %t.late.mlir -

// Listed or not, priced one by one or searched in one call: the same front, bit for bit.
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=1200" --t10-align-pace --t10-pareto %s -o %t.listed.mlir
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=0" --t10-align-pace="max-candidates=0" --t10-pareto %s | diff %t.listed.mlir -
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=0" %s | t10-opt --t10-align-pace="max-candidates=1200" | t10-opt --t10-pareto | diff %t.listed.mlir -
// RUN: t10-opt --t10-pareto="chip=test-16" %s | diff %t.listed.mlir -
// RUN: t10-opt --mlir-print-local-scope %t.listed.mlir | filecheck %s --check-prefix=FRONT

// Prerequisites leave spaces where nobody looks, lists where the pass after them is the one that reads them.
// RUN: t10-opt --t10-pareto="chip=test-16" --mlir-print-ir-after=t10-align-pace %s 2>&1 >%t | filecheck %s --check-prefix=ALIGNED
// RUN: t10-opt --mlir-print-local-scope --t10-align-pace="chip=test-16 max-candidates=1200" --mlir-print-ir-after=t10-partition %s 2>&1 >%t | filecheck %s --check-prefix=LISTED

// A space that is not the operator's is refused.
// RUN: t10-opt --t10-partition="chip=test-16 max-candidates=100" %s | sed "s/n_f_op = 65/n_f_op = 64/" | not t10-opt --t10-pareto 2>&1 | filecheck %s --check-prefix=OTHER
// RUN: t10-opt --t10-align-pace="chip=test-16 max-candidates=100" %s | not t10-opt --pass-pipeline="builtin.module(t10-pareto{max-front=0})" 2>&1 | filecheck %s --check-prefix=FRONTLESS
// RUN: not t10-opt --t10-partition="chip=test-16 max-candidates=-1" %s 2>&1 | filecheck %s --check-prefix=FEWER
// RUN: t10-opt --t10-partition="chip=test-16" %s | not t10-opt --t10-align-pace="max-candidates=-1" 2>&1 | filecheck %s --check-prefix=FEWER

// 65 products of 1, 2, 3, 4, 6, 8 and 16 are at most 16: so few F_op that there are no constraints, and one core may do. They
// have 1,183 ft between them, more than may be listed.
// CHECK: op_name = "product", rtensor.space = #rtensor.space<{at_most = 1183 : i64, cores = 16 : i64, least_cores = 1 : i64, n_f_op = 65 : i64, padding = 0.000000e+00 : f64}>
// CHECK-NOT: rtensor.candidates

// One F_op is one of the constraints, however much its parts are padded: A and B are shared by 4 cores each, and cut along
// two axes by factors whose product divides 4 in 6 ways, 36 together.
// ONE: rtensor.space = #rtensor.space<{at_most = 36 : i64, cores = 16 : i64, f_op = [4, 4, 1], least_cores = 16 : i64, n_f_op = 1 : i64, padding = 0.000000e+00 : f64}>

// ALIGNED: rtensor.space = #rtensor.space<{aligned = true, at_most = 1183 : i64
// LISTED: rtensor.candidates = [#rtensor.plan<{f_op = [1, 1, 1], ft
// FRONT: rtensor.candidates = [#rtensor.plan<{active_bytes
// FRONT-NOT: rtensor.space
// OTHER: error: operator 'product': the space counts 64 F_op, 65 are within its constraints (run --t10-partition anew)
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
