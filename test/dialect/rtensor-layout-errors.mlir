// RUN: t10-opt --split-input-file --verify-diagnostics %s

// A[m, k] on the grid of C[m, n] += A[m, k] * B[k, n]: 2 x 3 cores, three steps along k. A row of A is shared by 3 cores.

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{'func.func' op result #0: layout has 2 dims for a tensor of rank 3}}
func.func private @rank() -> (tensor<2x6x1xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// 1 part of 6 indices along k.
// expected-error @+1 {{argument #0: the grid covers 6 of the 7 elements of dim 1}}
func.func private @covers(tensor<2x7xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: fs = 1 along axis 0, expected f_op = 2}}
func.func private @fs(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [1, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// 6 indices in 3 steps: 2 at a time.
// expected-error @+1 {{argument #0: rp = 3 along axis 2, expected the pace 2 of the grid}}
func.func private @pace(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 3]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// A tensor that is not cut in time does not rotate.
// expected-error @+1 {{argument #0: rp = 2 along axis 2, expected the pace 0 of the grid}}
func.func private @still(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 1], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: ft = 4 along axis 2 does not divide its length 6}}
func.func private @thin(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 4], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// Windows of 1 index cannot hold the 2 of a sub-task.
// expected-error @+1 {{argument #0: ft = 6 along axis 2, expected at most its 3 steps}}
func.func private @steps(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 6], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// A is shared by the 3 cores of a row.
// expected-error @+1 {{argument #0: ft cuts a sub-tensor in 2, which does not divide the 3 cores that share it}}
func.func private @sharers(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 2], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[1, 1, 3, 1]]]}>
// The 3 cores of a row hold windows of 2 that start at 0, 1 and 2: the indices 4 and 5 are nowhere.
// expected-error @+1 {{argument #0: windows leave parts of a sub-tensor on no core}}
func.func private @overlap(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], []]}>
// All windows start at 0: the indices 2 to 5 are nowhere.
// expected-error @+1 {{argument #0: windows leave parts of a sub-tensor on no core}}
func.func private @gap(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// The ring takes all 3 cores that share a row of A: each window is there once.
// expected-error @+1 {{argument #0: scatter = 2, expected 1 to 1, the copies of a window}}
func.func private @scatter(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2], scatter = 2}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: partial = "sum" of 1 copies, expected one of sum, prod, max, min, maxnum, minnum, and, or and several}}
func.func private @partial(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2], partial = "sum"}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: partial = "mean" of 3 copies, expected one of sum, prod, max, min, maxnum, minnum, and, or and several}}
func.func private @combine(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 1], rp = [0, 0], partial = "mean"}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// Windows that stand where they start say nothing.
// expected-error @+1 {{argument #0: at = [0, 0, 0], expected a position per axis that are not all 0}}
func.func private @at_home(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2], at = [0, 0]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// 3 steps have the positions 0 to 2.
// expected-error @+1 {{argument #0: at = [0, 0, 3]: axis 2 does not stand at position 3}}
func.func private @at(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2], at = [0, 3]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: at = [1, 0, 0]: axis 0 does not stand at position 1}}
func.func private @at_still(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2], at = [1, 0]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: layout map is affine_map<(d0, d1) -> (d0, d1)>, expected an affine map over the 3 axes of the grid}}
func.func private @map(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: layout map is [0, 2], expected an affine map over the 3 axes of the grid}}
func.func private @not_a_map(tensor<2x6xf16, #rtensor.layout<#grid, {map = [0, 2], fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: layout map: }}
func.func private @not_affine(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k mod 2)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: layout scatter is "x" and partial "", expected a number and a name}}
func.func private @numbers(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2], scatter = "x"}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: ft is [1], expected one entry per tensor dim, here 2}}
func.func private @per_dim(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: rp[0] = 1 of a dim without axis, expected 0}}
func.func private @no_axis(tensor<1x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (0, k)>, fs = [1, 1], ft = [1, 3], rp = [1, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// The first dim is indexed by two axes.
// expected-error @+1 {{argument #0: fs[0] = 2, expected one number per axis of the dim}}
func.func private @compound(tensor<7x3xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m + k, n)>, fs = [2, 3], ft = [[1, 1], 1], rp = [[0, 0], 0]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: fs[1] = [2], expected one number per axis of the dim}}
func.func private @one_axis(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, [2]], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: ft[1] = 3, but another dim has 1 along axis 2}}
func.func private @diagonal(tensor<6x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (k, k)>, fs = [1, 1], ft = [1, 3], rp = [2, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: layout has no 'rp' (found fs, ft, map)}}
func.func private @missing_rp(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: layout has an unknown key 'cores' (expected map, fs, ft, rp, scatter, partial, at)}}
func.func private @unknown_key(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2], cores = 4}>>)

// -----

// expected-error @+1 {{argument #0: layout on the dynamic shape of tensor<?xf16, #rtensor.linear<{cores = 4 : i64}>>, expected a static shape}}
func.func private @dynamic(tensor<?xf16, #rtensor.linear<{cores = 4}>>)

// -----

// expected-error @+1 {{argument #0: linear layout on cores = 0, expected at least 1}}
func.func private @linear(tensor<8xf16, #rtensor.linear<{cores = 0}>>)

// -----

// expected-error @+1 {{argument #0: linear layout on cores = "all", expected an integer}}
func.func private @linear_type(tensor<8xf16, #rtensor.linear<{cores = "all"}>>)

// -----

// expected-error @+1 {{argument #0: linear layout has an unknown key 'fs' (expected cores)}}
func.func private @linear_keys(tensor<8xf16, #rtensor.linear<{cores = 4, fs = [4]}>>)

// -----

// expected-error @+1 {{argument #0: linear layout has no 'cores' (found nothing)}}
func.func private @linear_missing(tensor<8xf16, #rtensor.linear<{}>>)

// -----

// expected-error @+1 {{expected base attribute 'builtin.dictionary' but got 'builtin.array'}}
func.func private @not_a_dictionary(tensor<8xf16, #rtensor.linear<[4]>>)

// -----

// expected-error @+1 {{expected 2 type arguments, but had 1}}
func.func private @no_grid(tensor<8xf16, #rtensor.layout<{fs = [1]}>>)

// -----

// expected-error @+1 {{expected base attribute 'rtensor.grid' but got 'rtensor.linear'}}
func.func private @other_grid(tensor<8xf16, #rtensor.layout<#rtensor.linear<{cores = 4}>, {fs = [1]}>>)

// -----

// Layouts on results of operations of other dialects, and on region arguments.
func.func @anywhere(%x: tensor<8xf16>) {
  // expected-error @+1 {{'tensor.cast' op result #0: linear layout on cores = 0}}
  %y = tensor.cast %x : tensor<8xf16> to tensor<8xf16, #rtensor.linear<{cores = 0}>>
  return
}

// -----

func.func @region_argument(%n: index, %x: tensor<8xf16, #rtensor.linear<{cores = 0}>>) {  // expected-error {{argument #1: linear layout on cores = 0}}
  // expected-error @+2 {{'scf.for' op result #0: linear layout on cores = 0}}
  // expected-error @+1 {{'scf.for' op region argument #1: linear layout on cores = 0}}
  %y = scf.for %i = %n to %n step %n iter_args(%z = %x) -> (tensor<8xf16, #rtensor.linear<{cores = 0}>>) {
    scf.yield %z : tensor<8xf16, #rtensor.linear<{cores = 0}>>
  }
  return
}
