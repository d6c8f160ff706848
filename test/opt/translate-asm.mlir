// RUN: t10-opt --t10-partition="chip=test-4 f-op=4,1" --t10-lower-ipu %s -o %t.mlir
// RUN: t10-translate --ipu-to-asm %t.mlir | filecheck %s
// RUN: t10-translate --ipu-to-codelets %t.mlir | filecheck %s --check-prefix=CLASS
// RUN: t10-translate --ipu-to-asm < %t.mlir -o %t.S
// RUN: t10-translate --ipu-to-asm - < %t.mlir | diff %t.S -
// RUN: t10 asm %t.S | filecheck %s --check-prefix=LISTING

// One codelet: a section of its own, whose entry symbol Poplar finds as class t10::NAME. Workers run it, from a multiple of 8
// bytes on, and end with exitz; Poplar learns how much stack it needs.
// CHECK: // [[NAME:[A-Za-z0-9_]*]]: {{.*}}exp
// CHECK-NEXT: .section .text.__runCodelet_t10__[[NAME]], "ax"
// CHECK-NEXT: .globl __runCodelet_t10__[[NAME]]
// CHECK-NEXT: .type __runCodelet_t10__[[NAME]], @function
// CHECK-NEXT: .align 8
// CHECK-NEXT: .worker
// CHECK-NEXT: __runCodelet_t10__[[NAME]]:
// CHECK: f32exp
// CHECK: exitz
// CHECK: .size __runCodelet_t10__[[NAME]], . - __runCodelet_t10__[[NAME]]
// CHECK-NEXT: DEF_STACK_USAGE {{[0-9]+}}, __runCodelet_t10__[[NAME]]

// Its class: a field per word of the vertex, in order; on an IPU the code is the assembly, elsewhere the C++ body.
// CLASS: namespace t10 {
// CLASS: class {{.*}}: public MultiVertex {
// CLASS: static const bool isExternalCodelet = T10_IN_ASSEMBLY;
// CLASS-NEXT: Input<Vector<float, VectorLayout::ONE_PTR, {{[0-9]+}}>> in0;
// CLASS-NEXT: InOut<Vector<float, VectorLayout::ONE_PTR, {{[0-9]+}}>> out;
// CLASS: bool compute(unsigned worker) {
// CLASS: return true;

// The text assembles: code begins where a tile's memory does.
// LISTING: 0x4c000
// LISTING: exitz
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.exp ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32> loc("exponential")
  return %y : tensor<4x8xf32>
}
