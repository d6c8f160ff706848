// An mlir-opt before LLVM 20 refuses our IRDL, as its first line says.
// REQUIRES: mlir-opt-before-irdl
// RUN: t10-opt --dump-irdl=rtensor -o %t.irdl.mlir
// RUN: not mlir-opt --irdl-file=%t.irdl.mlir %s
func.func @f() { return }
