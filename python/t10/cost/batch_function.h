// A function of columns of numbers, evaluated for many rows at once: how native search asks a cost model.
//
// Descriptions come from Python (`t10.cost.program.cost_program`): a `Formula` is interpreted here, without the
// interpreter lock; anything else is called back in Python.

#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>

namespace t10 {

class BatchFunction {
 public:
  virtual ~BatchFunction() = default;

  virtual std::size_t n_inputs() const = 0;

  // Writes the result of rows 0 <= k < n to out[k]; inputs[i][k] is an integer held exactly in a double. `out` overlaps
  // no input. Thread safe, called without the interpreter lock: one that calls Python takes it itself, and passes an
  // exception of the called function on (nanobind::python_error).
  virtual void evaluate(const double *const *inputs, std::size_t n, double *out) const = 0;
};

// Returns the function a description stands for: a `t10.cost.formula.Formula`, or a `t10.cost.program.CostCallable`.
// Call with the interpreter lock. Throws std::invalid_argument where a formula is malformed.
std::unique_ptr<BatchFunction> batch_function(nanobind::handle description);

}  // namespace t10
