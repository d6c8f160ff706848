// A layer with its weight, down to the chip: the folder for the Poplar SDK, and its assembly run instruction by instruction.
// (--engine poplar-host needs g++: test/e2e/test_device_models.py.)
// RUN: rm -rf %t && t10 compile %s -o %t --chip test-4 | filecheck %s --check-prefix=COMPILE
// RUN: t10 run %t --seed 3 --engine iss --outputs %t/iss.npz --trace %t/trace.json | filecheck %s --check-prefix=RAN
// RUN: filecheck %s --check-prefix=TRACE < %t/trace.json
// RUN: filecheck %s --check-prefix=PROGRAM < %t/program/program.cpp
// RUN: filecheck %s --check-prefix=WEIGHTS < %t/program/weights.json
// RUN: t10 asm %t/program/codelets.S | filecheck %s --check-prefix=CODE
// RUN: not t10 run %t --engine poplar-host --trace %t/trace.json 2>&1 | filecheck %s --check-prefix=NOTRACE
// RUN: rm -rf %t && t10 compile %s -o %t --chip test-4 --no-program | filecheck %s --check-prefix=PLANNED
// RUN: not test -e %t/program
// RUN: not t10 run %t --engine iss 2>&1 | filecheck %s --check-prefix=ALONE

// COMPILE: program: {{[0-9]+}} codelet{{s?}} ({{[0-9,]+}} bytes of code), {{[0-9]+}} compute set{{s?}}, {{[0-9]+}} exchange{{s?}}; {{[0-9,]+}} bytes per tile
// COMPILE: wrote {{.*}}: module.mlir, plan.json, report.json, weights.npz, program/, manifest.json
// RAN: {{[0-9,]+}} cycles, {{.*}} (modelled, instruction-set simulator): compute
// RAN: inputs were random
// TRACE: "traceEvents"
// TRACE: "tile 0
// PROGRAM: // layer for chip test-4, 4 tiles; written by T10.
// PROGRAM: int main(
// WEIGHTS: "constant
// CODE: exitz
// NOTRACE: t10: error: --trace needs an engine that counts cycles
// PLANNED-NOT: program:
// PLANNED: wrote {{.*}}: module.mlir, plan.json, report.json, weights.npz, manifest.json{{$}}
// ALONE: t10: error: {{.*}} holds no program (no program/), only a plan (compile the model again without --no-program
func.func @layer(%x: tensor<4x8xf32> {t10.name = "x"}) -> (tensor<4x2xf32> {t10.name = "y"}) {
  %w = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [1.5, 2.5], [3.5, 4.5], [5.5, 6.5], [7.5, 8.5]]> : tensor<8x2xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x2xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x2xf32>) -> tensor<4x2xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x2xf32>) outs(%init : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}
