// RUN: t10-opt --t10-flatten --split-input-file --verify-diagnostics %s

func.func @main(%a: tensor<4xf32>, %n: index) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %e = tensor.empty() : tensor<4xf32>
  // expected-error@below {{'scf.for' op is decided when the model runs: its bounds are not known (expected constants)}}
  %r = scf.for %i = %zero to %n step %one iter_args(%x = %a) -> (tensor<4xf32>) {
    %y = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>, %yes: i1) -> tensor<4xf32> {
  // expected-error@below {{'scf.if' op is decided when the model runs: its condition is not known (expected constants)}}
  %r = scf.if %yes -> (tensor<4xf32>) {
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// expected-error@below {{@one calls itself}}
func.func @one(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @two(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @two(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @one(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@below {{@main calls itself}}
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @main(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 200000 : index
  %e = tensor.empty() : tensor<4xf32>
  // expected-error@below {{'scf.for' op would be written out to more than 100,000 operations}}
  %r = scf.for %i = %zero to %many step %one iter_args(%x = %a) -> (tensor<4xf32>) {
    %n = linalg.exp ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
    scf.yield %n : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// An empty body is no reason to count to the end.
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 4000000000000000000 : index
  // expected-error@below {{'scf.for' op would be written out to more than 100,000 operations}}
  scf.for %i = %zero to %many step %one {
  }
  return %a : tensor<4xf32>
}

// -----

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 100 : index
  // expected-error@below {{'scf.for' op would be written out to more than 100,000 operations}}
  %0 = scf.for %i = %zero to %many step %one iter_args(%b = %a) -> tensor<4xf32> {
    %1 = scf.for %j = %zero to %many step %one iter_args(%c = %b) -> tensor<4xf32> {
      %2 = scf.for %k = %zero to %many step %one iter_args(%d = %c) -> tensor<4xf32> {
        %3 = scf.for %l = %zero to %many step %one iter_args(%e = %d) -> tensor<4xf32> {
          %y = arith.addf %e, %e : tensor<4xf32>
          scf.yield %y : tensor<4xf32>
        }
        scf.yield %3 : tensor<4xf32>
      }
      scf.yield %2 : tensor<4xf32>
    }
    scf.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  // expected-error@below {{'scf.for' op has a step of 0 (expected a constant of at least 1)}}
  %r = scf.for %i = %zero to %zero step %zero iter_args(%x = %a) -> tensor<4xf32> {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @main_rounds(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// expected-error@below {{@main_rounds calls itself}}
func.func private @main_rounds(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @main_rounds(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
