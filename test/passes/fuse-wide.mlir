// RUN: t10-opt --t10-fuse %s | filecheck %s
// RUN: t10-opt --t10-fuse --t10-fuse %s | filecheck %s
// RUN: t10-opt --t10-fuse=partials=f16 %s | filecheck %s --check-prefix=NARROW

#row = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> (i)>
#id = affine_map<(i) -> (i)>

// The root of a mean of squares: nothing is rounded before the result.
// CHECK-LABEL: func.func @root_mean_square
// CHECK: %[[X:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: arith.mulf %[[X]], %[[X]] : f32
// CHECK: %[[M:.*]] = arith.divf %{{.*}}, %{{.*}} : f32
// CHECK: %[[R:.*]] = math.sqrt %[[M]] : f32
// CHECK: arith.truncf %[[R]] : f32 to f16
// Nor is it with partial sums of f16: reductions are summed in f32.
// NARROW-LABEL: func.func @root_mean_square
// NARROW: %[[X:.*]] = arith.extf %{{.*}} : f16 to f32
// NARROW: arith.mulf %[[X]], %[[X]] : f32
// NARROW: arith.truncf %{{.*}} : f32 to f16
func.func @root_mean_square(%x: tensor<4x64xf16>) -> tensor<4xf16> {
  %zero = arith.constant 0.0 : f16
  %n = arith.constant 64.0 : f16
  %empty = tensor.empty() : tensor<4xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<4xf16>) -> tensor<4xf16>
  %sum = linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x64xf16>) outs(%init : tensor<4xf16>) {
  ^bb0(%e: f16, %acc: f16):
    %square = arith.mulf %e, %e : f16
    %total = arith.addf %acc, %square : f16
    linalg.yield %total : f16
  } -> tensor<4xf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%sum : tensor<4xf16>) outs(%empty : tensor<4xf16>) {
  ^bb0(%s: f16, %o: f16):
    %mean = arith.divf %s, %n : f16
    %root = math.sqrt %mean : f16
    linalg.yield %root : f16
  } -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// 4,097 terms: f16 has 4096 and 4100. The mean divides by what was summed; 4096 of 4,093 terms is another number.
// NARROW-LABEL: func.func @count
// CHECK-LABEL: func.func @count
// CHECK-DAG: arith.constant 4.097000e+03 : f32
// CHECK-DAG: arith.constant 4.096000e+03 : f32
func.func @count(%x: tensor<4x4097xf16>, %z: tensor<4x4093xf16>) -> (tensor<4xf16>, tensor<4xf16>) {
  %zero = arith.constant 0.0 : f16
  %n = arith.constant 4096.0 : f16
  %empty = tensor.empty() : tensor<4xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<4xf16>) -> tensor<4xf16>
  %sum = linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x4097xf16>) outs(%init : tensor<4xf16>) {
  ^bb0(%e: f16, %acc: f16):
    %total = arith.addf %acc, %e : f16
    linalg.yield %total : f16
  } -> tensor<4xf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%sum : tensor<4xf16>) outs(%empty : tensor<4xf16>) {
  ^bb0(%s: f16, %o: f16):
    %mean = arith.divf %s, %n : f16
    linalg.yield %mean : f16
  } -> tensor<4xf16>
  %other = linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
    ins(%z : tensor<4x4093xf16>) outs(%init : tensor<4xf16>) {
  ^bb0(%e: f16, %acc: f16):
    %total = arith.addf %acc, %e : f16
    linalg.yield %total : f16
  } -> tensor<4xf16>
  %w = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%other : tensor<4xf16>) outs(%empty : tensor<4xf16>) {
  ^bb0(%s: f16, %o: f16):
    %mean = arith.divf %s, %n : f16
    linalg.yield %mean : f16
  } -> tensor<4xf16>
  return %y, %w : tensor<4xf16>, tensor<4xf16>
}

// A sum of f32 that the model itself rounds is rounded where it says so.
// CHECK-LABEL: func.func @own_cast
// CHECK: %[[H:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK: arith.addf %[[H]], %{{.*}} : f16
func.func @own_cast(%x: tensor<4x64xf32>, %b: tensor<4xf16>) -> tensor<4xf16> {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<4xf32>
  %narrow = tensor.empty() : tensor<4xf16>
  %init = linalg.fill ins(%zero : f32) outs(%wide : tensor<4xf32>) -> tensor<4xf32>
  %sum = linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x64xf32>) outs(%init : tensor<4xf32>) {
  ^bb0(%e: f32, %acc: f32):
    %total = arith.addf %acc, %e : f32
    linalg.yield %total : f32
  } -> tensor<4xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]}
    ins(%sum, %b : tensor<4xf32>, tensor<4xf16>) outs(%narrow : tensor<4xf16>) {
  ^bb0(%s: f32, %c: f16, %o: f16):
    %half = arith.truncf %s : f32 to f16
    %more = arith.addf %half, %c : f16
    linalg.yield %more : f16
  } -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// A comparison reads what is not rounded; bits are those of the rounded number.
// CHECK-LABEL: func.func @compared
// CHECK: ^bb0(%[[S:.*]]: f32, %{{.*}}: f16):
// CHECK-DAG: arith.cmpf ogt, %[[S]], %{{.*}} : f32
// CHECK-DAG: %[[H:.*]] = arith.truncf %[[S]] : f32 to f16
// CHECK-DAG: arith.bitcast %[[H]] : f16 to i16
func.func @compared(%x: tensor<4x64xf16>) -> tensor<4xf16> {
  %zero = arith.constant 0.0 : f16
  %three = arith.constant 3 : i16
  %empty = tensor.empty() : tensor<4xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<4xf16>) -> tensor<4xf16>
  %sum = linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x64xf16>) outs(%init : tensor<4xf16>) {
  ^bb0(%e: f16, %acc: f16):
    %total = arith.addf %acc, %e : f16
    linalg.yield %total : f16
  } -> tensor<4xf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%sum : tensor<4xf16>) outs(%empty : tensor<4xf16>) {
  ^bb0(%s: f16, %o: f16):
    %positive = arith.cmpf ogt, %s, %zero : f16
    %bits = arith.bitcast %s : f16 to i16
    %masked = arith.andi %bits, %three : i16
    %low = arith.bitcast %masked : i16 to f16
    %chosen = arith.select %positive, %s, %low : f16
    linalg.yield %chosen : f16
  } -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// A sum with two readers is f32 between operators. The root is f32, too; the large product is not.
// CHECK-LABEL: func.func @shared
// CHECK: %[[S:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<4xf32>)
// CHECK: linalg.yield %{{.*}} : f32
// CHECK: linalg.generic {{.*}} ins(%[[S]] : tensor<4xf32>) outs(%{{.*}} : tensor<4xf16>)
// CHECK: %[[R:.*]] = math.sqrt %{{.*}} : f32
// CHECK: arith.truncf %[[R]] : f32 to f16
// CHECK: linalg.generic {{.*}} ins({{.*}}%[[S]]{{.*}}) outs(%{{.*}} : tensor<4x64xf16>)
// CHECK: %[[H:.*]] = arith.truncf %{{.*}} : f32 to f16
// CHECK: arith.mulf %{{.*}}, %[[H]] : f16
// NARROW-LABEL: func.func @shared
// NARROW: linalg.yield %{{.*}} : f32
func.func @shared(%x: tensor<4x64xf16>, %z: tensor<4x64xf16>) -> (tensor<4xf16>, tensor<4x64xf16>) {
  %zero = arith.constant 0.0 : f16
  %empty = tensor.empty() : tensor<4xf16>
  %large = tensor.empty() : tensor<4x64xf16>
  %init = linalg.fill ins(%zero : f16) outs(%empty : tensor<4xf16>) -> tensor<4xf16>
  %sum = linalg.generic {indexing_maps = [#row, #one], iterator_types = ["parallel", "reduction"]}
    ins(%x : tensor<4x64xf16>) outs(%init : tensor<4xf16>) {
  ^bb0(%e: f16, %acc: f16):
    %total = arith.addf %acc, %e : f16
    linalg.yield %total : f16
  } -> tensor<4xf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
    ins(%sum : tensor<4xf16>) outs(%empty : tensor<4xf16>) {
  ^bb0(%s: f16, %o: f16):
    %root = math.sqrt %s : f16
    linalg.yield %root : f16
  } -> tensor<4xf16>
  %w = linalg.generic {indexing_maps = [#row, #one, #row], iterator_types = ["parallel", "parallel"]}
    ins(%z, %sum : tensor<4x64xf16>, tensor<4xf16>) outs(%large : tensor<4x64xf16>) {
  ^bb0(%e: f16, %s: f16, %o: f16):
    %scaled = arith.mulf %e, %s : f16
    linalg.yield %scaled : f16
  } -> tensor<4x64xf16>
  return %y, %w : tensor<4xf16>, tensor<4x64xf16>
}

// A scale and a bias right behind a product are f32; what has two readers, and all behind it, is f16.
// CHECK-LABEL: func.func @product
// NARROW-LABEL: func.func @product
// CHECK: ^bb0(%[[S:.*]]: f32, %{{.*}}: f16, %{{.*}}: f16):
// CHECK: %[[A:.*]] = arith.mulf %[[S]], %{{.*}} : f32
// CHECK: %[[B:.*]] = arith.addf %[[A]], %{{.*}} : f32
// CHECK: %[[H:.*]] = arith.truncf %[[B]] : f32 to f16
// CHECK: %[[T:.*]] = math.tanh %[[H]] : f16
// CHECK: arith.mulf %[[H]], %[[T]] : f16
func.func @product(%x: tensor<4x64xf16>, %w: tensor<64x8xf16>, %b: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.125 : f16
  %wide = tensor.empty() : tensor<4x8xf32>
  %empty = tensor.empty() : tensor<4x8xf16>
  %init = linalg.fill ins(%zero : f32) outs(%wide : tensor<4x8xf32>) -> tensor<4x8xf32>
  %sum = linalg.matmul ins(%x, %w : tensor<4x64xf16>, tensor<64x8xf16>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  %rounded = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
    ins(%sum : tensor<4x8xf32>) outs(%empty : tensor<4x8xf16>) {
  ^bb0(%s: f32, %o: f16):
    %half = arith.truncf %s : f32 to f16
    linalg.yield %half : f16
  } -> tensor<4x8xf16>
  %y = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]}
    ins(%rounded, %b : tensor<4x8xf16>, tensor<4x8xf16>) outs(%empty : tensor<4x8xf16>) {
  ^bb0(%s: f16, %c: f16, %o: f16):
    %scaled = arith.mulf %s, %scale : f16
    %more = arith.addf %scaled, %c : f16
    %soft = math.tanh %more : f16
    %result = arith.mulf %more, %soft : f16
    linalg.yield %result : f16
  } -> tensor<4x8xf16>
  return %y : tensor<4x8xf16>
}
