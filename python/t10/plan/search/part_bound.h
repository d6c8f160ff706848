// What the steps of a plan that run in parts take at least: each part as long as its slowest core, of a few cores.
//
// The parts are those of `t10.core.contiguous_parts`: where a box crosses the end of some operand's window it is cut.

#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "batch_function.h"

namespace t10::search {

using Integers = std::vector<std::int64_t>;

// A digit of where a core starts: stride * ((number among the sharers / divisor) % modulus).
using Phase = std::tuple<Integers, std::int64_t, std::int64_t, std::int64_t>;

struct PartedAxis {
  std::int64_t extent;
  std::int64_t n_parts;
  std::int64_t length;
  std::int64_t n_steps;
  std::int64_t pace;
  Integers moduli;  // lengths after which parts or windows begin again
  std::vector<Phase> phases;
  bool is_whole;  // padding is run over
  bool is_summed;
};

// Returns the least cycles; `bound` has those of a box. Looks at `most_cores` cores that begin at different places, or at
// fewer: at most `most_parts` parts of all of them.
double least_part_cycles(const BatchFunction &bound, const std::vector<PartedAxis> &axes, const Integers &core_order,
                         std::size_t most_cores, std::size_t most_parts);

}  // namespace t10::search
