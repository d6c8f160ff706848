// RUN: not t10-opt --split-input-file %s > %t.out 2> %t.err
// RUN: filecheck %s < %t.out
// RUN: filecheck %s --check-prefix=ERR < %t.err

// Every piece has symbols of its own; line numbers are those of the whole file; good pieces are written.
// CHECK: func.func private @same()
// CHECK: // -----
// CHECK: func.func private @same()
// ERR: split-input-file.mlir:17:3: error: custom op 'nonsense' is unknown
func.func private @same()

// -----

func.func private @same()

// -----
  nonsense
