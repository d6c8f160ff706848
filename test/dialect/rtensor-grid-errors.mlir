// RUN: t10-opt --split-input-file --verify-diagnostics %s

// The grid of C[m, n] += A[m, k] * B[k, n] on 2 x 3 cores, with one thing wrong. A lies on it.

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{'func.func' op argument #0: grid steps has 2 entries, expected 3: one per axis, as f_op}}
func.func private @rows(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[]]}>
// expected-error @+1 {{argument #0: grid phases has 1 entries, expected 3: one per axis, as f_op}}
func.func private @phase_rows(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 0, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: grid f_op[1] = 0, expected at least 1}}
func.func private @least(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [-1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: grid steps[0] = -1, expected at least 1}}
func.func private @least_steps(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 0], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: grid lengths[2] = 0, expected at least 1}}
func.func private @least_length(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 4], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// Six indices in 4 steps: no step has a whole number of them.
// expected-error @+1 {{argument #0: grid steps[2] = 4 does not divide lengths[2] = 6}}
func.func private @divides(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: grid loop_order = [], expected every axis of several steps once, here [2]}}
func.func private @loops(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2, 2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: grid loop_order = [2, 2], expected every axis of several steps once, here [2]}}
func.func private @loops_twice(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1, 2], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: grid core_order = [0, 1, 2], expected every axis of several parts once, here [0, 1]}}
func.func private @cores(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[[1, 1, 2, 0]], [], []]}>
// expected-error @+1 {{argument #0: grid phases[0] is stated, but the axis has one step, expected []}}
func.func private @still_phase(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 3]]]}>
// expected-error @+1 {{argument #0: grid phases[2] names axes [3], expected axes of the grid}}
func.func private @phase_axes(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[6, 1, 3, 1]]]}>
// 6 mod 6 = 0: the term moves no core.
// expected-error @+1 {{argument #0: grid phases[2] has stride 6, expected 1 to 5}}
func.func private @stride(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 4, 1]]]}>
// The 3 cores along axis 1 have no digit with 4 values.
// expected-error @+1 {{argument #0: grid phases[2] takes the digit (sigma / 1) mod 4 of 3 cores, expected a modulus of at least 2 and no more digits than cores}}
func.func private @digit(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1]]]}>
// expected-error @+1 {{argument #0: phase term [2, 1], expected [stride, divisor, modulus, sharer axes ...]}}
func.func private @short_term(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = 3}>
// expected-error @+1 {{argument #0: grid phases is 3, expected one array of terms per axis}}
func.func private @no_phases(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], 0, []]}>
// expected-error @+1 {{argument #0: grid phases[1] is 0, expected an array of terms}}
func.func private @no_terms(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [2, 1, 3, 1]]}>
// expected-error @+1 {{argument #0: phases[2] is 2, expected an array of integers such as [2, 1]}}
func.func private @term_is_flat(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: grid has no 'core_order' (found f_op, lengths, loop_order, phases, steps)}}
func.func private @missing(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, 6], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]], pace = [0, 0, 2]}>
// What follows is not stored: the pace is lengths / steps.
// expected-error @+1 {{argument #0: grid has an unknown key 'pace' (expected f_op, lengths, steps, loop_order, core_order, phases)}}
func.func private @unknown(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)

// -----

#grid = #rtensor.grid<{f_op = [2, 3, 1], lengths = [1, 1, "x"], steps = [1, 1, 3], loop_order = [2], core_order = [0, 1], phases = [[], [], [[2, 1, 3, 1], [3, 1, 2, 0]]]}>
// expected-error @+1 {{argument #0: lengths holds "x", expected integers only}}
func.func private @not_integers(tensor<2x6xf16, #rtensor.layout<#grid, {map = affine_map<(m, n, k) -> (m, k)>, fs = [2, 1], ft = [1, 3], rp = [0, 2]}>>)
