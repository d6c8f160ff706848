// A stock mlir-opt reads and writes the generic form of a module at the compute-shift level, and nothing is lost. It knows
// neither dialect: attributes are texts to it, in which the names of others mean nothing. So they are printed in full.
// REQUIRES: mlir-opt
// RUN: t10-opt --mlir-print-op-generic --mlir-print-local-scope %S/rtensor-ops.mlir -o %t.generic.mlir
// RUN: mlir-opt --allow-unregistered-dialect %t.generic.mlir | filecheck %s
// RUN: mlir-opt --allow-unregistered-dialect %t.generic.mlir | t10-opt -o %t.back.mlir
// RUN: t10-opt %S/rtensor-ops.mlir | diff %t.back.mlir -

// CHECK: "rtensor.operator"() ({
// CHECK: scf.for
// CHECK: "rtensor.shift"
// CHECK-SAME: #rtensor.layout<#rtensor.grid<{core_order = [0, 1], f_op = [2, 3, 1]
// CHECK: "rtensor.sub_task"
// CHECK: linalg.generic
