// The IRDL form of rtensor loads in stock mlir-opt.
// REQUIRES: mlir-opt-irdl
// RUN: t10-opt --dump-irdl=rtensor -o %t.irdl.mlir
// RUN: mlir-opt --irdl-file=%t.irdl.mlir %s | filecheck %s

// CHECK: "rtensor.setup"(%arg0)
// CHECK-SAME: #rtensor.linear<{cores = 16 : i64}>
// CHECK-SAME: #rtensor.layout<#rtensor.grid<{core_order = [0], f_op = [4, 1]
// CHECK-SAME: {fs = [4, 1], ft = [1, 1], map = {{.*}}, rp = [0, 0]}>
#grid = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
func.func @f(%w: tensor<8x8xf16, #rtensor.linear<{cores = 16}>>) {
  %a = "rtensor.setup"(%w) : (tensor<8x8xf16, #rtensor.linear<{cores = 16}>>)
    -> tensor<8x8xf16, #rtensor.layout<#grid, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>>
  return
}
