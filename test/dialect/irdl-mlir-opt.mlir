// The IRDL form of rtensor loads in stock mlir-opt.
// REQUIRES: mlir-opt
// RUN: t10-opt --dump-irdl=rtensor -o %t.irdl.mlir
// RUN: mlir-opt --irdl-file=%t.irdl.mlir %s | filecheck %s


// CHECK: "rtensor.setup"(%{{.*}}) {bytes = 24 : i64, cycles = 310 : i64}
// CHECK-SAME: #rtensor.layout<{cores = 4 : i64, fs = [4, 1], ft = [1, 2], rp = [0, 4]}>
func.func @f(%w: tensor<8x8xf16, #rtensor.layout<{linear = 16}>>) {
  %a = "rtensor.setup"(%w) {bytes = 24, cycles = 310}
    : (tensor<8x8xf16, #rtensor.layout<{linear = 16}>>)
    -> tensor<8x8xf16, #rtensor.layout<{fs = [4, 1], ft = [1, 2], rp = [0, 4], cores = 4}>>
  return
}
