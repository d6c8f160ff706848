// RUN: t10-opt --t10-reconcile="chip=test-16" %s | t10-opt --t10-place="chip=test-4" 2>&1 | filecheck %s
// RUN: t10-opt --t10-reconcile="chip=test-16" %s | t10-opt --t10-place="chip=test-16" 2>&1 | filecheck %s --check-prefix=SAME
// RUN: t10-opt --t10-reconcile="chip=test-16" %s | t10-opt --t10-place 2>&1 | filecheck %s --check-prefix=SAME
// Every pass that plans says so, once however many passes it runs before itself.
// RUN: t10-opt --t10-partition="chip=test-16" %s | t10-opt --t10-align-pace="chip=test-4" 2>&1 | filecheck %s --check-prefix=ONCE
// RUN: t10-opt --t10-partition="chip=test-16" %s | t10-opt --t10-reconcile="chip=test-4" 2>&1 | filecheck %s --check-prefix=ONCE

// A planned module is planned for one chip. Another one in the options of a later pass is not taken silently.
// CHECK: warning: 'builtin.module' op is planned for test-16: chip=test-4 is not used (--t10-partition plans anew)
// CHECK: t10.chip = "test-16"
// ONCE: warning: 'builtin.module' op is planned for test-16: chip=test-4 is not used
// ONCE-NOT: warning
// ONCE: t10.chip = "test-16"
// SAME-NOT: warning
// SAME: t10.chip = "test-16"
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %empty = tensor.empty() : tensor<8x8xf32>
  %y = linalg.exp ins(%x : tensor<8x8xf32>) outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
