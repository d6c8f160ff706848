// Whether theorem 1 or 2 of the compute-shift model gives a placement: the test of t10.plan.search.placement, without phases.

#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>

#include "search_problem.h"

namespace t10::search {

// `ft`: rows of all slots one after the other. False means only that the closed forms do not cover the plan.
inline bool has_closed_form(const Problem &problem, const Axes &f_op, const std::int32_t *ft) {
  Mask split = 0;
  for (std::size_t axis = 0; axis < problem.n_axes; ++axis)
    if (f_op[axis] > 1) split |= Mask{1} << axis;
  for (std::size_t axis = 0; axis < problem.n_axes; ++axis) {
    Mask united = 0;
    Mask common = split;
    bool is_disjoint = true;
    bool is_single = true;  // no tensor that rotates along this axis rotates along another
    std::int64_t modulus = 1;
    std::size_t first = problem.slots.size();
    for (std::size_t slot = 0; slot < problem.slots.size(); ++slot) {
      const std::int32_t *row = ft + slot * problem.n_axes;
      if (row[axis] == 1) continue;
      const Mask missing = split & ~problem.slots[slot].axes;
      is_disjoint = is_disjoint && (united & missing) == 0;
      united |= missing;
      common &= missing;
      modulus = std::lcm(modulus, static_cast<std::int64_t>(row[axis]));
      for (std::size_t other = 0; other < problem.n_axes; ++other) is_single &= other == axis || row[other] == 1;
      if (first == problem.slots.size()) first = slot;
    }
    if (is_disjoint) continue;
    const std::int32_t own = ft[problem.output() * problem.n_axes + axis];
    if (united != common || !is_single || problem.n_sharers(first, f_op) % modulus != 0 || (own > 1 && own != modulus))
      return false;
  }
  return true;
}

}  // namespace t10::search
