// RUN: t10-opt --split-input-file="// ~~~" %s | filecheck %s
// RUN: not t10-opt --split-input-file %s 2>&1 | filecheck %s --check-prefix=WHOLE

// CHECK: @same
// CHECK: // -----
// CHECK: @same
// WHOLE: redefinition of symbol named 'same'
func.func private @same()
// ~~~
func.func private @same()
