// RUN: t10-opt --t10-fuse=orders=keep --t10-partition="chip=test-16 f-op=4,4,1 ft=1x1x1,1x1x1,1x1x1 operator=product" --t10-partition="chip=test-16 f-op=4,4 ft=1x1,1x1 operator=sums" --t10-expand %s | filecheck %s

// The sums of rows of a product. Both operators cut rows and columns by 4, so every core sums the 4 x 4 block it has made:
// the product is read where it lies, seen on the grid of the sums. The 4 cores of a row hold partial sums and end with 1 of
// 4 sums each.
// CHECK: #[[OWN:.*]] = #rtensor.layout<#grid, {fs = [4], ft = [1], {{.*}}scatter = 4
// CHECK: #[[H:.*]] = #rtensor.layout<#grid1, {fs = [4, 4]
// CHECK: #[[SEEN:.*]] = #rtensor.layout<#grid, {fs = [4, 4]
// CHECK: "rtensor.relayout"
// CHECK-NOT: rtensor.relayout
// CHECK: %[[SAME:.*]] = "rtensor.cast"(%{{.*}}) : (tensor<16x16xf32, #[[H]]>) -> tensor<16x16xf32, #[[SEEN]]>
// CHECK-NOT: rtensor.relayout
// CHECK: ins(%[[SAME]] :
// CHECK: "rtensor.reduce"(%{{.*}}) : ({{.*}}) -> tensor<16xf32, #[[OWN]]>
func.func @main(%x: tensor<16x64xf32>, %w: tensor<64x16xf32> {t10.weight}) -> tensor<16xf32> {
  %z = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<16x16xf32>
  %i0 = linalg.fill ins(%z : f32) outs(%e0 : tensor<16x16xf32>) -> tensor<16x16xf32>
  %h = linalg.matmul ins(%x, %w : tensor<16x64xf32>, tensor<64x16xf32>) outs(%i0 : tensor<16x16xf32>) -> tensor<16x16xf32>
    loc("product")
  %e1 = tensor.empty() : tensor<16xf32>
  %i1 = linalg.fill ins(%z : f32) outs(%e1 : tensor<16xf32>) -> tensor<16xf32>
  %s = linalg.reduce ins(%h : tensor<16x16xf32>) outs(%i1 : tensor<16xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %r = arith.addf %acc, %in : f32
      linalg.yield %r : f32
    } loc("sums")
  return %s : tensor<16xf32>
}
