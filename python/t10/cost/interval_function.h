// Lower bounds of a cost formula over boxes of arguments, by interval arithmetic.
//
// Rounding is monotone, so an interval of doubles that is pushed through the operations of a formula encloses what the
// formula itself gives, bit for bit. Functions that are not formulas have no bound.

#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>

namespace t10 {

class IntervalFunction {
 public:
  virtual ~IntervalFunction() = default;

  // Writes to out[k] a number that the formula is never below where argument i lies in [low[i][k], high[i][k]].
  virtual void least(const double *const *low, const double *const *high, std::size_t n, double *out) const = 0;
};

// Returns the bounds of a `t10.cost.formula.Formula`, nullptr for any other function.
std::unique_ptr<IntervalFunction> interval_function(nanobind::handle description);

}  // namespace t10
