// RUN: t10-opt --split-input-file --verify-diagnostics %s

// What each operation checks by itself; whole regions of operators: test/unit/test_region.py.

#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{'rtensor.relayout' op changes shape [8, 8] to [4, 16], expected only the layout to change}}
  %y = "rtensor.relayout"(%x) : (tensor<8x8xf16, #rows>) -> tensor<4x16xf16, #rows>
  return
}

// -----

#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{'rtensor.setup' op changes element type f16 to f32, expected only the layout to change}}
  %y = "rtensor.setup"(%x) : (tensor<8x8xf16, #rows>) -> tensor<8x8xf32, #rows>
  return
}

// -----

#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{'rtensor.cast' op result tensor<8x8xf16> has no layout, expected tensor<..., #rtensor.layout<...>>}}
  %y = "rtensor.cast"(%x) : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16>
  return
}

// -----

#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: i32) {
  // expected-error @+1 {{operand is i32, expected a ranked tensor}}
  %y = "rtensor.relayout"(%x) : (i32) -> tensor<8x8xf16, #rows>
  return
}

// -----

#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{result is tensor<*xf16>, expected a ranked tensor}}
  %y = "rtensor.relayout"(%x) : (tensor<8x8xf16, #rows>) -> tensor<*xf16>
  return
}

// -----

#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{expected a value without layout: it lies somewhere already}}
  %y = "rtensor.resident"(%x) : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #rows>
  return
}

// -----

#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{rtensor.place is 64 : i64, expected #rtensor.place<{address = ..., bytes = ...}>}}
  %y = "rtensor.relayout"(%x) {rtensor.place = 64} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #rows>
  return
}

// -----

#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f() {
  // expected-error @+1 {{place has no 'bytes' (found address)}}
  %y = "rtensor.allocate"() {rtensor.place = #rtensor.place<{address = 64}>} : () -> tensor<8x8xf16, #rows>
  return
}

// -----

#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f() {
  // expected-error @+1 {{expected numbers that are not negative}}
  %y = "rtensor.fill"() {combine = "sum", rtensor.place = #rtensor.place<{address = -8, bytes = 8}>} : () -> tensor<8x8xf16, #rows>
  return
}

// -----

#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
// The address is the same on every core.
func.func @f(%x: tensor<8x8xf16>) {
  // expected-error @+1 {{place has an unknown key 'core' (expected address, bytes)}}
  %y = "rtensor.resident"(%x) {rtensor.place = #rtensor.place<{address = 64, bytes = 8, core = 3}>} : (tensor<8x8xf16>) -> tensor<8x8xf16, #rows>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{'rtensor.allocate' op result tensor<8x8xf16> has no layout}}
  %y = "rtensor.allocate"() : () -> tensor<8x8xf16>
  return
}

// -----

#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f() {
  // expected-error @+1 {{'rtensor.fill' op combine is "mean", expected one of sum, prod, max, min, maxnum, minnum, and, or}}
  %y = "rtensor.fill"() {combine = "mean"} : () -> tensor<8x8xf16, #rows>
  return
}

// -----

#by_rows = #rtensor.grid<{f_op = [4, 1], lengths = [2, 8], steps = [1, 1], loop_order = [], core_order = [0], phases = [[], []]}>
#rows = #rtensor.layout<#by_rows, {map = affine_map<(m, n) -> (m, n)>, fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f() {
  // expected-error @+1 {{attribute "combine" is expected but not provided}}
  %y = "rtensor.fill"() : () -> tensor<8x8xf16, #rows>
  return
}

// -----

func.func @f() {
  // expected-error @+1 {{'rtensor.fill' op result tensor<8x8xf16> has no layout}}
  %y = "rtensor.fill"() {combine = "sum"} : () -> tensor<8x8xf16>
  return
}

// -----

#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#still = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
func.func @f(%t: index) {
  // expected-error @+1 {{'rtensor.position' op stands outside a loop, expected an scf.for around it}}
  %p = "rtensor.position"(%t) {grid = #grid} : (index) -> index
  return
}

// -----

#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#still = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
func.func @f(%o: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 2 : index
  scf.for %t = %c0 to %n step %c1 {
    // expected-error @+1 {{reads another number than the time of the loop around it}}
    %p = "rtensor.position"(%o) {grid = #grid} : (index) -> index
  }
  return
}

// -----

#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#still = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
// The grid has two positions.
func.func @f(%o: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 3 : index
  scf.for %t = %c0 to %n step %c1 {
    // expected-error @+1 {{the loop runs from, to, by [0, 3, 1], expected [0, 2, 1]: all positions once}}
    %p = "rtensor.position"(%t) {grid = #grid} : (index) -> index
  }
  return
}

// -----

#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#still = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
func.func @f(%o: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 2 : index
  scf.for %t = %c0 to %n step %c1 {
    // expected-error @+1 {{has 2 results, expected one per loop, here 1}}
    %p:2 = "rtensor.position"(%t) {grid = #grid} : (index) -> (index, index)
  }
  return
}

// -----

func.func @f(%o: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 2 : index
  scf.for %t = %c0 to %n step %c1 {
    // expected-error @+1 {{grid is 3 : i64, expected rtensor.grid}}
    %p = "rtensor.position"(%t) {grid = 3} : (index) -> index
  }
  return
}

// -----

#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#still = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
func.func @f(%x: tensor<4xf16, #turn>) {
  %p = arith.constant 0 : index
  // expected-error @+1 {{expected the same type}}
  %y = "rtensor.shift"(%x, %p) {axis = 1} : (tensor<4xf16, #turn>, index) -> tensor<4xf16>
  return
}

// -----

#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#still = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
func.func @f(%x: tensor<4xf16, #turn>) {
  %p = arith.constant 0 : index
  // expected-error @+1 {{axis = 0, but the tensor rotates along [1]}}
  %y = "rtensor.shift"(%x, %p) {axis = 0} : (tensor<4xf16, #turn>, index) -> tensor<4xf16, #turn>
  return
}

// -----

#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#still = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
func.func @f(%x: tensor<4xf16, #turn>) {
  %p = arith.constant 0 : index
  // expected-error @+1 {{axis = 2, but the tensor rotates along [1]}}
  %y = "rtensor.shift"(%x, %p) {axis = 2} : (tensor<4xf16, #turn>, index) -> tensor<4xf16, #turn>
  return
}

// -----

#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#still = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
func.func @f(%x: tensor<4xf16, #turn>) {
  %p = arith.constant 1 : index
  // expected-error @+1 {{moves to a number that is neither the loop's position along axis 1 nor 0}}
  %y = "rtensor.shift"(%x, %p) {axis = 1} : (tensor<4xf16, #turn>, index) -> tensor<4xf16, #turn>
  return
}

// -----

func.func @f(%x: tensor<4xf16, #rtensor.linear<{cores = 2}>>) {
  %p = arith.constant 0 : index
  // expected-error @+1 {{lies in a linear layout, expected one on a grid}}
  %y = "rtensor.shift"(%x, %p) {axis = 0} : (tensor<4xf16, #rtensor.linear<{cores = 2}>>, index) -> tensor<4xf16, #rtensor.linear<{cores = 2}>>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  %p = arith.constant 0 : index
  // expected-error @+1 {{operand tensor<4xf16> has no layout}}
  %y = "rtensor.shift"(%x, %p) {axis = 0} : (tensor<4xf16>, index) -> tensor<4xf16>
  return
}

// -----

#grid = #rtensor.grid<{f_op = [6, 1], lengths = [1, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 3, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
// Windows of 2 start at 0, 2 and 4 mod 4 = 0, twice: 4 cores hold one half, 2 the other.
func.func @f(%x: tensor<4xf16, #turn>) {
  %p = arith.constant 0 : index
  // expected-error @+1 {{the windows of a ring do not tile the sub-tensor: no neighbour has what a core lacks}}
  %y = "rtensor.shift"(%x, %p) {axis = 1} : (tensor<4xf16, #turn>, index) -> tensor<4xf16, #turn>
  return
}

// -----

#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#still = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
#other = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], []]}>
// The position is one on another grid.
func.func @f(%x: tensor<4xf16, #turn>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 2 : index
  scf.for %t = %c0 to %n step %c1 {
    %p = "rtensor.position"(%t) {grid = #other} : (index) -> index
    // expected-error @+1 {{moves to a number that is neither the loop's position along axis 1 nor 0}}
    %y = "rtensor.shift"(%x, %p) {axis = 1} : (tensor<4xf16, #turn>, index) -> tensor<4xf16, #turn>
  }
  return
}

// -----

#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#still = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
func.func @f(%z: tensor<8xf32, #still>) {
  // expected-error @+1 {{'rtensor.sub_task' op makes tensor<8xf32> of tensor<8xf32, #rtensor.layout<}}
  %y = "rtensor.sub_task"(%z) ({
    "rtensor.yield"(%z) : (tensor<8xf32, #still>) -> ()
  }) : (tensor<8xf32, #still>) -> tensor<8xf32>
  return
}

// -----

#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#still = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
func.func @f(%z: tensor<8xf32, #still>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 2 : index
  scf.for %t = %c0 to %n step %c1 {
    %p = "rtensor.position"(%t) {grid = #grid} : (index) -> index
    // expected-error @+1 {{expected the positions along axes [1] in this order}}
    %y = "rtensor.sub_task"(%z, %p, %p) ({
      "rtensor.yield"(%z) : (tensor<8xf32, #still>) -> ()
    }) : (tensor<8xf32, #still>, index, index) -> tensor<8xf32, #still>
  }
  return
}

// -----

func.func @f(%z: tensor<8xf32, #rtensor.linear<{cores = 2}>>) {
  // expected-error @+1 {{lies in a linear layout, expected one on a grid}}
  %y = "rtensor.sub_task"(%z) ({
    "rtensor.yield"(%z) : (tensor<8xf32, #rtensor.linear<{cores = 2}>>) -> ()
  }) : (tensor<8xf32, #rtensor.linear<{cores = 2}>>) -> tensor<8xf32, #rtensor.linear<{cores = 2}>>
  return
}

// -----

#split = #rtensor.grid<{f_op = [2, 4], lengths = [4, 2], steps = [1, 1], loop_order = [], core_order = [0, 1], phases = [[], []]}>
#own = #rtensor.layout<#split, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
func.func @f(%x: tensor<8xf32, #own>) {
  // expected-error @+1 {{'rtensor.reduce' op reduces final results, expected a layout with `partial`}}
  %y = "rtensor.reduce"(%x) : (tensor<8xf32, #own>) -> tensor<8xf32, #own>
  return
}

// -----

#split = #rtensor.grid<{f_op = [2, 4], lengths = [4, 2], steps = [1, 1], loop_order = [], core_order = [0, 1], phases = [[], []]}>
#part = #rtensor.layout<#split, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0], partial = "sum"}>
#own = #rtensor.layout<#split, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0], scatter = 2}>
// 4 cores hold partial sums of one window.
func.func @f(%x: tensor<8xf32, #part>) {
  // expected-error @+1 {{leaves scatter = 2, expected 1 or 4: all or one chunk each}}
  %y = "rtensor.reduce"(%x) : (tensor<8xf32, #part>) -> tensor<8xf32, #own>
  return
}

// -----

#split = #rtensor.grid<{f_op = [2, 4], lengths = [4, 2], steps = [1, 1], loop_order = [], core_order = [0, 1], phases = [[], []]}>
#part = #rtensor.layout<#split, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0], partial = "sum"}>
#own = #rtensor.layout<#split, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0], partial = "max"}>
// Partial results do not become other partial results.
func.func @f(%x: tensor<8xf32, #part>) {
  // expected-error @+1 {{moves windows, expected those of the operand}}
  %y = "rtensor.reduce"(%x) : (tensor<8xf32, #part>) -> tensor<8xf32, #own>
  return
}

// -----

#grid = #rtensor.grid<{f_op = [2, 1], lengths = [4, 4], steps = [1, 2], loop_order = [1], core_order = [0], phases = [[], [[2, 1, 2, 0]]]}>
#turn = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (k)>, fs = [1], ft = [2], rp = [2]}>
#still = #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m)>, fs = [2], ft = [1], rp = [0]}>
func.func @f(%x: tensor<8xf32, #still>) {
  // expected-error @+1 {{which does not rotate}}
  "rtensor.rest"(%x) : (tensor<8xf32, #still>) -> ()
  return
}

// -----

func.func @f(%x: tensor<4xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @+1 {{'rtensor.operator' op kind is "magic", expected one of contraction, convolution, reduction, pooling, elementwise, gather}}
  %y = "rtensor.operator"() ({
    %r = linalg.exp ins(%x : tensor<4xf16>) outs(%init : tensor<4xf16>) -> tensor<4xf16>
    "rtensor.yield"(%r) : (tensor<4xf16>) -> ()
  }) {op_name = "exp", kind = "magic"} : () -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

func.func @f(%x: tensor<4xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @+1 {{region has arguments, expected none: it reads the values of the function around it}}
  %y = "rtensor.operator"() ({
  ^bb0(%a: tensor<4xf16>):
    %r = linalg.exp ins(%x : tensor<4xf16>) outs(%init : tensor<4xf16>) -> tensor<4xf16>
    "rtensor.yield"(%r) : (tensor<4xf16>) -> ()
  }) {op_name = "exp", kind = "elementwise"} : () -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

func.func @f(%x: tensor<4xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @+1 {{region #0 has 0 blocks, expected one}}
  %y = "rtensor.operator"() ({

  }) {op_name = "exp", kind = "elementwise"} : () -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

func.func @f(%x: tensor<4xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @+1 {{region #0 has 2 blocks, expected one}}
  %y = "rtensor.operator"() ({
    %r = linalg.exp ins(%x : tensor<4xf16>) outs(%init : tensor<4xf16>) -> tensor<4xf16>
    "rtensor.yield"(%r) : (tensor<4xf16>) -> ()
  ^bb1:
    %q = linalg.exp ins(%x : tensor<4xf16>) outs(%init : tensor<4xf16>) -> tensor<4xf16>
    "rtensor.yield"(%q) : (tensor<4xf16>) -> ()
  }) {op_name = "exp", kind = "elementwise"} : () -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

func.func @f(%x: tensor<4xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @+1 {{holds no linalg operation but fills, expected a root}}
  %y = "rtensor.operator"() ({
    "rtensor.yield"(%x) : (tensor<4xf16>) -> ()
  }) {op_name = "exp", kind = "elementwise"} : () -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

func.func @f(%x: tensor<4xf16>, %init: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @+1 {{region yields (tensor<4xf32>), expected (tensor<4xf16>)}}
  %y = "rtensor.operator"() ({
    %r = linalg.exp ins(%x : tensor<4xf16>) outs(%init : tensor<4xf16>) -> tensor<4xf16>
    %c = arith.extf %r : tensor<4xf16> to tensor<4xf32>
    "rtensor.yield"(%c) : (tensor<4xf32>) -> ()
  }) {op_name = "exp", kind = "elementwise"} : () -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

func.func @f(%x: tensor<4xf16>, %init: tensor<4xf16>) {
  // expected-error @+1 {{op expects exactly 0 operands, but got 1}}
  %y = "rtensor.operator"(%x) ({
    %r = linalg.exp ins(%x : tensor<4xf16>) outs(%init : tensor<4xf16>) -> tensor<4xf16>
    "rtensor.yield"(%r) : (tensor<4xf16>) -> ()
  }) {op_name = "exp", kind = "elementwise"} : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// -----

// A region reads only what is defined before it.
func.func @f(%x: tensor<4xf16>) -> tensor<4xf16> {
  %y = "rtensor.operator"() ({
    // expected-error @+1 {{operand #1 does not dominate this use}}
    %r = linalg.exp ins(%x : tensor<4xf16>) outs(%z : tensor<4xf16>) -> tensor<4xf16>
    "rtensor.yield"(%r) : (tensor<4xf16>) -> ()
  }) {op_name = "exp", kind = "elementwise"} : () -> tensor<4xf16>
  // expected-note @+1 {{operand defined here}}
  %z = tensor.empty() : tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

#map = affine_map<(d0, d1, d2) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map2 = affine_map<(d0, d1, d2) -> (d1, d2)>
#grid = #rtensor.grid<{core_order = [0], f_op = [4, 1, 1], lengths = [1, 4, 8], loop_order = [], phases = [[], [], []], steps = [1, 1, 1]}>
#layout = #rtensor.layout<#grid, {fs = [4, 1], ft = [1, 1], map = #map, rp = [0, 0]}>
#layout1 = #rtensor.layout<#grid, {fs = [4, 1], ft = [1, 1], map = #map1, rp = [0, 0]}>
#layout2 = #rtensor.layout<#grid, {fs = [1, 1], ft = [1, 1], map = #map2, rp = [0, 0]}>
  func.func @main(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xf32> {t10.order = array<i64: 1, 0>, t10.weight}) -> tensor<4x4xf32, #layout> {
    %0 = "rtensor.resident"(%arg0) : (tensor<4x8xf32>) -> tensor<4x8xf32, #layout1>
    %1 = "rtensor.resident"(%arg1) : (tensor<4x8xf32>) -> tensor<4x8xf32, #layout2>
    // expected-error@below {{op_name is empty, expected a name: buffers and exchanges have it}}
    %2 = "rtensor.operator"() ({
      %3 = "rtensor.fill"() {combine = "sum"} : () -> tensor<4x4xf32, #layout>
      %4 = "rtensor.sub_task"(%3) ({
        %5 = linalg.generic {indexing_maps = [#map1, #map2, #map], iterator_types = ["parallel", "parallel", "reduction"]} ins(%0, %1 : tensor<4x8xf32, #layout1>, tensor<4x8xf32, #layout2>) outs(%3 : tensor<4x4xf32, #layout>) {
        ^bb0(%in: f32, %in_0: f32, %out: f32):
          %6 = arith.mulf %in, %in_0 : f32
          %7 = arith.addf %out, %6 : f32
          linalg.yield %7 : f32
        } -> tensor<4x4xf32, #layout>
        "rtensor.yield"(%5) : (tensor<4x4xf32, #layout>) -> ()
      }) : (tensor<4x4xf32, #layout>) -> tensor<4x4xf32, #layout>
      "rtensor.yield"(%4) : (tensor<4x4xf32, #layout>) -> ()
    }) {kind = "contraction", op_name = ""} : () -> tensor<4x4xf32, #layout>
    return %2 : tensor<4x4xf32, #layout>
  }
