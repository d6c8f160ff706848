// The ft rows of operands under one F_op and given part lengths: what each may do in time, and what that costs by itself.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "search_memo.h"
#include "search_problem.h"

namespace t10::search {

// The ft rows of one slot in lexicographic order.
struct SlotRows {
  std::vector<std::int32_t> ft;       // [row, active axis]
  std::vector<std::int32_t> pace;     // [row, active axis]: L / t
  std::vector<std::int64_t> unit;     // [row, active axis]: bytes passed on per point of the pace
  std::vector<std::int64_t> block;    // [row, active axis]: bytes passed on in whole blocks
  std::vector<std::int64_t> n_bytes;  // [row]
  std::vector<std::int64_t> n_moved;  // [row]: bytes that must arrive, sub-tensor less partition
  std::vector<double> cycles;         // [row]: fetch; of the output also reduction and epilogue, once `is_priced`
  std::vector<std::uint32_t> answer;  // [row]: of the output, where reduction and epilogue are found
  bool is_priced = true;
  // The least over all rows:
  std::int64_t least_bytes = 0;
  double least_full_bytes = 0.0;  // of n_bytes + n_moved
  double least_cycles = 0.0;

  std::size_t size() const { return n_bytes.size(); }
};

// One F_op and one choice of padded part lengths: all plans whose temporal factors pad the parts to just these lengths.
struct Case {
  std::size_t f_row = 0;
  Axes f_op{};
  Axes lengths{};                        // L
  std::vector<std::size_t> active;       // axes along which some operand may rotate
  std::vector<std::int64_t> n_padded;    // per active axis: L - L0
  std::vector<std::shared_ptr<SlotRows>> slots;
  std::vector<std::size_t> movers;       // slots with a choice, fewest rows first
  double compute_bound = 0.0;            // cycles of all sub-tasks, but for a constant per sub-task
};

// All divisors of a number, rising.
class Divisors {
 public:
  const std::vector<std::int32_t> &of(std::int64_t number) {
    if (static_cast<std::size_t>(number) >= known_.size()) known_.resize(static_cast<std::size_t>(number) + 1);
    std::vector<std::int32_t> &result = known_[static_cast<std::size_t>(number)];
    if (result.empty()) {
      for (std::int64_t d = 1; d <= number; ++d)
        if (number % d == 0) result.push_back(static_cast<std::int32_t>(d));
    }
    return result;
  }

 private:
  std::vector<std::vector<std::int32_t>> known_;
};

class RowBuilder {
 public:
  RowBuilder(const Problem &problem, Memo &reductions) : problem_(problem), reductions_(reductions) {}

  // Turns to another F_op.
  void start(std::size_t f_row, const Axes &f_op, const Axes &shortest) {
    first_ = Case{};
    first_.f_row = f_row;
    first_.f_op = f_op;
    first_.lengths = shortest;
    for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot) sharers_[slot] = problem_.n_sharers(slot, f_op);
    for (std::size_t axis = 0; axis < problem_.n_axes; ++axis)
      if (is_active(axis)) first_.active.push_back(axis);
    kept_.assign(problem_.slots.size(), {});
  }

  std::size_t f_row() const { return first_.f_row; }
  const std::vector<std::size_t> &active() const { return first_.active; }

  // Returns the lengths to which an axis may be padded, the shortest first.
  std::vector<std::int64_t> padded_lengths(std::size_t axis) {
    const std::int64_t shortest = first_.lengths[axis];
    std::vector<std::int64_t> multiples{1};
    for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot) {
      if (!has(problem_.slots[slot].rotating, axis)) continue;
      const std::size_t n = multiples.size();
      for (const std::int32_t t : divisors_.of(sharers_[slot])) {
        if (t > shortest) break;
        for (std::size_t i = 0; i < n && t > 1; ++i) {
          const std::int64_t multiple = std::lcm(multiples[i], static_cast<std::int64_t>(t));
          const std::int64_t length = ceil_div(shortest, multiple) * multiple;
          if (problem_.is_padding_kept(axis, first_.f_op[axis], shortest, length)) multiples.push_back(multiple);
        }
      }
      std::sort(multiples.begin(), multiples.end());
      multiples.erase(std::unique(multiples.begin(), multiples.end()), multiples.end());
    }
    for (std::int64_t &multiple : multiples) multiple = ceil_div(shortest, multiple) * multiple;
    std::sort(multiples.begin(), multiples.end());
    multiples.erase(std::unique(multiples.begin(), multiples.end()), multiples.end());
    return multiples;
  }

  // Returns the plans of the F_op whose parts are padded to `lengths`; see `price`.
  Case build(const Axes &lengths) {
    Case result = first_;
    result.lengths = lengths;
    for (const std::size_t axis : result.active) result.n_padded.push_back(lengths[axis] - first_.lengths[axis]);
    for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot) {
      result.slots.push_back(slot_rows(slot, lengths));
      if (result.slots.back()->size() > 1) result.movers.push_back(slot);
    }
    std::stable_sort(result.movers.begin(), result.movers.end(), [&](std::size_t a, std::size_t b) {
      return result.slots[a]->size() < result.slots[b]->size();
    });
    return result;
  }

  // Adds the price of reductions and epilogues once they are answered.
  void price(SlotRows &output) const {
    if (output.is_priced) return;
    for (std::size_t row = 0; row < output.size(); ++row) output.cycles[row] += reductions_[output.answer[row]];
    output.least_cycles = *std::min_element(output.cycles.begin(), output.cycles.end());
    output.is_priced = true;
  }

  // Number of combinations of rows of the F_op, each by itself within the constraints.
  double n_combined() {
    double product = 1.0;
    for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot)
      product *= n_rows(slot, 0, sharers_[slot]);
    return product;
  }

 private:
  bool is_active(std::size_t axis) const {
    if (first_.lengths[axis] == 1) return false;
    for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot)
      if (has(problem_.slots[slot].rotating, axis) && sharers_[slot] > 1) return true;
    return false;
  }

  double n_rows(std::size_t slot, std::size_t place, std::int64_t left) {
    while (place < first_.active.size() && !has(problem_.slots[slot].rotating, first_.active[place])) ++place;
    if (left == 1 || place == first_.active.size()) return 1.0;
    const std::size_t axis = first_.active[place];
    const std::int64_t length = first_.lengths[axis];
    const std::vector<std::int32_t> &divisors = divisors_.of(left);
    // Deeper calls may move the vector that `of` returned, not its elements.
    const std::int32_t *const end = divisors.data() + divisors.size();
    double total = 0.0;
    for (const std::int32_t *t = divisors.data(); t != end && *t <= length; ++t)
      if (problem_.is_padding_kept(axis, first_.f_op[axis], length, ceil_div(length, *t) * *t))
        total += n_rows(slot, place + 1, left / *t);
    return total;
  }

  // The rows of a slot depend on the lengths of its own axes only.
  std::shared_ptr<SlotRows> slot_rows(std::size_t slot, const Axes &lengths) {
    std::vector<std::int64_t> key;
    for (const std::size_t axis : first_.active)
      if (has(problem_.slots[slot].axes, axis)) key.push_back(lengths[axis]);
    std::shared_ptr<SlotRows> &kept = kept_[slot][key];
    if (!kept) {
      kept = std::make_shared<SlotRows>();
      Axes row;
      row.fill(1);
      extend(slot, lengths, 0, sharers_[slot], row, *kept);
      summarise(*kept);
    }
    return kept;
  }

  void extend(std::size_t slot, const Axes &lengths, std::size_t place, std::int64_t left, Axes &row, SlotRows &rows) {
    const Operand &operand = problem_.slots[slot];
    while (place < first_.active.size() && (left == 1 || !has(operand.rotating, first_.active[place]))) ++place;
    if (place == first_.active.size()) return append(slot, lengths, row, left, rows);
    const std::size_t axis = first_.active[place];
    const std::vector<std::int32_t> &divisors = divisors_.of(left);
    const std::int32_t *const end = divisors.data() + divisors.size();
    for (const std::int32_t *t = divisors.data(); t != end && *t <= first_.lengths[axis]; ++t) {
      if (lengths[axis] % *t != 0) continue;
      row[axis] = *t;
      extend(slot, lengths, place + 1, left / *t, row, rows);
    }
    row[axis] = 1;
  }

  // Appends a row that leaves `n_replicas` copies of everything.
  void append(std::size_t slot, const Axes &lengths, const Axes &ft, std::int64_t n_replicas, SlotRows &rows) {
    const Operand &operand = problem_.slots[slot];
    Axes windows = lengths;
    for (const std::size_t axis : first_.active) windows[axis] /= ft[axis];
    const std::int64_t n_elements = operand.n_elements(windows);
    for (const std::size_t axis : first_.active) {
      const bool rotates = ft[axis] > 1;
      const bool is_simple = has(operand.simple, axis);
      rows.ft.push_back(static_cast<std::int32_t>(ft[axis]));
      rows.pace.push_back(static_cast<std::int32_t>(windows[axis]));
      rows.unit.push_back(rotates && is_simple ? n_elements / windows[axis] * operand.item_bytes : 0);
      rows.block.push_back(rotates && !is_simple ? n_elements * operand.item_bytes : 0);
    }
    Holding holding;
    if (slot == problem_.output()) {
      holding = output_holding(problem_, windows, n_replicas);
      const std::int64_t key[2] = {n_replicas, n_elements};
      rows.answer.push_back(reductions_.index(key));
      rows.is_priced = false;
    } else {
      holding = input_holding(problem_, operand, windows);
    }
    rows.n_bytes.push_back(holding.n_bytes);
    rows.cycles.push_back(holding.fetch);
    rows.n_moved.push_back((operand.n_elements(lengths) - n_elements) * operand.item_bytes);
  }

  static void summarise(SlotRows &rows) {
    rows.least_bytes = *std::min_element(rows.n_bytes.begin(), rows.n_bytes.end());
    rows.least_cycles = *std::min_element(rows.cycles.begin(), rows.cycles.end());
    std::int64_t full = rows.n_bytes[0] + rows.n_moved[0];
    for (std::size_t row = 1; row < rows.size(); ++row) full = std::min(full, rows.n_bytes[row] + rows.n_moved[row]);
    rows.least_full_bytes = static_cast<double>(full);
  }

  const Problem &problem_;
  Memo &reductions_;
  Divisors divisors_;
  Case first_;  // the F_op without padding
  std::array<std::int64_t, kMaxSlots> sharers_{};
  std::vector<std::map<std::vector<std::int64_t>, std::shared_ptr<SlotRows>>> kept_;
};

}  // namespace t10::search
