// RUN: t10-opt %s --split-input-file --verify-diagnostics --t10-partition="chip=test-16"

// An operator writes every element of its result once: these leave some out, or write one twice.

#id = affine_map<(i) -> (i)>
#first = affine_map<(i) -> (i, 0)>
func.func @f(%x: tensor<5xf32>, %o: tensor<5x2xf32>) -> tensor<5x2xf32> {
  // expected-error @below {{of shape [5, 2] is not indexed by single axes, expected one for every dim of more than one}}
  %y = linalg.generic {indexing_maps = [#id, #first], iterator_types = ["parallel"]}
    ins(%x : tensor<5xf32>) outs(%o : tensor<5x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<5x2xf32>
  return %y : tensor<5x2xf32>
}

// -----

#id = affine_map<(i) -> (i)>
#even = affine_map<(i) -> (i * 2)>
func.func @f(%x: tensor<5xf32>, %o: tensor<9xf32>) -> tensor<9xf32> {
  // expected-error @below {{of shape [9] is not indexed by single axes}}
  %y = linalg.generic {indexing_maps = [#id, #even], iterator_types = ["parallel"]}
    ins(%x : tensor<5xf32>) outs(%o : tensor<9xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<9xf32>
  return %y : tensor<9xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
#diagonal = affine_map<(i, j) -> (i, i)>
func.func @f(%x: tensor<5x5xf32>, %o: tensor<5x5xf32>) -> tensor<5x5xf32> {
  // expected-error @below {{expected every parallel axis once, and no other}}
  %y = linalg.generic {indexing_maps = [#id, #diagonal], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<5x5xf32>) outs(%o : tensor<5x5xf32>) {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  } -> tensor<5x5xf32>
  return %y : tensor<5x5xf32>
}
