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

// expected-error @+1 {{holds arith.constant, expected ipu.alloc, ipu.compute_set or ipu.sequence}}
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
    "ipu.vertex"(%x) {codelet = "c", op_name = "o", mapping = [[9, 9]], cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

// expected-error @+1 {{executes 't', which no ipu.compute_set before it defines}}
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
  // expected-error @+1 {{'ipu.alloc' op role is "thing", expected one of input, output, weight, activation, partial, buffer}}
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
    "ipu.vertex"(%x) {codelet = "", op_name = "o", mapping = [[0, 3]], cycles = 1} : (!ipu.tensor) -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.compute_set"() ({
    // expected-error @+1 {{has no fields, expected at least an output}}
    "ipu.vertex"() {codelet = "c", op_name = "o", mapping = [[0, 3]], cycles = 1} : () -> ()
  }) {sym_name = "s"} : () -> ()
  "ipu.sequence"() ({ }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.compute_set"() ({
    // expected-error @+1 {{cycles = -1, expected a number that is not negative}}
    "ipu.vertex"(%x) {codelet = "c", op_name = "o", mapping = [[0, 3]], cycles = -1} : (!ipu.tensor) -> ()
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
    // expected-error @+1 {{'ipu.copy' op kind is "teleport", expected one of shift, relayout, setup, reduce, input, output}}
    "ipu.copy"(%x, %x) {kind = "teleport", op_name = "o", bytes = 1, rounds = 1, cycles = 1} : (!ipu.tensor, !ipu.tensor) -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({
    // expected-error @+1 {{has 1 operands, expected sources and a target}}
    "ipu.copy"(%x) {kind = "shift", op_name = "o", bytes = 1, rounds = 1, cycles = 1} : (!ipu.tensor) -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({
    // expected-error @+1 {{bytes = -1, expected at least 0}}
    "ipu.copy"(%x, %x) {kind = "shift", op_name = "o", bytes = -1, rounds = 1, cycles = 1} : (!ipu.tensor, !ipu.tensor) -> ()
  }) : () -> ()
}) {sym_name = "main", chip = "test-4", tiles = 4, memory_bytes = 64} : () -> ()

// -----

"ipu.graph"() ({
  %x = "ipu.alloc"() {sym_name = "x", role = "input", element = f16, shape = [8], address = 0, mapping = [[0, 3]]} : () -> !ipu.tensor
  "ipu.sequence"() ({
    // expected-error @+1 {{rounds = 0, expected at least 1}}
    "ipu.copy"(%x, %x) {kind = "shift", op_name = "o", bytes = 1, rounds = 0, cycles = 1} : (!ipu.tensor, !ipu.tensor) -> ()
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
    // expected-error @+1 {{'ipu.repeat' op count = 0, expected at least 1}}
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
