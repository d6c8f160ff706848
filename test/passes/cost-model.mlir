// The module remembers under which cost model it is planned; later passes use the same.
// RUN: t10-opt --mlir-print-local-scope --t10-partition="chip=test-16 f-op=2,3,1 ft=1x1x1,1x1x1,1x1x1 cost-model=t10-paper" --t10-pareto %s | filecheck %s --check-prefix=PAPER
// RUN: t10-opt --t10-reconcile="chip=test-16" %s | filecheck %s --check-prefix=IPU
// RUN: t10-opt --t10-partition="chip=test-16" --t10-pareto="cost-model=t10-paper" %s 2>&1 >%t | filecheck %s --check-prefix=KEPT
// RUN: t10-opt --t10-partition="chip=test-16 cost-model=%S/Inputs/slow_products.py" --t10-reconcile --t10-lower-ipu %s | filecheck %s --check-prefix=FILE
// RUN: t10-opt --t10-partition="chip=test-16 cost-model=%S/Inputs/slow_products.py" --t10-place %s | t10-opt --allow-cost-model=%S/Inputs/slow_products.py --t10-verify-plan --t10-expand --t10-lower-ipu | filecheck %s --check-prefix=FILE
// RUN: not t10-opt --t10-partition="chip=test-16 cost-model=fast" %s 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not t10-opt --t10-partition="chip=test-16 cost-model=%t.none.py" %s 2>&1 | filecheck %s --check-prefix=NONE

// PAPER: module attributes {t10.chip = "test-16", t10.cost_model = "t10-paper"}
// PAPER: cycles = {compute = {{[0-9]+}} : i64
// IPU: module attributes {t10.chip = "test-16", t10.cost_model = "ipu"}
// KEPT: warning: 'builtin.module' op is planned under ipu: cost-model=t10-paper is not used (--t10-partition plans anew)
// A function of the user's prices compute steps; what is lowered carries it.
// FILE: t10.cost_model = "{{.*}}slow_products.py"
// FILE: cycles = 1000000 : i64, kind = "sub_task"
// UNKNOWN: error: unknown cost model 'fast' (expected one of ipu, t10-paper, or FILE.py, or FILE.py:FUNCTION)
// NONE: error: cost model file {{.*}}.none.py does not exist
func.func @main(%a: tensor<2x6xf32>, %b: tensor<6x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<2x6xf32>, tensor<6x3xf32>) outs(%init : tensor<2x3xf32>) -> tensor<2x3xf32>
    loc("product")
  return %c : tensor<2x3xf32>
}
