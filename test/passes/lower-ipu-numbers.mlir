// RUN: t10-opt --t10-partition=chip=test-4 --t10-lower-ipu %s -o %t
// RUN: filecheck %s --input-file %t
// RUN: t10-opt %t | diff - %t
// RUN: t10-opt --mlir-print-local-scope %t | filecheck %s --check-prefix=DIGITS

// A table of 4 x 32 elements is written as numbers, not as the digits of its bytes, and reads back equal.
// CHECK: "ipu.table"() {elements = dense<{{\[\[}}0, 1, 2, {{.*}}30, 31], [0, {{.*}}31]]> : tensor<4x32xi32>, sym_name = "table0"}
// CHECK-NOT: dense<"0x
// DIGITS: "ipu.table"() {elements = dense<"0x0000000001000000{{.*}} : tensor<4x32xi32>
func.func @m(%x: tensor<4x8xf32> {t10.name = "x"}, %w: tensor<8x4xf32> {t10.name = "w", t10.weight})
    -> (tensor<4x4xf32> {t10.name = "z"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x4xf32>) outs(%init : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
