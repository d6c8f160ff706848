// A linalg model through every command. `relu` of a matmul becomes one operator; the folder holds what the page says.
// RUN: rm -rf %t && t10 compile %s -o %t --chip test-4 | filecheck %s --check-prefix=COMPILE
// RUN: filecheck %s --check-prefix=PLAN < %t/plan.json
// RUN: filecheck %s --check-prefix=MODULE < %t/module.mlir
// RUN: t10-opt %t/module.mlir -o %t.again.mlir
// RUN: t10 run %t --seed 3 --outputs %t/out.npz --trace %t/trace.json | filecheck %s --check-prefix=RAN
// RUN: filecheck %s --check-prefix=TRACE < %t/trace.json
// RUN: t10 report %t | filecheck %s --check-prefix=REPORT
// RUN: filecheck %s --check-prefix=PAGE < %t/report.html
// RUN: t10 report %t --quiet --no-plots > %t/empty.txt

// COMPILE: model {{.*}}(1 operator)
// COMPILE: chip {{.*}}test-4: 4 cores
// COMPILE: cycles (modelled, ipu)
// COMPILE: plan {{ *}}optimal over {{[0-9]+}} states of 1 operator: no choice takes fewer than
// COMPILE: wrote {{.*}}: module.mlir, plan.json, report.json, weights.npz

// PLAN: "format": "t10-plan"
// PLAN: "modelled": true
// PLAN: "chip": "test-4"

// The plan of a compiled model is its types and operations.
// MODULE: #rtensor.layout<
// MODULE: rtensor.shift_buffer
// MODULE: rtensor.operator

// RAN: {{[0-9,]+}} cycles, {{.*}} (modelled, ipu): compute
// RAN: inputs were random (seed 3)
// RAN: wrote {{.*}}out.npz: y
// TRACE: "traceEvents"
// TRACE: "compute"

// REPORT: Operators (cycles are modelled, ipu)
// REPORT: contraction
// REPORT: wrote {{.*}}: report.html, time.svg, pareto.svg, memory.svg, tile.svg, trace.json
// PAGE: modelled from published figures
// PAGE: <svg

func.func @layer(%x: tensor<4x8xf32> {t10.name = "x"}, %w: tensor<8x6xf32> {t10.name = "w"})
    -> (tensor<4x6xf32> {t10.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x6xf32>) -> tensor<4x6xf32>
  %c = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%c : tensor<4x6xf32>) outs(%empty : tensor<4x6xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.maximumf %in, %zero : f32
    linalg.yield %r : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
