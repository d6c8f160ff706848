// As generic-mlir-opt.mlir, with the mlir-opt that comes in the wheel of torch-mlir.
// REQUIRES: torch-mlir-opt
// RUN: t10-opt --mlir-print-op-generic --mlir-print-local-scope %S/rtensor-ops.mlir -o %t.generic.mlir
// RUN: torch-mlir-opt --allow-unregistered-dialect %t.generic.mlir | t10-opt -o %t.back.mlir
// RUN: t10-opt %S/rtensor-ops.mlir | diff %t.back.mlir -
