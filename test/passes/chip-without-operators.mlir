// RUN: t10-opt --t10-partition="chip=test-4 cost-model=t10-paper" --t10-align-pace --t10-place %s | filecheck %s
// RUN: t10-opt --t10-partition="chip=test-4 cost-model=t10-paper" --t10-lower-ipu %s | filecheck %s

// A function without operators keeps the chip that was asked for: nothing is planned anew for the default one.
// CHECK: module attributes {t10.chip = "test-4", t10.cost_model = "t10-paper"}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
