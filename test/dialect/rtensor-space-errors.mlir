// RUN: t10-opt --split-input-file --verify-diagnostics %s

// expected-error @+1 {{'func.func' op rtensor.space is 3 : i64, expected #rtensor.space<{...}>}}
func.func private @not_a_space() attributes {rtensor.space = 3}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: space has no 'n_f_op' (found at_most, cores, least_cores, padding)}}
func.func private @missing() attributes {rtensor.space = #rtensor.space<{cores = 4, least_cores = 1, padding = 0.9, at_most = 2}>}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: space has an unknown key 'chip'}}
func.func private @unknown() attributes {rtensor.space = #rtensor.space<{chip = "test-4"}>}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: cores is 0, expected a number of at least 1}}
func.func private @no_cores() attributes {rtensor.space = #rtensor.space<{
  cores = 0, least_cores = 1, padding = 0.9, n_f_op = 1, at_most = 2}>}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: least_cores = 5 of cores = 4, expected at most these}}
func.func private @too_many() attributes {rtensor.space = #rtensor.space<{
  cores = 4, least_cores = 5, padding = 0.9, n_f_op = 1, at_most = 2}>}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: padding is 1.5, expected a ratio from 0.0 to 1.0}}
func.func private @ratio() attributes {rtensor.space = #rtensor.space<{
  cores = 4, least_cores = 1, padding = 1.5, n_f_op = 1, at_most = 2}>}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: aligned is 1, expected true or false}}
func.func private @flag() attributes {rtensor.space = #rtensor.space<{
  cores = 4, least_cores = 1, padding = 0.5, n_f_op = 1, at_most = 2, aligned = 1}>}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: rp without f_op: a pace belongs to one F_op}}
func.func private @pace() attributes {rtensor.space = #rtensor.space<{
  cores = 4, least_cores = 1, padding = 0.5, n_f_op = 1, at_most = 2, rp = [1, 0]}>}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: f_op = [2, 3] needs 6 cores, expected at most 4}}
func.func private @cores() attributes {rtensor.space = #rtensor.space<{
  cores = 4, least_cores = 1, padding = 0.5, n_f_op = 1, at_most = 2, f_op = [2, 3]}>}

// -----

func.func @f(%a: tensor<2x6xf16>, %b: tensor<6x3xf16>, %c: tensor<2x3xf16>) {
  // expected-error @+1 {{'linalg.matmul' op rtensor.space: f_op has 2 factors for an operator of 3 axes}}
  %d = linalg.matmul {rtensor.space = #rtensor.space<{
      cores = 64, least_cores = 6, padding = 0.0, n_f_op = 1, at_most = 6, f_op = [2, 3]}>}
    ins(%a, %b : tensor<2x6xf16>, tensor<6x3xf16>) outs(%c : tensor<2x3xf16>) -> tensor<2x3xf16>
  return
}

// -----

// expected-error @+1 {{'func.func' op rtensor.forced: it has an unknown key 'pace'}}
func.func private @forced() attributes {rtensor.forced = {f_op = [2, 3], pace = [1, 0]}}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: unrotated is 3, expected a dictionary}}
func.func private @unrotated_number() attributes {rtensor.space = #rtensor.space<{
  cores = 4, least_cores = 1, padding = 0.9, n_f_op = 1, at_most = 2, unrotated = 3}>}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: unrotated has an unknown key 'cores' (expected least_cores, padding, n_f_op)}}
func.func private @unrotated_unknown() attributes {rtensor.space = #rtensor.space<{
  cores = 4, least_cores = 1, padding = 0.9, n_f_op = 1, at_most = 2, unrotated = {cores = 4}}>}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: unrotated has no 'n_f_op' (found least_cores, padding)}}
func.func private @unrotated_missing() attributes {rtensor.space = #rtensor.space<{
  cores = 4, least_cores = 1, padding = 0.9, n_f_op = 1, at_most = 2, unrotated = {least_cores = 1, padding = 0.5}}>}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: unrotated: least_cores = 5 of cores = 4, expected at most these}}
func.func private @unrotated_cores() attributes {rtensor.space = #rtensor.space<{
  cores = 4, least_cores = 1, padding = 0.9, n_f_op = 1, at_most = 2, unrotated = {least_cores = 5, padding = 0.5, n_f_op = 2}}>}

// -----

// expected-error @+1 {{'func.func' op rtensor.space: unrotated with f_op: further F_op beside the only one}}
func.func private @unrotated_f_op() attributes {rtensor.space = #rtensor.space<{
  cores = 4, least_cores = 1, padding = 0.9, n_f_op = 1, at_most = 2, f_op = [2], unrotated = {least_cores = 1, padding = 0.5, n_f_op = 2}}>}
