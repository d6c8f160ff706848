// The operator whose plans are searched: its geometry, and the bytes and fetch cycles of one operand's partition.
//
// All numbers equal those of t10.plan.search.evaluate, which is the reference. Arrays over axes follow OperatorSpec.axes;
// "slot" numbers the rotatable operands, inputs first, output last.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../../core/chunks.h"

namespace t10::search {

constexpr std::size_t kMaxAxes = 16;
constexpr std::size_t kMaxSlots = 16;
constexpr std::int64_t kMostLength = std::int64_t{1} << 31;

constexpr std::array<std::int64_t, 3> kLineUnits{16, 8, 4};
constexpr std::int64_t kLeastUseful = 15;

using Axes = std::array<std::int64_t, kMaxAxes>;
using Mask = std::uint32_t;

inline bool has(Mask mask, std::size_t axis) { return (mask >> axis & 1U) != 0; }

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

struct Term {
  std::size_t axis;
  std::int64_t coefficient;
};

struct Dim {
  std::vector<Term> terms;
  std::int64_t size;
};

struct Operand {
  std::vector<Dim> dims;
  std::int64_t item_bytes = 0;  // as it lies; the output as its accumulator
  bool is_weight = false;
  Mask axes = 0;
  Mask simple = 0;    // axes that only occur in dims of their own
  Mask rotating = 0;  // axes along which it may rotate
  std::vector<std::size_t> plain;   // axes that are dims by themselves
  std::vector<std::size_t> others;  // other dims over axes

  // Elements of a partition with the given windows along the axes.
  std::int64_t n_elements(const Axes &windows) const {
    std::int64_t total = 1;
    for (const std::size_t axis : plain) total *= windows[axis];
    for (const std::size_t dim : others) total *= extent(dims[dim], windows);
    return total;
  }

  // A lower bound of t * n_elements(windows) for all t and windows that cut parts of `lengths` t-fold along axes of
  // `cut`. Windows of a dim over several axes overlap, but strided ones may leave gaps, so that they are not all of it.
  std::int64_t n_covered(const Axes &lengths, Mask cut) const {
    std::int64_t total = 1;
    for (const std::size_t axis : plain) total *= lengths[axis];
    for (const std::size_t dim : others) {
      std::int64_t rest = 1;
      for (const Term &term : dims[dim].terms)
        if (!has(cut, term.axis)) rest += term.coefficient * (lengths[term.axis] - 1);
      std::int64_t covered = rest;
      for (const Term &term : dims[dim].terms)
        if (has(cut, term.axis))
          covered = std::max(covered, std::min(rest + term.coefficient * (lengths[term.axis] - 1),
                                               rest * lengths[term.axis]));
      total *= covered;
    }
    return total;
  }

  // Separate runs of the row-major tensor that a partition consists of.
  std::int64_t n_runs(const Axes &windows) const {
    std::int64_t runs = 1;
    bool is_whole = true;
    for (std::size_t i = dims.size(); i-- > 0;) {
      const std::int64_t length = extent(dims[i], windows);
      if (!is_whole) runs *= length;
      is_whole = is_whole && length >= dims[i].size;
    }
    return runs;
  }

  static std::int64_t extent(const Dim &dim, const Axes &windows) {
    std::int64_t length = 1;
    for (const Term &term : dim.terms) length += term.coefficient * (windows[term.axis] - 1);
    return length;
  }
};

struct Problem {
  std::size_t n_axes = 0;
  Axes extents{};
  Mask lines = 0;  // axes whose parts are rounded up, see part_length
  std::vector<Operand> slots;           // rotatable operands
  std::vector<Operand> epilogue_inputs;
  std::vector<std::size_t> run_axes;  // axes whose windows of the output multiply to a run of its epilogue
  bool has_accumulator = false;  // the result is of another type, so that it lies beside its accumulator
  std::int64_t result_item_bytes = 0;
  std::int64_t alignment = 1;
  std::int64_t capacity_bytes = 0;
  double padding = 0.0;
  // An exchange phase from anywhere: first fragment of no bytes, each byte, each further fragment.
  double fetch_base = 0.0;
  double fetch_per_byte = 0.0;
  double fetch_per_run = 0.0;
  double shift_per_byte = 0.0;  // at least, see ShiftTable
  bool has_seconds = false;     // an input that rotates has a second window, in which the next one arrives

  std::size_t output() const { return slots.size() - 1; }

  std::int64_t aligned(std::int64_t n_bytes) const { return (n_bytes + alignment - 1) / alignment * alignment; }

  // Elements that lie in one even row, of the `n_results` that a core ends with.
  std::int64_t epilogue_run(const Axes &windows, std::int64_t n_results) const {
    std::int64_t run = 1;
    for (const std::size_t axis : run_axes) run *= windows[axis];
    return std::min(run, n_results);
  }

  double fetch_cycles(std::int64_t n_bytes, std::int64_t runs) const {
    return fetch_base + std::ceil(static_cast<double>(n_bytes) * fetch_per_byte) +
           static_cast<double>(runs - 1) * fetch_per_run;
  }

  // L0 of an axis in so many parts: along lines, rounded up to what code takes at once if little is wasted
  // (t10.core.lengths).
  std::int64_t part_length(std::size_t axis, std::int64_t parts) const {
    const std::int64_t length = ceil_div(extents[axis], parts);
    if (!has(lines, axis)) return length;
    for (const std::int64_t unit : kLineUnits) {
      const std::int64_t rounded = ceil_div(length, unit) * unit;
      if (kLeastUseful * parts * rounded <= (kLeastUseful + 1) * extents[axis]) return rounded;
    }
    return length;
  }

  // A part of `length` keeps the padding constraint where it is the shortest possible or wastes little. Parts that 31
  // bits cannot count are no parts.
  bool is_padding_kept(std::size_t axis, std::int64_t parts, std::int64_t shortest, std::int64_t length) const {
    return length == shortest || (length < kMostLength && static_cast<double>(extents[axis]) >=
                                                              padding * static_cast<double>(parts * length));
  }

  // The longest part of an axis that keeps it.
  std::int64_t longest(std::size_t axis, std::int64_t parts) const {
    const std::int64_t shortest = part_length(axis, parts);
    const double most = std::floor(static_cast<double>(extents[axis]) / (padding * static_cast<double>(parts))) + 1.0;
    const auto limit = static_cast<double>(kMostLength);
    return std::max(shortest, static_cast<std::int64_t>(most < limit ? most : limit));  // no padding, no limit
  }

  std::int64_t n_sharers(std::size_t slot, const Axes &f_op) const {
    std::int64_t product = 1;
    for (std::size_t axis = 0; axis < n_axes; ++axis)
      if (!has(slots[slot].axes, axis)) product *= f_op[axis];
    return product;
  }
};

// What a reduction and the epilogue behind it are priced by.
using ReductionKey = std::array<std::int64_t, 3>;  // members, elements of each before the reduction, run of the epilogue

inline ReductionKey reduction_key(const Problem &problem, const Axes &windows, std::int64_t n_elements,
                                  std::int64_t n_members) {
  return {n_members, n_elements, problem.epilogue_run(windows, window_chunk(n_elements, n_members))};
}

// What one operand's partition costs by itself: bytes per core, and cycles to fetch it.
struct Holding {
  std::int64_t n_bytes = 0;
  double fetch = 0.0;
};

// The holding of an input whose windows are given, and how many elements that makes.
inline Holding input_holding(const Problem &problem, const Operand &operand, const Axes &windows,
                             std::int64_t n_elements) {
  const std::int64_t n_bytes = n_elements * operand.item_bytes;
  Holding result{problem.aligned(n_bytes), 0.0};
  if (!operand.is_weight) result.fetch = problem.fetch_cycles(n_bytes, operand.n_runs(windows));
  return result;
}

// The holding of the output with `n_members` cores that have partial sums of it: accumulator, result, epilogue inputs.
inline Holding output_holding(const Problem &problem, const Axes &windows, std::int64_t n_elements,
                              std::int64_t n_members) {
  Holding result{problem.aligned(n_elements * problem.slots.back().item_bytes), 0.0};
  if (problem.has_accumulator || n_members > 1)
    result.n_bytes += problem.aligned(window_chunk(n_elements, n_members) * problem.result_item_bytes);
  for (const Operand &operand : problem.epilogue_inputs) {
    const Holding one = input_holding(problem, operand, windows, operand.n_elements(windows));
    result.n_bytes += one.n_bytes;
    result.fetch += one.fetch;
  }
  return result;
}

}  // namespace t10::search
