// RUN: not t10-opt %s 2>&1 | filecheck %s --check-prefix=REFUSED
// RUN: t10-opt --allow-unregistered-dialect %s | filecheck %s
// RUN: t10-opt -allow-unregistered-dialect --mlir-disable-threading %s | filecheck %s

// REFUSED: error: operation being parsed with an unregistered dialect
// CHECK: "elsewhere.op"
func.func @f() {
  "elsewhere.op"() : () -> ()
  return
}
