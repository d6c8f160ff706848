// The IRDL form of our dialects loads in tools that know nothing of them.
// REQUIRES: torch-mlir-opt
// RUN: t10-opt --dump-irdl=rtensor -o %t.irdl.mlir
// RUN: torch-mlir-opt --irdl-file=%t.irdl.mlir %s | filecheck %s
// RUN: t10-opt --dump-irdl=rtensor | filecheck %s --check-prefix=IRDL
// RUN: t10-opt --dump-irdl=ipu | filecheck %s --check-prefix=IPU
// RUN: not t10-opt --dump-irdl=tensor 2>&1 | filecheck %s --check-prefix=UNKNOWN

// IRDL: irdl.dialect @rtensor
// IRDL: irdl.attribute @layout
// IRDL: irdl.operation @setup
// IPU: irdl.dialect @ipu
// IPU: irdl.type @tensor
// UNKNOWN: no dialect named tensor of ours (expected one of rtensor, ipu)

// CHECK: "rtensor.setup"(%{{.*}}) {bytes = 24 : i64, cycles = 310 : i64}
// CHECK-SAME: #rtensor.layout<{cores = 4 : i64, fs = [4, 1], ft = [1, 2], rp = [0, 4]}>
func.func @f(%w: tensor<8x8xf16, #rtensor.layout<{linear = 16}>>) {
  %a = "rtensor.setup"(%w) {bytes = 24, cycles = 310}
    : (tensor<8x8xf16, #rtensor.layout<{linear = 16}>>)
    -> tensor<8x8xf16, #rtensor.layout<{fs = [4, 1], ft = [1, 2], rp = [0, 4], cores = 4}>>
  return
}
