// RUN: t10-opt --split-input-file --verify-diagnostics %s

// expected-error @+1 {{'ipu.graph' op defines 'x' twice}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  %y = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{holds 0 sequences, expected one: the program}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{holds arith.constant, expected one of ipu.alloc, ipu.codelet, ipu.compute_set, ipu.host, ipu.pattern, ipu.sequence, ipu.table}}
"ipu.graph"() ({
  %c = arith.constant 0 : i32
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{allocation 'x' ends at byte 72, expected at most 64, the memory of a tile}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 56, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{allocation 'x' is mapped to tile 4 of a chip of 4 tiles, expected at most 3}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 4]]} : () -> !ipu.tensor
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{vertex of 's' is mapped to tile 9 of a chip of 4 tiles, expected at most 3}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.compute_set"() ({
    "ipu.vertex"(%x) {codelet = "c", op_name = "o", mapping = [[9, 9]], words = [], state = 0, cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{uses 't', which no ipu.compute_set before it defines}}
"ipu.graph"() ({
  "ipu.compute_set"() ({
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({
    "ipu.repeat"() ({
      "ipu.execute"() {compute_set = "t"} : () -> ()
    }) {count = 2} : () -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{'ipu.alloc' op role is "thing", expected one of input, output, weight, activation, partial, buffer, scratch}}
  %x = "ipu.alloc"() {sym_name = "x", role = "thing", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{shape = [2, 0], expected extents of at least 1}}
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [2, 0], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{address = 3, expected a multiple of 2 bytes, the element's size}}
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 3, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{element is tuple<>, expected an integer or floating-point type}}
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = tuple<>, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{allocation has mapping (), expected ranges of tiles such as [[0, 15]]}}
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = []} : () -> !ipu.tensor
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{allocation has range [3, 1], expected [first, last]}}
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[3, 1]]} : () -> !ipu.tensor
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{allocation has range [1, 2] after tile 1, expected ascending ranges}}
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 1], [1, 2]]} : () -> !ipu.tensor
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.compute_set"() ({
    // expected-error @+1 {{'ipu.vertex' op names no codelet}}
    "ipu.vertex"(%x) {codelet = "", op_name = "o", mapping = [[0, 3]], words = [], state = 0, cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.compute_set"() ({
    // expected-error @+1 {{cycles = -1, expected at least 0}}
    "ipu.vertex"(%x) {codelet = "c", op_name = "o", mapping = [[0, 3]], words = [], state = 0, cycles = -1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{'ipu.compute_set' op holds ipu.execute, expected only ipu.vertex}}
  "ipu.compute_set"() ({
    "ipu.execute"() {compute_set = "s"} : () -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({
    // expected-error @+1 {{'ipu.copy' op kind is "teleport", expected one of shift, copy_out, relayout, setup, reduce}}
    "ipu.copy"(%x, %x) {sym_name = "c", kind = "teleport", op_name = "o", pattern = "p", bytes = 1, cycles = 1} : (!ipu.tensor, !ipu.tensor) -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({
    // expected-error @+1 {{has 1 operands, expected sources and a target}}
    "ipu.copy"(%x) {sym_name = "c", kind = "shift", op_name = "o", pattern = "p", bytes = 1, cycles = 1} : (!ipu.tensor) -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({
    // expected-error @+1 {{bytes = -1, expected at least 0}}
    "ipu.copy"(%x, %x) {sym_name = "c", kind = "shift", op_name = "o", pattern = "p", bytes = -1, cycles = 1} : (!ipu.tensor, !ipu.tensor) -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{'ipu.sequence' op holds ipu.alloc, expected one of ipu.sequence, ipu.repeat, ipu.execute, ipu.copy}}
  "ipu.sequence"() ({
    %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  "ipu.sequence"() ({
    // expected-error @+1 {{'ipu.repeat' op count = 0, expected 1 to 1048576}}
    "ipu.repeat"() ({ }) {count = 0} : () -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  "ipu.sequence"() ({
    // expected-error @+1 {{'ipu.repeat' op holds ipu.alloc, expected one of}}
    "ipu.repeat"() ({
     %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
    }) {count = 2} : () -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{vertex of 's' runs 'd', which no ipu.codelet before it defines}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f16", align = 8, interleaved = false},
              {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.compute_set"() ({
    "ipu.vertex"(%x) {codelet = "d", op_name = "o", mapping = [[0, 3]], words = [1], state = 0, cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{vertex of 's' has 1 words, expected 2: a word per field of 'c'}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f16", align = 8, interleaved = false},
              {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.compute_set"() ({
    "ipu.vertex"(%x) {codelet = "c", op_name = "o", mapping = [[0, 3]], words = [{operand = 0, offset = 0}], state = 0, cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{word 1 of a vertex of 's' is a pointer, expected what field 'n' of 'c' is: u32}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f16", align = 8, interleaved = false},
              {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.compute_set"() ({
    "ipu.vertex"(%x) {codelet = "c", op_name = "o", mapping = [[0, 3]], words = [{operand = 0, offset = 0}, {operand = 0, offset = 0}], state = 0, cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{word 0 of a vertex of 's' is a number, expected what field 'out' of 'c' is: out}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f16", align = 8, interleaved = false},
              {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.compute_set"() ({
    "ipu.vertex"(%x) {codelet = "c", op_name = "o", mapping = [[0, 3]], words = [1, 1], state = 0, cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{word 0 of a vertex of 's' points to elements of f16, expected those of field 'out': f32}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f32", align = 8, interleaved = false},
              {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.compute_set"() ({
    "ipu.vertex"(%x) {codelet = "c", op_name = "o", mapping = [[0, 3]], words = [{operand = 0, offset = 0}, 1], state = 0, cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  // expected-error @+1 {{field 'out' points to 'f64', expected one of}}
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f64", align = 8, interleaved = false},
              {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.compute_set"() ({
    "ipu.vertex"(%x) {codelet = "c", op_name = "o", mapping = [[0, 3]], words = [{operand = 0, offset = 0}, 1], state = 0, cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{word 1 of a vertex of 's' has 3 numbers for 4 tiles}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f16", align = 8, interleaved = false},
              {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.compute_set"() ({
    "ipu.vertex"(%x) {codelet = "c", op_name = "o", mapping = [[0, 3]], words = [{operand = 0, offset = 0}, array<i64: 1, 2, 3>], state = 0, cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{word 0 of a vertex of 's' points to operand 1 of 1}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f16", align = 8, interleaved = false},
              {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.compute_set"() ({
    "ipu.vertex"(%x) {codelet = "c", op_name = "o", mapping = [[0, 3]], words = [{operand = 1, offset = 0}, 4], state = 0, cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{'ipu.codelet' op kind is "single", expected one of multi, supervisor}}
  "ipu.codelet"() {sym_name = "c", kind = "single", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f16", align = 8, interleaved = false},
              {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{field 'n' is of kind u64, expected one of in, out, inout, scratch, u32, i32, f32}}
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f16", align = 8, interleaved = false},
              {name = "n", kind = "u64", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{expected texts, a number and whether it is interleaved}}
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f16", align = 8, interleaved = i64}]} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{has two fields 'out'}}
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f16", align = 8, interleaved = false},
              {name = "out", kind = "u32", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{apart holds ['out', 'm'], expected two of its fields}}
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [["out", "m"]], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f16", align = 8, interleaved = false},
              {name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{'ipu.pattern' op runs has shape [1, 3], expected [n, 9]}}
  "ipu.pattern"() {sym_name = "p", constants = [], runs = dense<[[0, 1, 2]]> : tensor<1x3xi32>, fills = dense<> : tensor<0x5xi32>,
    fill_values = dense<> : tensor<0xi32>} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{fills has shape [1, 5] and fill_values [2], expected [n, 5] and [n]}}
  "ipu.pattern"() {sym_name = "p", constants = [], runs = dense<> : tensor<0x9xi32>, fills = dense<[[0, 0, 2, 1, 0]]> : tensor<1x5xi32>,
    fill_values = dense<[0, 0]> : tensor<2xi32>} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{fill_values name constants outside 0 .. -1}}
  "ipu.pattern"() {sym_name = "p", constants = [], runs = dense<> : tensor<0x9xi32>, fills = dense<[[0, 0, 2, 1, 0]]> : tensor<1x5xi32>,
    fill_values = dense<[0]> : tensor<1xi32>} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{runs holds a negative tile or offset, or a piece of no bytes}}
  "ipu.pattern"() {sym_name = "p", constants = [], runs = dense<[[0, 1, 0, 0, 0, 0, 1, 0, 0]]> : tensor<1x9xi32>, fills = dense<> : tensor<0x5xi32>,
    fill_values = dense<> : tensor<0xi32>} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{has no 'runs', expected dense<...> : tensor<...xi32>}}
  "ipu.pattern"() {sym_name = "p", constants = []} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{'ipu.table' op elements has shape [3], expected [tiles, slots]}}
  "ipu.table"() {sym_name = "t", elements = dense<[0, 1, 2]> : tensor<3xi32>} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  // expected-error @+1 {{'ipu.host' op direction is "sideways", expected one of weight, input, output}}
  "ipu.host"(%x) {name = "x", direction = "sideways", element = f16, shape = [8], pieces = [{operand = 0, table = "t", fill = "0"}]} : (!ipu.tensor) -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  // expected-error @+1 {{a piece is of operand 1, expected -1 or one of the 1 operands}}
  "ipu.host"(%x) {name = "x", direction = "input", element = f16, shape = [8], pieces = [{operand = 1, table = "t", fill = "0"}]} : (!ipu.tensor) -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{uses 't', which no ipu.table before it defines}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.host"(%x) {name = "x", direction = "input", element = f16, shape = [8], pieces = [{operand = 0, table = "t", fill = "0"}]} : (!ipu.tensor) -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{uses 'p', which no ipu.pattern before it defines}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({
    "ipu.copy"(%x, %x) {sym_name = "c", kind = "shift", op_name = "o", pattern = "p", bytes = 1, cycles = 1} : (!ipu.tensor, !ipu.tensor) -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{'ipu.codelet' op apart holds [3], expected two of its fields}}
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [3], assembly = "", cpp_reference = "", fields = []} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{'ipu.codelet' op field is 3, expected a dictionary}}
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "", fields = [3]} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{'ipu.host' op piece is 3, expected a dictionary}}
  "ipu.host"() {name = "x", direction = "input", element = f16, shape = [8], pieces = [3]} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{'ipu.host' op piece has operand = "x", expected an integer}}
  "ipu.host"() {name = "x", direction = "input", element = f16, shape = [8], pieces = [{operand = "x", table = "t"}]} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{'ipu.host' op shape holds "x", expected integers only}}
  "ipu.host"() {name = "x", direction = "input", element = f16, shape = ["x"], pieces = []} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{word has operand = "x", expected an integer}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "out", kind = "out", dtype = "f16", align = 8, interleaved = false}]} : () -> ()
  "ipu.compute_set"() ({
    "ipu.vertex"(%x) {codelet = "c", op_name = "o", mapping = [[0, 3]], words = [{operand = "x", offset = 0}], state = 0, cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error@+1 {{copy 'c' reads source 1 of 1}}
"ipu.graph"() ({
  %a = "ipu.alloc"() {sym_name = "a", role = "weight", element = f16, shape = [4], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.pattern"() {sym_name = "p", constants = [], runs = dense<[[1, 1, 0, 0, 0, 4, 1, 0, 0]]> : tensor<1x9xi32>,
    fills = dense<> : tensor<0x5xi32>, fill_values = dense<> : tensor<0xi32>} : () -> ()
  "ipu.sequence"() ({
    "ipu.copy"(%a, %a) {sym_name = "c", kind = "shift", op_name = "x", pattern = "p", bytes = 4, cycles = 4} : (!ipu.tensor, !ipu.tensor) -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()

// -----

// expected-error@+1 {{copy 'c' writes bytes 6 to 10 of 'a' on tile 0, which has 8 on 4 tiles}}
"ipu.graph"() ({
  %a = "ipu.alloc"() {sym_name = "a", role = "weight", element = f16, shape = [4], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.pattern"() {sym_name = "p", constants = [], runs = dense<[[0, 1, 0, 0, 6, 4, 1, 0, 0]]> : tensor<1x9xi32>,
    fills = dense<> : tensor<0x5xi32>, fill_values = dense<> : tensor<0xi32>} : () -> ()
  "ipu.sequence"() ({
    "ipu.copy"(%a, %a) {sym_name = "c", kind = "shift", op_name = "x", pattern = "p", bytes = 4, cycles = 4} : (!ipu.tensor, !ipu.tensor) -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()

// -----

// expected-error@+1 {{copy 'c' has bytes = 2, expected 4: the most that a tile receives}}
"ipu.graph"() ({
  %a = "ipu.alloc"() {sym_name = "a", role = "weight", element = f16, shape = [4], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.pattern"() {sym_name = "p", constants = [], runs = dense<[[0, 1, 0, 0, 0, 4, 1, 0, 0]]> : tensor<1x9xi32>,
    fills = dense<> : tensor<0x5xi32>, fill_values = dense<> : tensor<0xi32>} : () -> ()
  "ipu.sequence"() ({
    "ipu.copy"(%a, %a) {sym_name = "c", kind = "shift", op_name = "x", pattern = "p", bytes = 2, cycles = 4} : (!ipu.tensor, !ipu.tensor) -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()

// -----

// expected-error@+1 {{copy 'c' moves parts of elements of 2 bytes}}
"ipu.graph"() ({
  %a = "ipu.alloc"() {sym_name = "a", role = "weight", element = f16, shape = [4], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.pattern"() {sym_name = "p", constants = [], runs = dense<[[0, 1, 1, 0, 0, 4, 1, 0, 0]]> : tensor<1x9xi32>,
    fills = dense<> : tensor<0x5xi32>, fill_values = dense<> : tensor<0xi32>} : () -> ()
  "ipu.sequence"() ({
    "ipu.copy"(%a, %a) {sym_name = "c", kind = "shift", op_name = "x", pattern = "p", bytes = 4, cycles = 4} : (!ipu.tensor, !ipu.tensor) -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error@+1 {{runs holds a distance between pieces of which there is one, expected 0}}
  "ipu.pattern"() {sym_name = "p", constants = [], runs = dense<[[0, 1, 0, 0, 0, 4, 1, 8, 0]]> : tensor<1x9xi32>,
    fills = dense<> : tensor<0x5xi32>, fill_values = dense<> : tensor<0xi32>} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()

// -----

// expected-error@+1 {{'t' names elements outside 0 .. 2 of 'x'}}
"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [2], address = 0, mapping = [[0, 1]]} : () -> !ipu.tensor
  "ipu.table"() {sym_name = "t", elements = dense<[[0, 1], [3, -1]]> : tensor<2x2xi32>} : () -> ()
  "ipu.host"(%x) {name = "x", direction = "input", element = f16, shape = [3],
                  pieces = [{operand = 0, table = "t", fill = "0"}]} : (!ipu.tensor) -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()

// -----

// expected-error@+1 {{regions begin at [0, 64, 32, 128, 128, 128, 256], expected 0 and then ascending numbers}}
"ipu.graph"() ({
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536,
    regions = {code = 0, state = 64, scratch = 32, stack = 128, exchange = 128, free = 128, data = 256}} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error@+1 {{kind is "paint", expected one of fill, sub_task, combine, epilogue}}
  "ipu.compute_set"() ({ }) {sym_name = "s", kind = "paint"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error@+1 {{cycles = 7, expected 0: the slowest vertex}}
  "ipu.compute_set"() ({ }) {sym_name = "s", cycles = 7} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536} : () -> ()

// -----

// expected-error@+1 {{vertices of 'a' and 'b' have different words at byte 64}}
"ipu.graph"() ({
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [],
    fields = [{name = "n", kind = "u32", dtype = "", align = 4, interleaved = false}], assembly = "...",
    cpp_reference = "return true;"} : () -> ()
  "ipu.compute_set"() ({
    "ipu.vertex"() {codelet = "c", op_name = "x", mapping = [[0, 3]], cycles = 6, state = 64, words = [1]} : () -> ()
  }) {sym_name = "a"} : () -> ()
  "ipu.compute_set"() ({
    "ipu.vertex"() {codelet = "c", op_name = "x", mapping = [[0, 3]], cycles = 6, state = 64, words = [2]} : () -> ()
  }) {sym_name = "b"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 65536,
    regions = {code = 0, state = 64, scratch = 128, stack = 128, exchange = 128, free = 128, data = 256}} : () -> ()

// -----

"ipu.graph"() ({
  // expected-error @+1 {{has a field 'class': C++ or Poplar has that word}}
  "ipu.codelet"() {sym_name = "c", kind = "multi", summary = "", stack_bytes = 0, apart = [], assembly = "", cpp_reference = "",
    fields = [{name = "class", kind = "u32", dtype = "", align = 4, interleaved = false}]} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  "ipu.sequence"() ({
    // expected-error @+1 {{'ipu.repeat' op count = 4294967297, expected 1 to 1048576}}
    "ipu.repeat"() ({ }) {count = 4294967297} : () -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{no piece of output 'y' has element 2 of 3}}
"ipu.graph"() ({
  %y = "ipu.alloc"() {sym_name = "y", role = "output", element = f16, shape = [2], address = 0, mapping = [[0, 0]]} : () -> !ipu.tensor
  "ipu.table"() {sym_name = "t", elements = dense<[[0, 1]]> : tensor<1x2xi32>} : () -> ()
  "ipu.host"(%y) {name = "y", direction = "output", element = f16, shape = [3],
                  pieces = [{operand = 0, table = "t", fill = "0"}]} : (!ipu.tensor) -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()
