// RUN: t10-opt --verify-roundtrip %s | filecheck %s

// The ratio keeps all its digits: what is searched depends on the last of them.
// CHECK: rtensor.space = #rtensor.space<{at_most = 18955 : i64, cores = 64 : i64, least_cores = 58 : i64, n_f_op = 84 : i64,
// CHECK-SAME: padding = 0.84705882352941175 : f64}>
func.func private @of_options() attributes {rtensor.space = #rtensor.space<{
  cores = 64, least_cores = 58, padding = 0.84705882352941175, n_f_op = 84, at_most = 18955}>}

// CHECK: rtensor.space = #rtensor.space<{aligned = true, at_most = 6 : i64, cores = 64 : i64, f_op = [2, 3], least_cores = 6
func.func private @of_one_f_op() attributes {rtensor.space = #rtensor.space<{
  cores = 64, least_cores = 6, padding = 0.0, n_f_op = 1, at_most = 6, f_op = [2, 3], rp = [0, 2], aligned = true}>}

// CHECK: unrotated = {least_cores = 43 : i64, n_f_op = 400 : i64, padding = 5.000000e-01 : f64}
func.func private @of_more_without_rotation() attributes {rtensor.space = #rtensor.space<{
  cores = 64, least_cores = 58, padding = 0.81, n_f_op = 84, at_most = 19271,
  unrotated = {least_cores = 43, padding = 0.5, n_f_op = 400}}>}
