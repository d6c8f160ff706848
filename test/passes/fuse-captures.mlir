// RUN: t10-opt --t10-fuse=orders=keep %s | filecheck %s
// RUN: t10-opt --t10-fuse=orders=keep --cse --canonicalize %s | filecheck %s
// RUN: t10-opt --t10-partition=chip=test-4 --t10-reconcile --t10-verify-plan %s | filecheck %s --check-prefix=PLANNED

// A product and the sum of 13 tensors of 13 types behind it: one operator reads them all, in place.
// CHECK-COUNT-1: "rtensor.operator"() ({
// CHECK: ins(%arg0, %arg1 : tensor<4x8xf32>, tensor<8x6xf32>)
// CHECK: ins(%{{.*}}, %arg2, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg10, %arg11, %arg12, %arg13, %arg14 :
// CHECK: }) {kind = "contraction"
// PLANNED-COUNT-1: "rtensor.operator"() ({
// PLANNED: rtensor.plan = 
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x6xf32> {t10.weight}, %b0: tensor<4x6xf32>, %b1: tensor<6xf32>, %b2: tensor<4xf32>, %b3: tensor<1x6xf32>, %b4: tensor<4x1xf32>, %b5: tensor<1xf32>, %b6: tensor<1x1xf32>, %b7: tensor<4x6xf16>, %b8: tensor<6xf16>, %b9: tensor<4xf16>, %b10: tensor<1x6xf16>, %b11: tensor<4x1xf16>, %b12: tensor<1xf16>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x6xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32>
  %p = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x6xf32>) outs(%init : tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (0)>, affine_map<(i, j) -> (0, 0)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (0, j)>, affine_map<(i, j) -> (i, 0)>, affine_map<(i, j) -> (0)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%p, %b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7, %b8, %b9, %b10, %b11, %b12 : tensor<4x6xf32>,
    tensor<4x6xf32>, tensor<6xf32>, tensor<4xf32>, tensor<1x6xf32>, tensor<4x1xf32>, tensor<1xf32>, tensor<1x1xf32>, tensor<4x6xf16>, tensor<6xf16>, tensor<4xf16>, tensor<1x6xf16>, tensor<4x1xf16>, tensor<1xf16>) outs(%e : tensor<4x6xf32>) {
  ^bb0(%a: f32, %v0: f32, %v1: f32, %v2: f32, %v3: f32, %v4: f32, %v5: f32, %v6: f32, %v7: f16, %v8: f16, %v9: f16, %v10: f16, %v11: f16, %v12: f16, %o: f32):
    %s0 = arith.addf %a, %v0 : f32
    %s1 = arith.addf %s0, %v1 : f32
    %s2 = arith.addf %s1, %v2 : f32
    %s3 = arith.addf %s2, %v3 : f32
    %s4 = arith.addf %s3, %v4 : f32
    %s5 = arith.addf %s4, %v5 : f32
    %s6 = arith.addf %s5, %v6 : f32
    %w7 = arith.extf %v7 : f16 to f32
    %s7 = arith.addf %s6, %w7 : f32
    %w8 = arith.extf %v8 : f16 to f32
    %s8 = arith.addf %s7, %w8 : f32
    %w9 = arith.extf %v9 : f16 to f32
    %s9 = arith.addf %s8, %w9 : f32
    %w10 = arith.extf %v10 : f16 to f32
    %s10 = arith.addf %s9, %w10 : f32
    %w11 = arith.extf %v11 : f16 to f32
    %s11 = arith.addf %s10, %w11 : f32
    %w12 = arith.extf %v12 : f16 to f32
    %s12 = arith.addf %s11, %w12 : f32
    linalg.yield %s12 : f32
  } -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
