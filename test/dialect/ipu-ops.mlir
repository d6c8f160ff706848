// RUN: t10-opt --verify-roundtrip %s | t10-opt | filecheck %s
// RUN: t10-opt --mlir-print-op-generic %s | t10-opt | filecheck %s
// RUN: t10-opt --emit-bytecode %s | t10-opt | filecheck %s

// CHECK: "ipu.graph"() ({
// CHECK-NEXT: %[[X:.*]] = "ipu.alloc"() {address = 0 : i64, element = f16, mapping = {{\[\[}}0, 1], [3, 3]], role = "input", shape = [4, 8], sym_name = "x"} : () -> !ipu.tensor
// CHECK-NEXT: %[[Y:.*]] = "ipu.alloc"() {{.*}}role = "output"
// CHECK-NEXT: "ipu.codelet"() {apart = [], assembly = "nop", cpp_reference = "return true;", fields = [{align = 8 : i64, dtype = "f16", interleaved = false, kind = "in", name = "x"}, {{.*}}], kind = "multi", stack_bytes = 0 : i64, summary = "exponentials", sym_name = "Exp"} : () -> ()
// CHECK-NEXT: "ipu.compute_set"() ({
// CHECK-NEXT: "ipu.vertex"(%[[X]], %[[Y]]) {codelet = "Exp", cycles = 90 : i64, mapping = {{\[\[}}0, 1], [3, 3]], op_name = "/exp", state = 1024 : i64, words = [{offset = 0 : i64, operand = 0 : i64}, {offset = array<i64: 0, 2, 4>, operand = 1 : i64}, array<i64: 8, 8, 5>]} : (!ipu.tensor, !ipu.tensor) -> ()
// CHECK-NEXT: }) {sym_name = "exp"} : () -> ()
// CHECK-NEXT: "ipu.pattern"() {constants = ["0.0"], fill_values = dense<0> : tensor<1xi32>, fills = dense<{{.*}}> : tensor<1x5xi32>, runs = dense<{{.*}}> : tensor<1x9xi32>, sym_name = "ring"} : () -> ()
// CHECK-NEXT: "ipu.table"() {elements = dense<{{.*}}> : tensor<2x2xi32>, sym_name = "t"} : () -> ()
// CHECK-NEXT: "ipu.host"(%[[X]]) {direction = "input", element = f16, name = "x", pieces = [{fill = "0", operand = 0 : i64, table = "t"}], shape = [3]} : (!ipu.tensor) -> ()
// CHECK-NEXT: "ipu.sequence"() ({
// CHECK-NEXT: "ipu.repeat"() ({
// CHECK-NEXT: "ipu.execute"() {compute_set = "exp"} : () -> ()
// CHECK-NEXT: "ipu.copy"(%[[X]], %[[Y]]) {bytes = 8 : i64, cycles = 40 : i64, kind = "shift", op_name = "/exp", pattern = "ring", sym_name = "shift x"}
// CHECK-NEXT: }) {count = 3 : i64} : () -> ()
// CHECK-NEXT: "ipu.sequence"() ({
// CHECK: }) {chip = "test-4", memory_bytes = 65536 : i64, sym_name = "main", tiles = 4 : i64} : () -> ()
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [4, 8], address = 0, mapping = [[0, 1], [3, 3]]}
    : () -> !ipu.tensor
  %y = "ipu.alloc"() {sym_name = "y", role = "output", element = f16, shape = [4, 8], address = 64, mapping = [[0, 3]]}
    : () -> !ipu.tensor
  "ipu.codelet"() {sym_name = "Exp", kind = "multi", summary = "exponentials", stack_bytes = 0, apart = [],
    fields = [{name = "x", kind = "in", dtype = "f16", align = 8, interleaved = false},
              {name = "y", kind = "out", dtype = "f16", align = 2, interleaved = false},
              {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}],
    assembly = "nop", cpp_reference = "return true;"} : () -> ()
  "ipu.compute_set"() ({
    "ipu.vertex"(%x, %y) {codelet = "Exp", op_name = "/exp", mapping = [[0, 1], [3, 3]], cycles = 90, state = 1024,
      words = [{operand = 0, offset = 0}, {operand = 1, offset = array<i64: 0, 2, 4>}, array<i64: 8, 8, 5>]}
      : (!ipu.tensor, !ipu.tensor) -> ()
  }) {sym_name = "exp"} : () -> ()
  "ipu.pattern"() {sym_name = "ring", constants = ["0.0"], runs = dense<[[0, 1, 0, 0, 8, 4, 2, 16, 4]]> : tensor<1x9xi32>,
    fills = dense<[[0, 16, 2, 1, 0]]> : tensor<1x5xi32>, fill_values = dense<0> : tensor<1xi32>} : () -> ()
  "ipu.table"() {sym_name = "t", elements = dense<[[0, 1], [2, -1]]> : tensor<2x2xi32>} : () -> ()
  "ipu.host"(%x) {name = "x", direction = "input", element = f16, shape = [3], pieces = [{operand = 0, table = "t", fill = "0"}]}
    : (!ipu.tensor) -> ()
  "ipu.sequence"() ({
    "ipu.repeat"() ({
      "ipu.execute"() {compute_set = "exp"} : () -> ()
      "ipu.copy"(%x, %y) {sym_name = "shift x", kind = "shift", op_name = "/exp", pattern = "ring", bytes = 8, cycles = 40}
        : (!ipu.tensor, !ipu.tensor) -> ()
    }) {count = 3} : () -> ()
    "ipu.sequence"() ({ }) : () -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()
