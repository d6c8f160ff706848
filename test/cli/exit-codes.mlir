// What users get wrong ends with its own exit code and one line that says what was found and expected.
// (3, 4 and 70 on real models: test/unit/test_cli.py.)
// RUN: not t10 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: not t10 compil x 2>&1 | filecheck %s --check-prefix=COMMAND
// RUN: not t10 compile %t.absent.onnx -o %t 2>&1 | filecheck %s --check-prefix=ABSENT
// RUN: not t10 compile %s -o %t --chip ipu-mk3 2>&1 | filecheck %s --check-prefix=CHIP
// RUN: not t10 compile %s -o %t --chip test-4 --padding 2 2>&1 | filecheck %s --check-prefix=PADDING
// RUN: not t10 compile %s -o %t --chip test-4 --shape x=4xb 2>&1 | filecheck %s --check-prefix=SHAPE
// RUN: not t10 compile %s -o %t --chip test-4 --shape x=4 --shape x=5 2>&1 | filecheck %s --check-prefix=TWICE
// RUN: not t10 run %t.absent 2>&1 | filecheck %s --check-prefix=FOLDER
// RUN: not t10 verify %s --chip test-4 2>&1 | filecheck %s --check-prefix=REFERENCE
// RUN: not t10 verify %s --chip test-4 --tolerance -1 2>&1 | filecheck %s --check-prefix=TOLERANCE
// RUN: not t10 compile %s -o %s/out --chip test-4 2>&1 | filecheck %s --check-prefix=WRITE
// RUN: t10 --version | filecheck %s --check-prefix=VERSION
// RUN: t10 chips | filecheck %s --check-prefix=CHIPS

// NOTHING: the following arguments are required: COMMAND
// COMMAND: invalid choice: 'compil'
// ABSENT: t10: error: {{.*}}absent.onnx does not exist
// CHIP: t10: error: unknown chip 'ipu-mk3' (expected one of {{.*}}ipu-mk2
// PADDING: t10: error: padding is 2.0 (expected a ratio from 0 to 1)
// SHAPE: t10: error: --shape 'x=4xb' is malformed
// TWICE: t10: error: --shape x is given twice
// FOLDER: t10: error: {{.*}}absent is not a folder (make one with `t10 compile MODEL -o FOLDER`)
// REFERENCE: t10: error: {{.*}} holds no ONNX operators, so ONNX Runtime cannot run it
// TOLERANCE: t10: error: --tolerance is -1.0, expected a finite number of at least 0
// WRITE: t10: error: cannot write folder
// VERSION: t10 {{[0-9]+\.[0-9]+}}
// CHIPS: ipu-mk2 {{.*}} 1,472

func.func @double(%x: tensor<4xf32> {t10.name = "x"}) -> (tensor<4xf32> {t10.name = "y"}) {
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.add ins(%x, %x : tensor<4xf32>, tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
