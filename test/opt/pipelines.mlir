// RUN: t10-opt --cse --t10-verify-layouts --canonicalize %s | filecheck %s
// RUN: t10-opt -cse -canonicalize %s | filecheck %s
// RUN: t10-opt --pass-pipeline='builtin.module(func.func(cse),t10-verify-layouts,canonicalize{max-iterations=3})' %s | filecheck %s
// RUN: t10-opt --pass-pipeline "builtin.module( func.func( cse , canonicalize ) )" %s | filecheck %s
// RUN: t10-opt --affine-loop-normalize --cse %s | filecheck %s
// RUN: t10-opt --cse --canonicalize="max-iterations=2 top-down=0" --dump-pass-pipeline %s -o /dev/null 2>&1 | filecheck %s --check-prefix=DUMP
// RUN: t10-opt --affine-loop-normalize --dump-pass-pipeline %s -o /dev/null 2>&1 | filecheck %s --check-prefix=NESTED
// RUN: t10-opt --pass-pipeline='builtin.module()' %s | filecheck %s --check-prefix=NOTHING

// CHECK: %[[S:.*]] = arith.addi %arg0, %arg0 : i32
// CHECK-NEXT: %[[P:.*]] = arith.muli %[[S]], %[[S]] : i32
// CHECK-NEXT: return %[[P]]
// DUMP: Pass Manager with 2 passes:
// DUMP-NEXT: builtin.module(cse,canonicalize{max-iterations=2 top-down=0})
// NESTED: builtin.module(func.func(affine-loop-normalize))
// NOTHING-COUNT-2: arith.addi
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  %2 = arith.muli %0, %1 : i32
  return %2 : i32
}
