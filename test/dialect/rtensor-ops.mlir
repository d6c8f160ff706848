// RUN: t10-opt --verify-roundtrip %s | t10-opt | filecheck %s
// RUN: t10-opt --mlir-print-op-generic %s | t10-opt | filecheck %s
// RUN: t10-opt --mlir-print-local-scope %s | t10-opt | filecheck %s
// RUN: t10-opt --emit-bytecode %s | t10-opt | filecheck %s

// A grid comes before the layouts on it; both are named above the module.
// CHECK: #grid = #rtensor.grid<{core_order = [0], f_op = [4, 1], lengths = [2, 8]
// CHECK: #grid4 = #rtensor.grid<{core_order = [0, 1], f_op = [2, 3, 1], lengths = [1, 1, 6], loop_order = [2]
// CHECK: #linear = #rtensor.linear<{cores = 16 : i64}>
// CHECK: #layout = #rtensor.layout<#grid, {fs = [4, 1]
#rest = #rtensor.linear<{cores = 16}>
#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
#product = #rtensor.grid<{f_op = [4, 1, 1], lengths = [2, 8, 3], steps = [1, 1, 1], loop_order = [], core_order = [0], phases = [[], [], []]}>
#product_rows = #rtensor.layout<#product, {map = affine_map<(m, n, k) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
#by_columns = #rtensor.grid<{f_op = [1, 4], lengths = [8, 2], steps = [1, 1], loop_order = [], core_order = [1], phases = [[], []]}>
#columns = #rtensor.layout<#by_columns, {map = affine_map<(m, n) -> (m, n)>, fs = [1, 4], ft = [1, 1], rp = [0, 0]}>

// What moves follows from the two types. The rows of one grid lie as those of another: a cast moves nothing.
// CHECK-LABEL: func.func @moves
// CHECK-SAME: (%[[X:.*]]: tensor<8x8xf16>, %[[W:.*]]: tensor<8x8xf16> {t10.weight})
// CHECK-NEXT: %[[X0:.*]] = "rtensor.resident"(%[[X]]) {rtensor.place = #rtensor.place<{address = 64 : i64, bytes = 8 : i64}>} : (tensor<8x8xf16>) -> tensor<8x8xf16, #linear>
// CHECK-NEXT: %[[W0:.*]] = "rtensor.resident"(%[[W]]) : (tensor<8x8xf16>) -> tensor<8x8xf16, #linear>
// CHECK-NEXT: %[[X1:.*]] = "rtensor.relayout"(%[[X0]]) : (tensor<8x8xf16, #linear>) -> tensor<8x8xf16, #layout>
// CHECK-NEXT: "rtensor.setup"(%[[W0]]) : (tensor<8x8xf16, #linear>) -> tensor<8x8xf16, #layout1>
// CHECK-NEXT: "rtensor.cast"(%[[X1]]) : (tensor<8x8xf16, #layout>) -> tensor<8x8xf16, #layout2>
func.func @moves(%x: tensor<8x8xf16>, %w: tensor<8x8xf16> {t10.weight}) {
  %x0 = "rtensor.resident"(%x) {rtensor.place = #rtensor.place<{address = 64, bytes = 8}>} : (tensor<8x8xf16>) -> tensor<8x8xf16, #rest>
  %w0 = "rtensor.resident"(%w) : (tensor<8x8xf16>) -> tensor<8x8xf16, #rest>
  %x1 = "rtensor.relayout"(%x0) : (tensor<8x8xf16, #rest>) -> tensor<8x8xf16, #rows>
  %w1 = "rtensor.setup"(%w0) : (tensor<8x8xf16, #rest>) -> tensor<8x8xf16, #columns>
  %x2 = "rtensor.cast"(%x1) : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #product_rows>
  return
}

// k is split over 4 cores: partial sums of a column block, then one chunk of final ones on each core.
#split = #rtensor.grid<{f_op = [2, 4], lengths = [4, 2], steps = [1, 1], loop_order = [], core_order = [0, 1], phases = [[], []]}>
#partial = #rtensor.layout<#split, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0], partial = "sum"}>
#own = #rtensor.layout<#split, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0], scatter = 4}>
// CHECK-LABEL: func.func @reduce
// CHECK: "rtensor.reduce"(%{{.*}}) : (tensor<8xf32, #layout3>) -> tensor<8xf32, #layout4>
func.func @reduce(%x: tensor<8xf32, #partial>) {
  %y = "rtensor.reduce"(%x) : (tensor<8xf32, #partial>) -> tensor<8xf32, #own>
  return
}

// The unit that is planned, with its plan.
// CHECK-LABEL: func.func @operator
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf16>, %[[W:.*]]: tensor<8x2xf16>, %[[INIT:.*]]: tensor<4x2xf16>)
// CHECK: "rtensor.operator"() ({
// CHECK-NEXT: linalg.matmul ins(%[[X]], %[[W]] : {{.*}}) outs(%[[INIT]] :
// CHECK: linalg.exp
// CHECK: "rtensor.yield"
// CHECK: kind = "contraction", op_name = "/mlp/MatMul"
// CHECK-SAME: rtensor.plan = #plan
func.func @operator(%x: tensor<4x8xf16>, %w: tensor<8x2xf16>, %init: tensor<4x2xf16>) -> tensor<4x2xf16> {
  %y = "rtensor.operator"() ({
    %c = linalg.matmul ins(%x, %w : tensor<4x8xf16>, tensor<8x2xf16>) outs(%init : tensor<4x2xf16>) -> tensor<4x2xf16>
    %e = linalg.exp ins(%c : tensor<4x2xf16>) outs(%init : tensor<4x2xf16>) -> tensor<4x2xf16>
    "rtensor.yield"(%e) : (tensor<4x2xf16>) -> ()
  }) {op_name = "/mlp/MatMul", kind = "contraction", rtensor.plan = #rtensor.plan<{f_op = [2, 1, 1]}>}
     : () -> tensor<4x2xf16>
  return %y : tensor<4x2xf16>
}

// The paper's example at the compute-shift level: 2 x 3 cores, A in 3 windows of 2 along k, B in 2 of 3, both turn by 2.
// B turns where it rests: it goes home, and rests. The sums are f32, the result f16.
#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
#ma = affine_map<(m, n, k) -> (m, k)>
#mb = affine_map<(m, n, k) -> (k, n)>
#mc = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#a = #rtensor.layout<#grid, {map = #ma, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>
#b = #rtensor.layout<#grid, {map = #mb, fs = [1, 3], ft = [2, 1], rp = [2, 0]}>
#c = #rtensor.layout<#grid, {map = #mc, fs = [2, 3], ft = [1, 1], rp = [0, 0]}>
// CHECK-LABEL: func.func @product
// CHECK: %[[ACC:.*]] = "rtensor.fill"() {combine = "sum"} : () -> tensor<2x3xf32, #layout{{[0-9]+}}>
// CHECK: %[[LOOP:.*]]:3 = scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[S:.*]] = %[[ACC]])
// CHECK: %[[P:.*]] = "rtensor.position"(%[[T]]) {grid = #grid4} : (index) -> index
// CHECK: %[[A1:.*]] = "rtensor.shift"(%[[A]], %[[P]]) {axis = 2 : i64}
// CHECK: %[[B1:.*]] = "rtensor.shift"(%[[B]], %[[P]]) {axis = 2 : i64}
// CHECK: %[[S1:.*]] = "rtensor.sub_task"(%[[S]], %[[P]]) ({
// CHECK: ins(%[[A1]], %[[B1]] :
// CHECK: scf.yield %[[A1]], %[[B1]], %[[S1]]
// CHECK: %[[HOME:.*]] = "rtensor.shift"(%[[LOOP]]#1, %{{.*}}) {axis = 2 : i64}
// CHECK: "rtensor.rest"(%[[HOME]])
// CHECK: %[[MEMORY:.*]] = "rtensor.allocate"()
// CHECK: "rtensor.sub_task"(%[[MEMORY]]) ({
// CHECK: ins(%[[LOOP]]#2 :
func.func @product(%x: tensor<2x6xf16>, %w: tensor<6x3xf16> {t10.weight}) -> tensor<2x3xf16, #c> {
  %a = "rtensor.resident"(%x) : (tensor<2x6xf16>) -> tensor<2x6xf16, #a>
  %b = "rtensor.resident"(%w) : (tensor<6x3xf16>) -> tensor<6x3xf16, #b>
  %y = "rtensor.operator"() ({
    %z = "rtensor.fill"() {combine = "sum"} : () -> tensor<2x3xf32, #c>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r:3 = scf.for %t = %c0 to %c3 step %c1 iter_args(%ka = %a, %kb = %b, %s = %z)
        -> (tensor<2x6xf16, #a>, tensor<6x3xf16, #b>, tensor<2x3xf32, #c>) {
      %p = "rtensor.position"(%t) {grid = #grid} : (index) -> index
      %a1 = "rtensor.shift"(%ka, %p) {axis = 2} : (tensor<2x6xf16, #a>, index) -> tensor<2x6xf16, #a>
      %b1 = "rtensor.shift"(%kb, %p) {axis = 2} : (tensor<6x3xf16, #b>, index) -> tensor<6x3xf16, #b>
      %s1 = "rtensor.sub_task"(%s, %p) ({
        %n = linalg.generic {indexing_maps = [#ma, #mb, #mc], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a1, %b1 : tensor<2x6xf16, #a>, tensor<6x3xf16, #b>) outs(%s : tensor<2x3xf32, #c>) {
        ^bb0(%u: f16, %v: f16, %o: f32):
          %u1 = arith.extf %u : f16 to f32
          %v1 = arith.extf %v : f16 to f32
          %m = arith.mulf %u1, %v1 : f32
          %q = arith.addf %o, %m : f32
          linalg.yield %q : f32
        } -> tensor<2x3xf32, #c>
        "rtensor.yield"(%n) : (tensor<2x3xf32, #c>) -> ()
      }) : (tensor<2x3xf32, #c>, index) -> tensor<2x3xf32, #c>
      scf.yield %a1, %b1, %s1 : tensor<2x6xf16, #a>, tensor<6x3xf16, #b>, tensor<2x3xf32, #c>
    }
    %home = "rtensor.shift"(%r#1, %c0) {axis = 2} : (tensor<6x3xf16, #b>, index) -> tensor<6x3xf16, #b>
    "rtensor.rest"(%home) : (tensor<6x3xf16, #b>) -> ()
    %e = "rtensor.allocate"() : () -> tensor<2x3xf16, #c>
    %f = "rtensor.sub_task"(%e) ({
      %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%r#2 : tensor<2x3xf32, #c>) outs(%e : tensor<2x3xf16, #c>) {
      ^bb0(%u: f32, %o: f16):
        %q = arith.truncf %u : f32 to f16
        linalg.yield %q : f16
      } -> tensor<2x3xf16, #c>
      "rtensor.yield"(%n) : (tensor<2x3xf16, #c>) -> ()
    }) : (tensor<2x3xf16, #c>) -> tensor<2x3xf16, #c>
    "rtensor.yield"(%f) : (tensor<2x3xf16, #c>) -> ()
  }) {kind = "contraction", op_name = "product"} : () -> tensor<2x3xf16, #c>
  return %y : tensor<2x3xf16, #c>
}
