// RUN: t10-opt --split-input-file --verify-diagnostics %s

// C[m, n] += A[m, k] * B[k, n] with m, n, k = 2, 3, 6: A is shared by f_op[n] cores, B by f_op[m], C by f_op[k].

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: plan has no 'f_op' (found rp)}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{rp = [0, 0, 0]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: plan has an unknown key 'fop' (expected f_op,}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 1, 1], fop = [2]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: f_op has 2 factors for an operator of 3 axes}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 1]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: f_op[1] = 4 cuts extent 3 into more parts than it has elements}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 4, 1]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: f_op[0] = 0, expected at least 1}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [0, 1, 1]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: rp has 2 entries, expected 3: one per axis, as f_op}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], rp = [0, 0]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: ft has 2 rows, expected 3 rows of 3 factors: one per input, then the output}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 1, 1], [1, 1, 1]]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: ft[1] has 2 entries, expected 3: one per axis, as f_op}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 1, 1], [1, 1], [1, 1, 1]]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: ft[0][1] = 3, but operand 0 is not indexed by axis 1, expected 1}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 3, 1], [1, 1, 1], [1, 1, 1]]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: prod(ft[1]) = 3 does not divide the 2 cores that share operand 1}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 1, 1], [1, 1, 3], [1, 1, 1]]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: ft[2] = [1, 1, 0] holds a factor below 1}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 1, 1], [1, 1, 1], [1, 1, 0]]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: f_op[2] = 1 parts of lengths[2] = 5 do not cover extent 6}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], lengths = [1, 1, 5]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: steps[2] = 2, expected 3: the largest ft on axis 2}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 1, 3], [1, 1, 2], [1, 1, 1]], steps = [1, 1, 2]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: ft[1][2] = 2 does not divide lengths[2] = 9}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 1, 3], [1, 1, 2], [1, 1, 1]], lengths = [1, 1, 9]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: rp[2] = 3 is larger than the smallest partition of 2 elements}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 1, 3], [1, 1, 2], [1, 1, 1]], lengths = [1, 1, 6], rp = [0, 0, 3]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: rp[2] = 1 in 3 steps does not cover lengths[2] = 6}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 1, 3], [1, 1, 2], [1, 1, 1]], lengths = [1, 1, 6], rp = [0, 0, 1]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: rp[0] = 1, but no operand rotates along axis 0, expected 0}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [1, 3, 1], ft = [[1, 1, 3], [1, 1, 1], [1, 1, 1]], lengths = [2, 1, 6], rp = [1, 0, 2]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: loop_order = [0], expected every rotating axis once, here [2]}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], ft = [[1, 1, 3], [1, 1, 2], [1, 1, 1]], loop_order = [0]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: core_order = [0, 1], expected a permutation of the 3 axes}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], core_order = [0, 1]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: phases has 1 entries, expected 3: one per axis, as f_op}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], phases = [[]]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: phase term [2, 1], expected [stride, divisor, modulus, sharer axes ...]}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], phases = [[], [], [[2, 1]]]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: reduce = "some", expected one of none, scatter, all}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], reduce = "some"}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: cycles has an unknown key 'computing' (expected compute, shift, reduce, relayout, setup, wait)}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], cycles = {computing = 1}}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: cycles.shift = -1, expected a number that is not negative}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], cycles = {shift = -1}}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: active_bytes = -8, expected a number that is not negative}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], active_bytes = -8}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

// The expression is the operator's, not the attribute's to state.
func.func @stated(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: plan has an unknown key 'extents' (expected f_op,}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], extents = [2, 3, 6]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

// A digit of no positions, and one of an axis that is not there.
func.func @digits(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: phases[2] takes the digit (sigma / 1) mod 0 of 3 cores, expected a modulus of at least 2 and no more digits than cores}}
  %d = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], phases = [[], [], [[2, 1, 0, 1]]]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  // expected-error @+1 {{'linalg.matmul' op rtensor.plan: phases[2] names axes [3], expected axes of the grid}}
  %e = linalg.matmul {rtensor.plan = #rtensor.plan<{f_op = [2, 3, 1], phases = [[], [], [[2, 1, 3, 3]]]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

// The planner does not see the window of a pooling, which its body does not read: a plan has rows for x and the result.
func.func @pooling(%x: tensor<1x4x8x8xf32>, %window: tensor<2x2xf32>, %c: tensor<1x4x4x4xf32>) {
  // expected-error @+1 {{'linalg.pooling_nchw_max' op rtensor.plan: ft has 3 rows, expected 2 rows of 6 factors: one per input, then the output}}
  %d = linalg.pooling_nchw_max {strides = dense<2> : vector<2xi64>, rtensor.plan = #rtensor.plan<{f_op = [1, 1, 1, 1, 1, 1],
      ft = [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]]}>}
    ins(%x, %window : tensor<1x4x8x8xf32>, tensor<2x2xf32>) outs(%c : tensor<1x4x4x4xf32>) -> tensor<1x4x4x4xf32>
  return
}

// -----

// expected-error @+1 {{'func.func' op rtensor.plan is 3 : i64, expected #rtensor.plan<{...}>}}
func.func private @not_a_plan() attributes {rtensor.plan = 3}

// -----

// expected-error @+1 {{'func.func' op rtensor.candidates[1]: plan has no 'f_op' (found nothing)}}
func.func private @candidates() attributes {rtensor.candidates = [#rtensor.plan<{f_op = [1]}>, #rtensor.plan<{}>]}

// -----

// expected-error @+1 {{rtensor.candidates is "x", expected an array of #rtensor.plan}}
func.func private @no_array() attributes {rtensor.candidates = "x"}
