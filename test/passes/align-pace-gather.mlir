// RUN: t10-opt --mlir-print-local-scope --t10-align-pace %s | filecheck %s
// RUN: sed "s/f_op = \[2, 1, 2\], ft = \[\[1, 1, 1\], \[1, 1, 1\], \[1, 1, 1\]\]/f_op = [2, 1], ft = [[1, 1], [1, 1], [1, 1]]/" %s | not t10-opt --t10-align-pace 2>&1 | filecheck %s --check-prefix=AXES
// RUN: sed "s/f_op = \[2, 1, 2\]/f_op = [2, 1, 20]/" %s | not t10-opt --t10-align-pace 2>&1 | filecheck %s --check-prefix=PARTS
// RUN: t10-opt --t10-align-pace --t10-place --t10-verify-plan %s | filecheck %s --check-prefix=PLAN

// A gather has an axis more than its linalg op: the rows of the table, of which an index selects one. Plans do not state
// their axes, so where they are read they are checked against the operator.
// CHECK: rtensor.candidates = [#rtensor.plan<{core_order = {{.*}}, f_op = [2, 1, 2], ft = {{\[}}[1, 1, 1], [1, 1, 1], [1, 1, 1]], lengths = [4, 16, 6]
// AXES: error: operator 'embedding': rtensor.candidates: f_op has 2 factors for an operator of 3 axes
// PARTS: error: operator 'embedding': rtensor.candidates: f_op[2] = 20 cuts extent 12 into more parts than it has elements
// PLAN: #grid = #rtensor.grid<{{.*}}f_op = [{{[0-9]+, [0-9]+, [0-9]+}}], lengths
#ids = affine_map<(i, j) -> (i)>
#out = affine_map<(i, j) -> (i, j)>
module attributes {t10.chip = "test-16", t10.cost_model = "ipu"} {
  func.func @main(%ids: tensor<8xi32>, %table: tensor<12x16xf32>) -> tensor<8x16xf32> {
    %empty = tensor.empty() : tensor<8x16xf32>
    %y = linalg.generic {indexing_maps = [#ids, #out], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<8xi32>) outs(%empty : tensor<8x16xf32>) attrs = {op_name = "embedding",
      rtensor.candidates = [#rtensor.plan<{f_op = [2, 1, 2], ft = [[1, 1, 1], [1, 1, 1], [1, 1, 1]]}>]} {
    ^bb0(%id: i32, %o: f32):
      %row = arith.index_cast %id : i32 to index
      %j = linalg.index 1 : index
      %v = tensor.extract %table[%row, %j] : tensor<12x16xf32>
      linalg.yield %v : f32
    } -> tensor<8x16xf32>
    return %y : tensor<8x16xf32>
  }
}
