// A layer, compiled with a pinned plan, explained, and its front searched. Both commands answer in text and in JSON.
// RUN: rm -rf %t && t10 compile %s -o %t --chip test-16 --quiet
// RUN: t10 explain %t --op product --plot %t/why.svg | filecheck %s --check-prefix=WHY
// RUN: t10 explain %t --op product --json | filecheck %s --check-prefix=JSON
// RUN: t10 explain %t | filecheck %s --check-prefix=LIST
// RUN: not t10 explain %t --op produce 2>&1 | filecheck %s --check-prefix=NAME
// RUN: t10 pareto %t --op product | filecheck %s --check-prefix=MARKED
// RUN: t10 pareto %s --op product --chip test-4 --cost-model t10-paper --json | filecheck %s --check-prefix=FRONT
// RUN: not t10 pareto %s --op product --plot %t/front.pdf 2>&1 | filecheck %s --check-prefix=FORM

// WHY: product: contraction at {{.*}}on test-16
// WHY: sum over k of f(a[m, k], b[n, k])
// WHY: cycles (modelled, ipu)
// WHY: on 6 cores, m in 2 parts of 1, n in 3 parts of 1, k whole (6):
// WHY-NEXT:   for k in 3 steps of 2, from 2 * n + 3 * m mod 6:
// WHY-NEXT:     compute m 1, n 1, k 2 {{.*}} cycles
// WHY-NEXT:     shift a, b by 2 along k, 16 B to the next core {{.*}} cycles
// WHY: a: who holds what, passed on around rings of 3
// WHY: m = 1{{.*}} m 1 k 3..4 {{.*}} m 1 k 5..0 {{.*}} m 1 k 1..2
// WHY: Why this plan
// WHY: wrote {{.*}}why.svg
// JSON: "format": "t10-explanation"
// JSON: "cost_model": "ipu"
// LIST: product {{.*}} contraction {{.*}} m=2 n=3 k=6
// NAME: t10: error: no operator 'produce' (did you mean product?)
// MARKED: product on test-16: time against memory (modelled, ipu)
// MARKED: {{runs in the compiled model|runs another plan}}
// FRONT: "format": "t10-front"
// FRONT: "cost_model": "t10-paper"
// FORM: t10: error: cannot draw {{.*}}front.pdf: its name ends in '.pdf' (expected .png or .svg)
func.func @main(%a: tensor<2x6xf32> {t10.name = "a"}, %b: tensor<6x3xf32> {t10.name = "b", t10.weight}) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = linalg.matmul {rtensor.forced = {f_op = [2, 3, 1], ft = [[1, 1, 3], [1, 1, 2], [1, 1, 1]]}}
    ins(%a, %b : tensor<2x6xf32>, tensor<6x3xf32>) outs(%init : tensor<2x3xf32>) -> tensor<2x3xf32> loc("product")
  return %c : tensor<2x3xf32>
}
