// RUN: not t10-opt --verify-diagnostics %s 2>&1 | filecheck %s
// RUN: not t10-opt --verify-diagnostics=all %s 2>&1 | filecheck %s
// RUN: not t10-opt --verify-diagnostics=only-expected %s 2>&1 | filecheck %s --check-prefix=ONLY

// CHECK: verify-diagnostics-fails.mlir:12:10: error: unexpected error: use of undeclared SSA value name
// CHECK: verify-diagnostics-fails.mlir:11: error: expected warning "it rains" was not produced
// ONLY-NOT: unexpected
// ONLY: verify-diagnostics-fails.mlir:11: error: expected warning "it rains" was not produced
func.func @f() {
  // The message below is not expected, the expected one does not come.
  // expected-warning @+1 {{it rains}}
  return %x : i32
}
