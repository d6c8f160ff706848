// The ft rows of operands under one F_op and given part lengths: what each may do in time, and what that costs by itself.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <vector>

#include "search_memo.h"
#include "search_problem.h"

namespace t10::search {

// What an ft row does along one axis.
struct RowAxis {
  std::int32_t t;
  std::int32_t pace;   // L / t
  std::int64_t unit;   // bytes passed on per point of the common pace
  std::int64_t block;  // bytes passed on in whole blocks
};

// The ft rows of one slot in lexicographic order.
struct SlotRows {
  std::vector<RowAxis> axes;          // [row, active axis]
  std::vector<std::int64_t> n_bytes;  // [row]
  std::vector<double> n_moved;        // [row]: bytes that must arrive: the partitions of the other members of the ring
  std::vector<double> cycles;         // [row]: fetch; of the output also reduction and epilogue, once `is_priced`
  std::vector<Mask> turning;          // [row]: the active axes, by number among them, along which it rotates
  std::vector<std::uint32_t> answer;  // [row]: of the output, where reduction and epilogue are found
  bool is_priced = true;
  // The least over all rows:
  std::int64_t least_bytes = 0;
  double least_cycles = 0.0;
  double least_total = 0.0;   // of cycles and the arrival of what is not held, less what holding saves; see `summarise`
  double most_bytes = 0.0;    // held by the row that does not rotate
  double whole_bytes = 0.0;   // ring times partition is no less
  Mask all_turning = 0;  // the active axes along which some row rotates

  std::size_t size() const { return n_bytes.size(); }

  void clear() {
    axes.clear();
    n_bytes.clear();
    n_moved.clear();
    cycles.clear();
    turning.clear();
    answer.clear();
    all_turning = 0;
    is_priced = true;
  }
};

// One F_op and the tables of its ft rows. Rows of a slot depend on the lengths of its own axes only, so there is one
// table per slot and choice of these; tables are kept for reuse by the next F_op.
struct Opened {
  std::size_t f_row = 0;
  Axes f_op{};
  Axes shortest{};                                  // L0
  std::vector<std::size_t> active;                  // axes along which some operand may rotate
  std::vector<std::vector<std::int64_t>> lengths;   // per active axis: what it may be padded to, shortest first
  std::array<std::int64_t, kMaxSlots> sharers{};
  std::vector<std::vector<SlotRows *>> tables;      // per slot and lengths of its own active axes
  std::vector<std::unique_ptr<SlotRows>> pool;
  std::size_t n_used = 0;
};

// One F_op and one choice of padded part lengths: all plans whose temporal factors pad the parts to just these lengths.
struct Case {
  const Opened *opened = nullptr;
  Axes lengths{};                                 // L
  std::array<std::int64_t, kMaxAxes> n_padded{};  // per active axis: L - L0
  Mask padded = 0;                                // the active axes, by number, of which L > L0
  std::array<SlotRows *, kMaxSlots> slots{};
  std::array<std::size_t, kMaxSlots> movers{};    // slots with a choice, fewest rows first
  std::size_t n_movers = 0;
  double compute_bound = 0.0;                     // cycles of all sub-tasks, but for a constant per sub-task
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
  RowBuilder(const Problem &problem, Memo<std::int64_t> &reductions) : problem_(problem), reductions_(reductions) {}

  // Turns to another F_op, to be described in `opened`.
  void start(Opened &opened, std::size_t f_row, const Axes &f_op, const Axes &shortest) {
    opened_ = &opened;
    opened.f_row = f_row;
    opened.f_op = f_op;
    opened.shortest = shortest;
    for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot)
      opened.sharers[slot] = problem_.n_sharers(slot, f_op);
    opened.active.clear();
    opened.lengths.clear();
    for (std::size_t axis = 0; axis < problem_.n_axes; ++axis)
      if (is_active(axis)) opened.active.push_back(axis);
  }

  // Finds the lengths to which the axes may be padded, and makes room for the tables.
  void prepare() {
    Opened &opened = *opened_;
    for (const std::size_t axis : opened.active) opened.lengths.push_back(padded_lengths(axis));
    opened.tables.resize(problem_.slots.size());
    opened.n_used = 0;
    for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot) {
      std::size_t n_tables = 1;
      for (std::size_t i = 0; i < opened.active.size(); ++i)
        if (has(problem_.slots[slot].axes, opened.active[i])) n_tables *= opened.lengths[i].size();
      opened.tables[slot].assign(n_tables, nullptr);
    }
  }

  // Fills in the plans of the F_op whose parts are padded to the given ones of its lengths; see `price`.
  void build(const std::array<std::size_t, kMaxAxes> &choice, Case &result) {
    const Opened &opened = *opened_;
    result.opened = opened_;
    result.lengths = opened.shortest;
    result.padded = 0;
    for (std::size_t i = 0; i < opened.active.size(); ++i) {
      const std::size_t axis = opened.active[i];
      result.lengths[axis] = opened.lengths[i][choice[i]];
      result.n_padded[i] = result.lengths[axis] - opened.shortest[axis];
      if (result.n_padded[i] > 0) result.padded |= Mask{1} << i;
    }
    result.n_movers = 0;
    for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot) {
      result.slots[slot] = slot_rows(slot, choice, result.lengths);
      const std::size_t n_rows = result.slots[slot]->size();
      if (n_rows == 1) continue;
      std::size_t place = result.n_movers++;
      for (; place > 0 && result.slots[result.movers[place - 1]]->size() > n_rows; --place)
        result.movers[place] = result.movers[place - 1];
      result.movers[place] = slot;
    }
  }

  // Adds the price of reductions and epilogues once they are answered.
  void price(SlotRows &output) const {
    if (output.is_priced) return;
    for (std::size_t row = 0; row < output.size(); ++row) output.cycles[row] += reductions_[output.answer[row]];
    summarise(problem_.output(), output);
    output.is_priced = true;
  }

  // Cycles that a byte of a slot costs at least more if it is not held but arrives by rotation.
  double holding_saves(std::size_t slot) const {
    if (slot == problem_.output()) return 0.0;
    if (problem_.slots[slot].is_weight) return problem_.shift_per_byte;
    return std::max(0.0, problem_.shift_per_byte - problem_.fetch_per_byte);
  }

  // Number of combinations of rows of the F_op, each by itself within the constraints.
  double n_combined() {
    double product = 1.0;
    for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot)
      product *= n_rows(slot, 0, opened_->sharers[slot]);
    return product;
  }

 private:
  // Whatever row is taken, its cycles and the arrival of what it does not hold take at least `least_total` less
  // `holding_saves` for every byte it holds.
  void summarise(std::size_t slot, SlotRows &rows) const {
    rows.least_bytes = *std::min_element(rows.n_bytes.begin(), rows.n_bytes.end());
    rows.least_cycles = *std::min_element(rows.cycles.begin(), rows.cycles.end());
    rows.most_bytes = static_cast<double>(*std::max_element(rows.n_bytes.begin(), rows.n_bytes.end()));
    rows.least_total = std::numeric_limits<double>::infinity();
    for (std::size_t row = 0; row < rows.size(); ++row)
      rows.least_total = std::min(rows.least_total, rows.cycles[row] + rows.n_moved[row] * problem_.shift_per_byte +
                                                        static_cast<double>(rows.n_bytes[row]) * holding_saves(slot));
  }

  bool is_active(std::size_t axis) const {
    if (opened_->shortest[axis] == 1) return false;
    for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot)
      if (has(problem_.slots[slot].rotating, axis) && opened_->sharers[slot] > 1) return true;
    return false;
  }

  bool is_kept(std::size_t axis, std::int64_t multiple) const {
    const std::int64_t shortest = opened_->shortest[axis];
    return problem_.is_padding_kept(axis, opened_->f_op[axis], shortest, ceil_div(shortest, multiple) * multiple);
  }

  std::vector<std::int64_t> padded_lengths(std::size_t axis) {
    const std::int64_t shortest = opened_->shortest[axis];
    std::vector<std::int64_t> multiples{1};
    for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot) {
      if (!has(problem_.slots[slot].rotating, axis)) continue;
      const std::size_t n = multiples.size();
      for (const std::int32_t t : divisors_.of(opened_->sharers[slot])) {
        if (t > shortest) break;
        for (std::size_t i = 0; i < n && t > 1; ++i) {
          const std::int64_t multiple = std::lcm(multiples[i], static_cast<std::int64_t>(t));
          if (is_kept(axis, multiple)) multiples.push_back(multiple);
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

  double n_rows(std::size_t slot, std::size_t place, std::int64_t left) {
    const std::vector<std::size_t> &active = opened_->active;
    while (place < active.size() && !has(problem_.slots[slot].rotating, active[place])) ++place;
    if (left == 1 || place == active.size()) return 1.0;
    const std::size_t axis = active[place];
    const std::vector<std::int32_t> &divisors = divisors_.of(left);
    // Deeper calls may move the vector that `of` returned, not its elements.
    const std::int32_t *const end = divisors.data() + divisors.size();
    double total = 0.0;
    for (const std::int32_t *t = divisors.data(); t != end && *t <= opened_->shortest[axis]; ++t)
      if (is_kept(axis, *t)) total += n_rows(slot, place + 1, left / *t);
    return total;
  }

  SlotRows *slot_rows(std::size_t slot, const std::array<std::size_t, kMaxAxes> &choice, const Axes &lengths) {
    Opened &opened = *opened_;
    std::size_t number = 0;
    for (std::size_t i = 0; i < opened.active.size(); ++i)
      if (has(problem_.slots[slot].axes, opened.active[i])) number = number * opened.lengths[i].size() + choice[i];
    SlotRows *&table = opened.tables[slot][number];
    if (table != nullptr) return table;
    if (opened.n_used == opened.pool.size()) opened.pool.push_back(std::make_unique<SlotRows>());
    table = opened.pool[opened.n_used++].get();
    table->clear();
    Axes row;
    row.fill(1);
    extend(slot, lengths, 0, opened.sharers[slot], row, *table);
    summarise(slot, *table);
    const Operand &operand = problem_.slots[slot];
    table->whole_bytes = static_cast<double>(operand.n_covered(lengths, operand.rotating) * operand.item_bytes);
    return table;
  }

  void extend(std::size_t slot, const Axes &lengths, std::size_t place, std::int64_t left, Axes &row, SlotRows &rows) {
    const std::vector<std::size_t> &active = opened_->active;
    const Operand &operand = problem_.slots[slot];
    while (place < active.size() && (left == 1 || !has(operand.rotating, active[place]))) ++place;
    if (place == active.size()) return append(slot, lengths, row, left, rows);
    const std::size_t axis = active[place];
    const std::vector<std::int32_t> &divisors = divisors_.of(left);
    const std::int32_t *const end = divisors.data() + divisors.size();
    const auto length = static_cast<std::int32_t>(lengths[axis]);
    for (const std::int32_t *t = divisors.data(); t != end && *t <= opened_->shortest[axis]; ++t) {
      if (length % *t != 0) continue;
      row[axis] = *t;
      extend(slot, lengths, place + 1, left / *t, row, rows);
    }
    row[axis] = 1;
  }

  // Appends a row that leaves `n_replicas` copies of everything.
  void append(std::size_t slot, const Axes &lengths, const Axes &ft, std::int64_t n_replicas, SlotRows &rows) {
    const Operand &operand = problem_.slots[slot];
    Axes windows = lengths;
    Mask turning = 0;
    for (std::size_t i = 0; i < opened_->active.size(); ++i) {
      const std::size_t axis = opened_->active[i];
      if (ft[axis] == 1) continue;
      windows[axis] = static_cast<std::int32_t>(lengths[axis]) / static_cast<std::int32_t>(ft[axis]);
      turning |= Mask{1} << i;
    }
    const std::int64_t n_elements = operand.n_elements(windows);
    for (const std::size_t axis : opened_->active) {
      const auto pace = static_cast<std::int32_t>(windows[axis]);
      RowAxis one{static_cast<std::int32_t>(ft[axis]), pace, 0, 0};
      if (one.t > 1) (has(operand.simple, axis) ? one.unit : one.block) = n_elements * operand.item_bytes;
      if (one.unit != 0) one.unit /= pace;
      rows.axes.push_back(one);
    }
    Holding holding;
    if (slot == problem_.output()) {
      holding = output_holding(problem_, windows, n_elements, n_replicas);
      rows.answer.push_back(reductions_.index(reduction_key(problem_, windows, n_elements, n_replicas).data()));
      rows.is_priced = false;
    } else {
      holding = input_holding(problem_, operand, windows, n_elements);
      if (problem_.has_seconds && turning != 0) holding.n_bytes *= 2;
    }
    rows.n_bytes.push_back(holding.n_bytes);
    rows.cycles.push_back(holding.fetch);
    rows.turning.push_back(turning);
    rows.all_turning |= turning;
    // Every member of the ring sees what all others hold.
    const std::int64_t ring = opened_->sharers[slot] / n_replicas;
    rows.n_moved.push_back(static_cast<double>((ring - 1) * n_elements * operand.item_bytes));
  }

  const Problem &problem_;
  Memo<std::int64_t> &reductions_;
  Divisors divisors_;
  Opened *opened_ = nullptr;
};

}  // namespace t10::search
