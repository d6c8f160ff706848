// RUN: not t10-opt %s 2>&1 | filecheck %s
// RUN: cat %s | not t10-opt 2>&1 | filecheck %s --check-prefix=STDIN
// RUN: cat %s | not t10-opt - 2>&1 | filecheck %s --check-prefix=STDIN

// CHECK: carets.mlir:12:10: error: use of undeclared SSA value name
// CHECK-NEXT: {{^}}  return %missing : i32{{$}}
// CHECK-NEXT: {{^}}         ^{{$}}

// STDIN: <stdin>:12:10: error: use of undeclared SSA value name
// STDIN-NEXT: {{^}}  return %missing : i32{{$}}
func.func @f() -> i32 {
  return %missing : i32
}
