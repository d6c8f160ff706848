// RUN: t10-opt --t10-partition="chip=test-4 f-op=2,2,1 ft=1x1x2,1x1x2,1x1x1" --t10-lower-ipu %s -o %t.mlir
// RUN: t10-translate --ipu-to-poplar %t.mlir | filecheck %s
// RUN: t10-translate --ipu-to-poplar %t.mlir -o %t.cpp
// RUN: t10-translate --ipu-to-poplar %t.mlir | diff %t.cpp -
// RUN: rm -rf %t && t10-translate --ipu-to-poplar %t.mlir -o %t --no-weights
// RUN: diff %t.cpp %t/program.cpp
// RUN: t10-translate --ipu-to-asm %t.mlir | diff %t/codelets.S -
// RUN: t10-translate --ipu-to-codelets %t.mlir | diff %t/codelets.cpp -
// RUN: test -s %t/tables.bin && test -s %t/t10_main.hpp && test -s %t/t10_runtime.hpp && test -s %t/CMakeLists.txt
// RUN: filecheck %s --check-prefix=README < %t/README.md

// What is written is read back as by those who run it.
// RUN: sed 's/kind = "shift", op_name = "product"/kind = "shift", op_name = "nobody"/' %t.mlir > %t.nobody.mlir
// RUN: rm -rf %t.nobody
// RUN: not t10-translate --ipu-to-poplar %t.nobody.mlir -o %t.nobody --no-weights 2>&1 | filecheck %s --check-prefix=NOBODY
// RUN: not test -e %t.nobody
// NOBODY: t10-translate: error: {{.*}}nobody.mlir: program.json: {{.*}}'nobody'

// A chip of somebody's file may have the name of one of ours.
// RUN: printf 'based_on: test-4\nn_cores: 8\nsram_bytes: 131072\n' > %t.yaml
// RUN: t10-opt --t10-partition="chip=%t.yaml f-op=2,2,1" --t10-lower-ipu %s -o %t.eight.mlir
// RUN: t10-translate --ipu-to-poplar %t.eight.mlir -o %t.eight --no-weights

// A variable has a row per tile, and says which rTensor it is. Halves of 8 elements turn over two tiles.
// CHECK: // {{.*}} for chip test-4, 4 tiles; written by T10.
// CHECK: struct Memory {
// CHECK-NEXT: // weight 4xf32: arg1: 2x8 f32, operand layout
// CHECK-NEXT: Tensor idle_arg1;
// CHECK-NEXT: // input 4xf32: arg0: 2x8 f32, operand layout
// CHECK-NEXT: Tensor input_arg0;
// CHECK-NEXT: // output 1x1xf32: product:0: 2x2 f32, fs=[2, 2] ft=[1, 1] rp=[0, 0]
// CHECK-NEXT: Tensor value_product_0;
// CHECK-NEXT: // buffer 2048xf32: receive buffer of shifts and reductions
// CHECK-NEXT: Tensor shift_f32;
// CHECK: m.idle_arg1 = b.variable("idle:arg1", FLOAT, 4, 4);

// An operator is a function: vertices over ranges of tiles, a word per field; exchanges by the number of their table.
// CHECK: Sequence product(Builder &b, const Memory &m) {
// CHECK: b.vertices(sub_task, "{{[A-Za-z0-9_]*}}", tiles(0, 4), {{[0-9]+}},
// CHECK: edge("{{[a-z0-9]*}}", m.input_arg0), edge("{{[a-z0-9]*}}", m.idle_arg1)
// CHECK: // shift: k advances forward by 4
// CHECK-NEXT: const Program shift_k_forward = b.exchange("shift:product:k:forward", {m.input_arg0, m.idle_arg1}, m.shift_f32,
// CHECK: Sequence steps;
// CHECK: steps.add(WriteUndef(m.shift_f32));
// CHECK: steps.add(Execute(sub_task));
// CHECK-NEXT: steps.add(shift_k_forward);
// CHECK-NEXT: steps.add(copy_out_k_forward);
// CHECK: return steps;

// What crosses the host's link, the program, and the main function.
// CHECK: b.host_tensor({HostTensor::weight, "arg1", "<f4", {2, 8}, absent,
// CHECK: b.host_tensor({HostTensor::output, "result0", "<f4", {2, 2}, absent,
// CHECK: const FloatingPointBehaviour floating_point(/*inv*/ false, /*div0*/ false, /*oflo*/ false, /*esr*/ false, /*nanoo*/ false);
// CHECK: model.add(product(b, m));
// CHECK: int main(int argc, char **argv) { return t10::main(argc, argv, {"main", 4, floating_point, build}); }
// README: build/program --ipu --inputs inputs.npz --outputs outputs.npz
func.func @main(%a: tensor<2x8xf32>, %b: tensor<8x2xf32> {t10.weight}) -> tensor<2x2xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2xf32>
  %i = linalg.fill ins(%z : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %c = linalg.matmul ins(%a, %b : tensor<2x8xf32>, tensor<8x2xf32>) outs(%i : tensor<2x2xf32>) -> tensor<2x2xf32>
    loc("product")
  return %c : tensor<2x2xf32>
}
