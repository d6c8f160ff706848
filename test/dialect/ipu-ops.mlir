// RUN: t10-opt --verify-roundtrip %s | t10-opt | filecheck %s
// RUN: t10-opt --mlir-print-op-generic %s | t10-opt | filecheck %s
// RUN: t10-opt --emit-bytecode %s | t10-opt | filecheck %s

// CHECK: "ipu.graph"() ({
// CHECK-NEXT: %[[X:.*]] = "ipu.alloc"() {address = 0 : i64, element = f16, mapping = {{\[\[}}0, 1], [3, 3]], role = "input", shape = [4, 8], sym_name = "x"} : () -> !ipu.tensor
// CHECK-NEXT: %[[Y:.*]] = "ipu.alloc"() {{.*}}role = "output"
// CHECK-NEXT: "ipu.compute_set"() ({
// CHECK-NEXT: "ipu.vertex"(%[[X]], %[[Y]]) {codelet = "exp_f16", cycles = 90 : i64, mapping = {{\[\[}}0, 1], [3, 3]], op_name = "/exp"} : (!ipu.tensor, !ipu.tensor) -> ()
// CHECK-NEXT: }) {sym_name = "exp"} : () -> ()
// CHECK-NEXT: "ipu.sequence"() ({
// CHECK-NEXT: "ipu.repeat"() ({
// CHECK-NEXT: "ipu.execute"() {compute_set = "exp"} : () -> ()
// CHECK-NEXT: "ipu.copy"(%[[X]], %[[Y]]) {bytes = 4 : i64, cycles = 40 : i64, kind = "shift", op_name = "/exp", rounds = 1 : i64}
// CHECK-NEXT: }) {count = 3 : i64} : () -> ()
// CHECK-NEXT: "ipu.sequence"() ({
// CHECK: }) {chip = "test-4", memory_bytes = 65536 : i64, sym_name = "main", tiles = 4 : i64} : () -> ()
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [4, 8], address = 0, mapping = [[0, 1], [3, 3]]}
    : () -> !ipu.tensor
  %y = "ipu.alloc"() {sym_name = "y", role = "output", element = f16, shape = [4, 8], address = 64, mapping = [[0, 3]]}
    : () -> !ipu.tensor
  "ipu.compute_set"() ({
    "ipu.vertex"(%x, %y) {codelet = "exp_f16", op_name = "/exp", mapping = [[0, 1], [3, 3]], cycles = 90}
      : (!ipu.tensor, !ipu.tensor) -> ()
  }) {sym_name = "exp"} : () -> ()
  "ipu.sequence"() ({
    "ipu.repeat"() ({
      "ipu.execute"() {compute_set = "exp"} : () -> ()
      "ipu.copy"(%x, %y) {kind = "shift", op_name = "/exp", bytes = 4, rounds = 1, cycles = 40}
        : (!ipu.tensor, !ipu.tensor) -> ()
    }) {count = 3} : () -> ()
    "ipu.sequence"() ({ }) : () -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()
