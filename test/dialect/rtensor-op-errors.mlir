// RUN: t10-opt --split-input-file --verify-diagnostics %s

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{'rtensor.relayout' op changes shape [8, 8] to [4, 16], expected only the layout to change}}
  %y = "rtensor.relayout"(%x) {bytes = 1, cycles = 1} : (tensor<8x8xf16, #rows>) -> tensor<4x16xf16, #rows>
  return
}

// -----

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{changes element type f16 to f32}}
  %y = "rtensor.relayout"(%x) {bytes = 1, cycles = 1} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf32, #rows>
  return
}

// -----

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{result tensor<8x8xf16> has no layout}}
  %y = "rtensor.relayout"(%x) {bytes = 1, cycles = 1} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16>
  return
}

// -----

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: i32) {
  // expected-error @+1 {{operand is i32, expected a ranked tensor}}
  %y = "rtensor.relayout"(%x) {bytes = 1, cycles = 1} : (i32) -> tensor<8x8xf16, #rows>
  return
}

// -----

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
#turn = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{bytes = -1, expected a number that is not negative}}
  %y = "rtensor.relayout"(%x) {bytes = -1, cycles = 1} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #turn>
  return
}

// -----

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
#turn = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{attribute "cycles" is expected but not provided}}
  %y = "rtensor.relayout"(%x) {bytes = 1} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #turn>
  return
}

// -----

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{active partition holds 1 elements, expected at least the idle partition's 16}}
  %y = "rtensor.setup"(%x) {bytes = 1, cycles = 1} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #rtensor.layout<{linear = 64}>>
  return
}

// -----

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
#turn = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{cycles = -5, expected a number that is not negative}}
  %y = "rtensor.setup"(%x) {bytes = 1, cycles = -5} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #turn>
  return
}

// -----

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
#turn = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>
func.func @f(%x: tensor<8x8xf16, #turn>) {
  // expected-error @+1 {{expected the same type: a shift keeps shape and layout}}
  %y = "rtensor.shift"(%x) {axis = 1, pace = 4, direction = "forward"} : (tensor<8x8xf16, #turn>) -> tensor<8x8xf16, #rows>
  return
}

// -----

#turn = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>
func.func @f(%x: tensor<8x8xf16, #turn>) {
  // expected-error @+1 {{axis = 2 of a rank-2 tensor, expected 0 to 1}}
  %y = "rtensor.shift"(%x) {axis = 2, pace = 4, direction = "forward"} : (tensor<8x8xf16, #turn>) -> tensor<8x8xf16, #turn>
  return
}

// -----

#turn = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>
func.func @f(%x: tensor<8x8xf16, #turn>) {
  // expected-error @+1 {{axis = 0 is not cut in time (ft = [1, 2]), expected a dim with ft over 1}}
  %y = "rtensor.shift"(%x) {axis = 0, pace = 4, direction = "forward"} : (tensor<8x8xf16, #turn>) -> tensor<8x8xf16, #turn>
  return
}

// -----

#turn = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>
func.func @f(%x: tensor<8x8xf16, #turn>) {
  // expected-error @+1 {{pace = 2, expected rp[1] = 4 of the layout}}
  %y = "rtensor.shift"(%x) {axis = 1, pace = 2, direction = "forward"} : (tensor<8x8xf16, #turn>) -> tensor<8x8xf16, #turn>
  return
}

// -----

#turn = #rtensor.layout<{fs = [2, 1], ft = [1, 2], rp = [0, 4]}>
func.func @f(%x: tensor<8x8xf16, #turn>) {
  // expected-error @+1 {{direction is "up", expected one of forward, backward}}
  %y = "rtensor.shift"(%x) {axis = 1, pace = 4, direction = "up"} : (tensor<8x8xf16, #turn>) -> tensor<8x8xf16, #turn>
  return
}

// -----

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{kind is "mean", expected one of sum, prod, max, min, and, or}}
  %y = "rtensor.reduce"(%x) {kind = "mean", mode = "all", cores = 4, bytes = 1, cycles = 1} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #rows>
  return
}

// -----

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{mode is "some", expected one of scatter, all}}
  %y = "rtensor.reduce"(%x) {kind = "sum", mode = "some", cores = 4, bytes = 1, cycles = 1} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #rows>
  return
}

// -----

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{cores = 1, expected at least 2 cores that hold partial results}}
  %y = "rtensor.reduce"(%x) {kind = "sum", mode = "all", cores = 1, bytes = 1, cycles = 1} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #rows>
  return
}

// -----

#rows = #rtensor.layout<{fs = [4, 1], ft = [1, 1], rp = [0, 0]}>
func.func @f(%x: tensor<8x8xf16, #rows>) {
  // expected-error @+1 {{result has scatter = 1, expected 4 for mode "scatter"}}
  %y = "rtensor.reduce"(%x) {kind = "sum", mode = "scatter", cores = 4, bytes = 1, cycles = 1} : (tensor<8x8xf16, #rows>) -> tensor<8x8xf16, #rows>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{'rtensor.operator' op kind is "magic", expected one of contraction, convolution, reduction, pooling, elementwise, gather}}
  %y = "rtensor.operator"() ({
    %e = linalg.exp ins(%x : tensor<4xf16>) outs(%x : tensor<4xf16>) -> tensor<4xf16>
    "rtensor.yield"(%e) : (tensor<4xf16>) -> ()
  }) {op_name = "o", kind = "magic"} : () -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{'rtensor.operator' op region has 1 arguments, expected 0: ()}}
  %y = "rtensor.operator"() ({
  ^bb0(%a: tensor<4xf16>):
    %e = linalg.exp ins(%a : tensor<4xf16>) outs(%a : tensor<4xf16>) -> tensor<4xf16>
    "rtensor.yield"(%e) : (tensor<4xf16>) -> ()
  }) {op_name = "o", kind = "elementwise"} : () -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{op expects exactly 0 operands, but got 1}}
  %y = "rtensor.operator"(%x) ({
    %e = linalg.exp ins(%x : tensor<4xf16>) outs(%x : tensor<4xf16>) -> tensor<4xf16>
    "rtensor.yield"(%e) : (tensor<4xf16>) -> ()
  }) {op_name = "o", kind = "elementwise"} : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{region is empty or has several blocks, expected one block that ends in rtensor.yield}}
  %y = "rtensor.operator"() ({
  }) {op_name = "o", kind = "elementwise"} : () -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{holds no linalg operation but fills, expected a root}}
  %y = "rtensor.operator"() ({
    %zero = arith.constant 0.0 : f16
    %e = linalg.fill ins(%zero : f16) outs(%x : tensor<4xf16>) -> tensor<4xf16>
    "rtensor.yield"(%e) : (tensor<4xf16>) -> ()
  }) {op_name = "o", kind = "elementwise"} : () -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{region yields (tensor<4xf16>), expected (tensor<4xf32>)}}
  %y = "rtensor.operator"() ({
    %e = linalg.exp ins(%x : tensor<4xf16>) outs(%x : tensor<4xf16>) -> tensor<4xf16>
    "rtensor.yield"(%e) : (tensor<4xf16>) -> ()
  }) {op_name = "o", kind = "elementwise"} : () -> tensor<4xf32>
  return
}

// -----

// What a region reads has to stand in front of the operator.
func.func @f(%x: tensor<4xf16>) {
  %y = "rtensor.operator"() ({
    // expected-error @+1 {{operand #0 does not dominate this use}}
    %e = linalg.exp ins(%z : tensor<4xf16>) outs(%x : tensor<4xf16>) -> tensor<4xf16>
    "rtensor.yield"(%e) : (tensor<4xf16>) -> ()
  }) {op_name = "o", kind = "elementwise"} : () -> tensor<4xf16>
  // expected-note @+1 {{operand defined here}}
  %z = linalg.exp ins(%x : tensor<4xf16>) outs(%x : tensor<4xf16>) -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{'rtensor.nest' op has 2 axes, 1 steps and 1 paces, expected one of each per loop}}
  %y = "rtensor.nest"(%x) ({
  ^bb0(%p: index, %a: tensor<4xf16>):
    "rtensor.yield"(%a) : (tensor<4xf16>) -> ()
  }) {axes = [0, 1], steps = [2], rp = [1], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{axes = [0, 0] names an axis twice}}
  %y = "rtensor.nest"(%x) ({
  ^bb0(%p: index, %a: tensor<4xf16>):
    "rtensor.yield"(%a) : (tensor<4xf16>) -> ()
  }) {axes = [0, 0], steps = [2, 2], rp = [1, 1], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{steps[0] = 1, expected at least 2}}
  %y = "rtensor.nest"(%x) ({
  ^bb0(%p: index, %a: tensor<4xf16>):
    "rtensor.yield"(%a) : (tensor<4xf16>) -> ()
  }) {axes = [0], steps = [1], rp = [1], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{rp[0] = 0, expected at least 1}}
  %y = "rtensor.nest"(%x) ({
  ^bb0(%p: index, %a: tensor<4xf16>):
    "rtensor.yield"(%a) : (tensor<4xf16>) -> ()
  }) {axes = [0], steps = [2], rp = [0], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{axes is 0, expected an array of integers such as [2, 1]}}
  %y = "rtensor.nest"(%x) ({
  ^bb0(%p: index, %a: tensor<4xf16>):
    "rtensor.yield"(%a) : (tensor<4xf16>) -> ()
  }) {axes = 0, steps = [2], rp = [1], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{region has 1 arguments, expected 2: (index, tensor<4xf16>)}}
  %y = "rtensor.nest"(%x) ({
  ^bb0(%a: tensor<4xf16>):
    "rtensor.yield"(%a) : (tensor<4xf16>) -> ()
  }) {axes = [0], steps = [2], rp = [1], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{starts from (tensor<4xf16>) but results in tensor<4xf32>, expected the same type}}
  %y = "rtensor.nest"(%x) ({
  ^bb0(%p: index, %a: tensor<4xf16>):
    "rtensor.yield"(%a) : (tensor<4xf16>) -> ()
  }) {axes = [0], steps = [2], rp = [1], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf16>) {
  // expected-error @+1 {{region yields (index), expected (tensor<4xf16>)}}
  %y = "rtensor.nest"(%x) ({
  ^bb0(%p: index, %a: tensor<4xf16>):
    "rtensor.yield"(%p) : (index) -> ()
  }) {axes = [0], steps = [2], rp = [1], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf16>) -> tensor<4xf16>
  return
}
