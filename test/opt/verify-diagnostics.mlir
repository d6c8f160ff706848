// RUN: t10-opt --split-input-file --verify-diagnostics %s

// The designators of mlir-opt.
func.func @next_line() {
  // expected-error @+1 {{use of undeclared SSA value}}
  return %x : i32
}

// -----

func.func @same_line() {
  return %x : i32 // expected-error {{use of undeclared SSA value}}
}

// -----

func.func @below() {
  // expected-error-re @below {{use of {{un[a-z]+}} SSA value}}
  return %x : i32
}

// -----

func.func @above() {
  return %x : i32
  // expected-error @above {{use of undeclared SSA value}}
}

// -----

func.func @note(%a: i32) {
  // expected-note @+1 {{prior use here}}
  %0 = arith.addi %a, %a : i32
  // expected-error @+1 {{expects different type than prior uses: 'i64' vs 'i32'}}
  %1 = arith.addi %0, %0 : i64
  return
}

// -----

// A number says how often: two arguments, two errors on one line.
// expected-error @+1 2 {{linear layout on cores = 0}}
func.func private @count(tensor<1xf16, #rtensor.linear<{cores = 0}>>, tensor<1xf32, #rtensor.linear<{cores = 0}>>)
