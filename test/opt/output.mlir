// RUN: t10-opt %s -o %t.mlir
// RUN: filecheck %s < %t.mlir
// RUN: t10-opt -o=%t.2.mlir < %s
// RUN: diff %t.mlir %t.2.mlir
// RUN: t10-opt --emit-bytecode %s -o %t.bc
// RUN: t10-opt %t.bc | diff %t.mlir -
// RUN: t10-opt --mlir-print-op-generic %s | filecheck %s --check-prefix=GENERIC
// RUN: t10-opt --mlir-print-debuginfo %s | filecheck %s --check-prefix=DEBUG
// RUN: t10-opt --mlir-print-local-scope --mlir-print-debuginfo %s | filecheck %s --check-prefix=LOCAL
// RUN: t10-opt --mlir-elide-elementsattrs-if-larger=4 %s | filecheck %s --check-prefix=ELIDE
// RUN: t10-opt --mlir-use-nameloc-as-prefix %s | filecheck %s --check-prefix=NAME
// RUN: t10-opt --mlir-print-skip-regions %s | filecheck %s --check-prefix=SKIP
// RUN: not t10-opt --emit-bytecode --split-input-file %s 2>&1 | filecheck %s --check-prefix=SPLIT

// A failed run leaves the old file alone.
// RUN: echo "// old" > %t.3.mlir
// RUN: not t10-opt --run-reproducer %s -o %t.3.mlir
// RUN: cat %t.3.mlir | filecheck %s --check-prefix=OLD

// CHECK: func.func @f
// CHECK: arith.constant dense<[1, 2, 3, 4, 5]>
// GENERIC: "func.func"()
// DEBUG: loc("{{.*}}output.mlir":{{[0-9]+}}:{{[0-9]+}})
// LOCAL: loc("{{.*}}output.mlir":{{[0-9]+}}:{{[0-9]+}})
// LOCAL-NOT: #loc
// ELIDE: arith.constant dense_resource<__elided__>
// NAME: %constants
// SKIP: {...}
// SPLIT: --emit-bytecode writes one module: it cannot be used with --split-input-file
// OLD: // old
func.func @f() -> tensor<5xi32> {
  %0 = arith.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi32> loc("constants")
  return %0 : tensor<5xi32>
}

// -----
