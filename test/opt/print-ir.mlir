// RUN: t10-opt --cse --t10-verify-layouts --mlir-print-ir-after=cse %s -o /dev/null 2>&1 | filecheck %s --check-prefix=AFTER
// RUN: t10-opt --cse --t10-verify-layouts --mlir-print-ir-before=cse,t10-verify-layouts %s -o /dev/null 2>&1 | filecheck %s --check-prefix=BEFORE
// RUN: t10-opt --cse --canonicalize --mlir-print-ir-after-all %s -o /dev/null 2>&1 | filecheck %s --check-prefix=ALL
// RUN: t10-opt --cse --canonicalize --mlir-print-ir-before-all %s -o /dev/null 2>&1 | filecheck %s --check-prefix=BEFOREALL
// RUN: t10-opt --cse --cse --t10-verify-layouts --mlir-print-ir-after-change %s -o /dev/null 2>&1 | filecheck %s --check-prefix=CHANGE
// RUN: t10-opt --pass-pipeline='builtin.module(func.func(cse))' --mlir-print-ir-after-all %s -o /dev/null 2>&1 | filecheck %s --check-prefix=FUNCTION
// RUN: t10-opt --pass-pipeline='builtin.module(func.func(cse))' --mlir-print-ir-after-all --mlir-print-ir-module-scope %s -o /dev/null 2>&1 | filecheck %s --check-prefix=SCOPE
// RUN: rm -rf %t.d
// RUN: t10-opt --cse --t10-verify-layouts --mlir-print-ir-tree-dir=%t.d %s -o /dev/null
// RUN: cat %t.d/builtin_module_no-symbol-name/0_cse.mlir | filecheck %s --check-prefix=TREE
// RUN: cat %t.d/builtin_module_no-symbol-name/1_t10-verify-layouts.mlir | filecheck %s --check-prefix=TREE

// AFTER: // -----// IR Dump After cse //----- //
// AFTER-NEXT: module
// AFTER-NOT: IR Dump
// BEFORE: IR Dump Before cse
// BEFORE: arith.addi
// BEFORE: arith.addi
// BEFORE: IR Dump Before VerifyLayouts: t10-verify-layouts
// ALL: IR Dump After cse
// ALL: IR Dump After canonicalize
// BEFOREALL: IR Dump Before cse
// BEFOREALL: IR Dump Before canonicalize
// CHANGE: IR Dump After cse
// CHANGE-NOT: IR Dump
// FUNCTION: IR Dump After CSE
// FUNCTION-NEXT: {{^}}func.func @f
// SCOPE: IR Dump After CSE
// SCOPE-NEXT: {{^}}module
// TREE: IR Dump After
// TREE: func.func @f
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  %2 = arith.muli %0, %1 : i32
  return %2 : i32
}
