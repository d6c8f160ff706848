// RUN: t10-opt --t10-outline-constants %s | filecheck %s
// RUN: t10-opt --t10-outline-constants %s | t10-opt --t10-outline-constants --emit-bytecode | t10-opt | filecheck %s
// RUN: t10-opt --t10-fuse %s | filecheck %s --check-prefix=FUSED

// Elements of long constants stand at the end of the text; short ones and splats where they are used.
// CHECK: arith.constant dense_resource<constant> : tensor<17xi8>
// CHECK: arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : tensor<16xi8>
// CHECK: arith.constant dense<1> : tensor<100xi8>
// CHECK: constant: "0x01000000000102030405060708090A0B0C0D0E0F10"
// FUSED: arith.constant dense_resource<constant> : tensor<17xi8>
func.func @f() -> (tensor<17xi8>, tensor<16xi8>, tensor<100xi8>) {
  %a = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]> : tensor<17xi8>
  %b = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : tensor<16xi8>
  %c = arith.constant dense<1> : tensor<100xi8>
  return %a, %b, %c : tensor<17xi8>, tensor<16xi8>, tensor<100xi8>
}
