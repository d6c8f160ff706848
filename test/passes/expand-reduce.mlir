// RUN: t10-opt --t10-expand %s | filecheck %s
// RUN: t10-opt --t10-expand --t10-lower-ipu %s -o %t.expanded.mlir
// RUN: t10-opt --t10-lower-ipu %s | diff %t.expanded.mlir -

// k is split over 4 cores and nothing rotates: one sub-task, then the 4 cores with partial sums of a 4 x 4 block each end
// with 4 of its sums. The product started from a bias: zero is where partial sums start, or the bias would count four
// times; it is added once, with the exponential, to what a core ends with.
// CHECK: #[[OWN:.*]] = #rtensor.layout<{{.*}}fs = [2, 2], ft = [1, 1], {{.*}}scatter = 4
// CHECK: #[[PART:.*]] = #rtensor.layout<{{.*}}fs = [2, 2], ft = [1, 1], {{.*}}partial = "sum"
// CHECK: %[[BIAS:.*]] = "rtensor.relayout"(%{{.*}}) : (tensor<8x8xf32
// CHECK-NEXT: %[[ZERO:.*]] = "rtensor.fill"() {combine = "sum"} : () -> tensor<8x8xf32, #[[PART]]>
// CHECK-NEXT: %[[PARTIAL:.*]] = "rtensor.sub_task"(%[[ZERO]]) ({
// CHECK-NEXT: outs(%[[ZERO]] :
// CHECK: %[[SUMS:.*]] = "rtensor.reduce"(%[[PARTIAL]]) : (tensor<8x8xf32, #[[PART]]>) -> tensor<8x8xf32, #[[OWN]]>
// CHECK-NEXT: %[[RESULT:.*]] = "rtensor.allocate"() : () -> tensor<8x8xf32, #[[OWN]]>
// CHECK-NEXT: "rtensor.sub_task"(%[[RESULT]]) ({
// CHECK-NEXT: ins(%[[SUMS]], %[[BIAS]] :
// CHECK: arith.addf
// CHECK: math.exp
// CHECK-NOT: scf.for
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
module attributes {t10.chip = "test-16"} {
  func.func @main(%a: tensor<8x16xf32>, %b: tensor<16x8xf32>, %bias: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %c = "rtensor.operator"() ({
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%bias : tensor<8x8xf32>) {
      ^bb0(%s: f32, %t: f32, %acc: f32):
        %m = arith.mulf %s, %t : f32
        %n = arith.addf %acc, %m : f32
        linalg.yield %n : f32
      } -> tensor<8x8xf32>
      %e = tensor.empty() : tensor<8x8xf32>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%p : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
      ^bb0(%s: f32, %o: f32):
        %x1 = math.exp %s : f32
        linalg.yield %x1 : f32
      } -> tensor<8x8xf32>
      "rtensor.yield"(%r) : (tensor<8x8xf32>) -> ()
    }) {op_name = "product", kind = "contraction",
        rtensor.forced = {f_op = [2, 2, 4], ft = [[1, 1, 1], [1, 1, 1], [1, 1, 1]]},
        rtensor.candidates = [#rtensor.plan<{f_op = [2, 2, 4], ft = [[1, 1, 1], [1, 1, 1], [1, 1, 1]]}>]}
       : () -> tensor<8x8xf32>
    return %c : tensor<8x8xf32>
  }
}
