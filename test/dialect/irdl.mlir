// The IRDL form of our dialects loads in tools that know nothing of them.
// REQUIRES: torch-mlir-opt
// RUN: t10-opt --dump-irdl=rtensor -o %t.irdl.mlir
// RUN: torch-mlir-opt --irdl-file=%t.irdl.mlir %s | filecheck %s
// RUN: t10-opt --dump-irdl=rtensor | filecheck %s --check-prefix=IRDL
// RUN: t10-opt --dump-irdl=ipu | filecheck %s --check-prefix=IPU
// RUN: not t10-opt --dump-irdl=tensor 2>&1 | filecheck %s --check-prefix=UNKNOWN

// IRDL: // Dialect rtensor for mlir-opt --irdl-file of LLVM 20 and newer.
// IRDL: irdl.dialect @rtensor
// IRDL: irdl.attribute @grid
// IRDL: irdl.attribute @layout
// IRDL: irdl.operation @setup
// IPU: irdl.dialect @ipu
// IPU: irdl.type @tensor
// UNKNOWN: no dialect named tensor of ours (expected one of rtensor, ipu)

// CHECK: "rtensor.setup"(%arg0)
// CHECK-SAME: #rtensor.linear<{cores = 16 : i64}>
// CHECK-SAME: #rtensor.layout<#rtensor.grid<{core_order = [0], f_op = [4, 1]
// CHECK-SAME: {fs = [4, 1], ft = [1, 1], map = #map, rp = [0, 0]}>
#grid = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
func.func @f(%w: tensor<8x8xf16, #rtensor.linear<{cores = 16}>>) {
  %a = "rtensor.setup"(%w) : (tensor<8x8xf16, #rtensor.linear<{cores = 16}>>)
    -> tensor<8x8xf16, #rtensor.layout<#grid, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>>
  return
}
