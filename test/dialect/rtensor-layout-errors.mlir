// RUN: t10-opt --split-input-file --verify-diagnostics %s

// expected-error @+1 {{'func.func' op argument #0: fs[0] = 8 cuts extent 4 into more pieces than elements, expected at most 4}}
func.func private @pieces(tensor<4x4xf16, #rtensor.layout<{fs = [8, 1], ft = [1, 1], rp = [0, 0]}>>)

// -----

// expected-error @+1 {{argument #1: fs has 1 entries for a rank-2 tensor, expected 2}}
func.func private @rank_fs(i32, tensor<4x4xf16, #rtensor.layout<{fs = [2], ft = [1, 1], rp = [0, 0]}>>)

// -----

// expected-error @+1 {{result #0: ft has 3 entries for a rank-2 tensor, expected 2}}
func.func private @rank_ft() -> tensor<4x4xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 1, 1], rp = [0, 0]}>>

// -----

// expected-error @+1 {{rp has 0 entries for a rank-2 tensor, expected 2}}
func.func private @rank_rp(tensor<4x4xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 1], rp = []}>>)

// -----

// expected-error @+1 {{prod(ft) = 4 does not divide the 6 cores that share a sub-tensor}}
func.func private @sharers(tensor<8x8xf16, #rtensor.layout<{fs = [2, 1], ft = [2, 2], rp = [2, 2], cores = 6}>>)

// -----

// 8 elements in 1 piece, cut 4x in time: 2 elements per partition.
// expected-error @+1 {{rp[1] = 3 is larger than a partition of 2 elements (extent 8, fs 1, ft 4)}}
func.func private @pace(tensor<8x8xf16, #rtensor.layout<{fs = [2, 1], ft = [1, 4], rp = [0, 3]}>>)

// -----

// expected-error @+1 {{rp[0] = 2 but ft[0] = 1: a dim that is not cut in time does not rotate, expected 0}}
func.func private @still(tensor<8x8xf16, #rtensor.layout<{fs = [1, 1], ft = [1, 4], rp = [2, 2]}>>)

// -----

// expected-error @+1 {{ft[0] = 5 cuts a sub-tensor of 4 elements, expected at most 4}}
func.func private @too_thin(tensor<8xf16, #rtensor.layout<{fs = [2], ft = [5], rp = [1]}>>)

// -----

// expected-error @+1 {{fs[0] = 0, expected at least 1}}
func.func private @zero(tensor<8xf16, #rtensor.layout<{fs = [0], ft = [1], rp = [0]}>>)

// -----

// expected-error @+1 {{rp[0] = -1, expected at least 0}}
func.func private @negative(tensor<8xf16, #rtensor.layout<{fs = [1], ft = [2], rp = [-1]}>>)

// -----

// 8 cores in rings of 2 hold 4 copies.
// expected-error @+1 {{scatter = 3 does not divide the 4 copies of a sub-tensor}}
func.func private @scatter(tensor<8xf16, #rtensor.layout<{fs = [1], ft = [2], rp = [4], cores = 8, scatter = 3}>>)

// -----

// expected-error @+1 {{layout has no 'rp' (found fs, ft)}}
func.func private @missing(tensor<8xf16, #rtensor.layout<{fs = [1], ft = [2]}>>)

// -----

// expected-error @+1 {{layout has an unknown key 'fss' (expected fs, ft, rp, cores, scatter, halo, padded, linear)}}
func.func private @unknown(tensor<8xf16, #rtensor.layout<{fss = [1], ft = [2], rp = [0]}>>)

// -----

// expected-error @+1 {{fs is 2, expected an array of integers such as [2, 1]}}
func.func private @not_an_array(tensor<8xf16, #rtensor.layout<{fs = 2, ft = [1], rp = [0]}>>)

// -----

// expected-error @+1 {{ft holds x, expected integers only}}
func.func private @not_an_integer(tensor<8xf16, #rtensor.layout<{fs = [2], ft = ["x"], rp = [0]}>>)

// -----

// expected-error @+1 {{layout cores is 0, expected a positive integer}}
func.func private @no_cores(tensor<8xf16, #rtensor.layout<{fs = [2], ft = [1], rp = [0], cores = 0}>>)

// -----

// expected-error @+1 {{linear layout has an unknown key 'fs' (expected linear)}}
func.func private @two_forms(tensor<8xf16, #rtensor.layout<{linear = 4, fs = [2]}>>)

// -----

// expected-error @+1 {{layout on the dynamic shape of tensor<?xf16, #rtensor.layout<{fs = [1], ft = [1], rp = [0]}>>, expected a static shape}}
func.func private @dynamic(tensor<?xf16, #rtensor.layout<{fs = [1], ft = [1], rp = [0]}>>)

// -----

// expected-error @+1 {{expected base attribute 'builtin.dictionary' but got 'builtin.array'}}
func.func private @not_a_dictionary(tensor<8xf16, #rtensor.layout<[2, 1]>>)

// -----

// Layouts on results of operations of other dialects, and on region arguments.
func.func @anywhere(%x: tensor<8xf16>, %n: index) {
  // expected-error @+1 {{'tensor.cast' op result #0: fs[0] = 9 cuts extent 8 into more pieces than elements}}
  %y = tensor.cast %x : tensor<8xf16> to tensor<8xf16, #rtensor.layout<{fs = [9], ft = [1], rp = [0]}>>
  return
}

// -----

#a = #rtensor.layout<{fs = [2, 1], ft = [1, 4], rp = [0, 2]}>
#b = #rtensor.layout<{fs = [1, 1], ft = [2, 1], rp = [4, 0]}>
func.func @one_pace(%x: tensor<4x8xf16, #a>, %w: tensor<8x2xf16, #b>, %o: tensor<4x2xf16>) {
  // expected-error @+1 {{'linalg.matmul' op operand #1 rotates by rp = 4 along axis 2, operand #0 by 2, expected one pace on a shared axis}}
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf16, #a>, tensor<8x2xf16, #b>) outs(%o : tensor<4x2xf16>) -> tensor<4x2xf16>
  return
}

// -----

// expected-error @+1 {{padded[0] = 7, expected at least the extent 8}}
func.func private @padded_is_no_less(tensor<8xf16, #rtensor.layout<{fs = [1], ft = [2], padded = [7], rp = [4]}>>)

// -----

// Without padding, ft = 3 cuts 7 elements in pieces of 3, which cannot hand on 4 of them.
// expected-error @+1 {{rp[0] = 4 is larger than a partition of 3 elements}}
func.func private @not_padded(tensor<7xf16, #rtensor.layout<{fs = [1], ft = [3], rp = [4]}>>)
