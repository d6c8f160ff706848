// The complete search of one operator: all F_op, all ft rows of all operands, and the front of what fits and is placed.
//
// 1. Every F_op without rotation, exactly. 2. F_op by F_op, most promising first, those skipped of which a lower bound
// of time and memory says that the front beats all their plans. 3. In an F_op, the operands' ft rows one after the
// other, with such bounds for every choice made. 4. What is left is priced exactly, many plans at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "batch_function.h"
#include "search_bounds.h"
#include "search_front.h"
#include "search_memo.h"
#include "search_problem.h"
#include "search_rows.h"
#include "search_shift.h"

namespace t10::search {

struct CostFunctions {
  const BatchFunction *sub_task;
  const BatchFunction *epilogue;
  const BatchFunction *reduce;
  const ShiftTable *shift;
  const IntervalFunction *least_sub_task;  // nullptr where there is none
};

struct Settings {
  bool is_pruning = true;    // false: every plan is evaluated
  bool is_bytes_only = false;  // all cycles are taken to be 0
};

struct Hooks {
  std::function<bool(std::size_t f_row, const std::vector<std::int32_t> &ft)> is_placeable;
  std::function<void(double done)> poll;  // called now and then; may throw to end the search
};

struct Statistics {
  std::size_t n_partitions = 0;           // F_op in the space
  std::size_t n_opened = 0;               // cases, an F_op and padded lengths, whose ft rows were combined
  std::size_t n_evaluated = 0;            // plans priced
  std::size_t n_placements = 0;           // plans whose placement had to be looked for
  std::size_t n_boxes = 0;                // different sub-tasks priced
};

class Engine {
 public:
  Engine(const Problem &problem, std::vector<Axes> f_op, const CostFunctions &costs, Settings settings, Hooks hooks);

  void run();
  const Front &front() const { return front_; }
  const Statistics &statistics() const { return statistics_; }

 private:
  // A plan that waits for the price of its sub-task.
  struct Leaf {
    std::uint32_t number;  // of its case in the chunk
    std::uint32_t rows;    // where its row per mover starts in leaf_rows_
    std::uint32_t box;
    std::int64_t n_bytes;
    double cycles;  // all but compute
    double n_sub_tasks;
  };

  // What is chosen so far on the way down a case; arrays over its active axes.
  struct Prefix {
    std::int64_t n_bytes = 0;
    double cycles = 0.0;
    double n_moved = 0.0;
    double n_steps = 1.0;
    std::array<std::int64_t, kMaxAxes> unit{};
    std::array<std::int64_t, kMaxAxes> block{};
    std::array<std::int32_t, kMaxAxes> most{};   // largest t, the steps
    std::array<std::int32_t, kMaxAxes> least{};  // smallest t above 1, 0 for none
    std::array<std::int32_t, kMaxAxes> pace{};
  };

  // Sums over the movers from a depth on of what each has at least.
  struct Rest {
    std::int64_t n_bytes = 0;
    double full_bytes = 0.0;  // n_bytes + n_moved is never less
    double cycles = 0.0;
  };

  struct Still {
    std::int64_t n_bytes;
    double fetch;
    std::uint32_t box;
    std::uint32_t reduction;
  };

  void price_still();
  void bound_compute();
  std::vector<std::size_t> order() const;
  bool is_beaten(std::size_t f_row, const Axes &lengths) const;
  void open(std::size_t f_row);
  void pad(std::size_t place, Axes &lengths);
  void work_off();
  void combine(const Case &one);
  void descend(std::size_t depth);
  bool extend(std::size_t depth, std::size_t row);
  void finish();
  bool is_padded_so() const;
  void flush();
  void answer();
  void offer(Point point);
  bool is_placeable(const Point &point);
  void tick();
  Axes lengths_of(const Axes &f_op) const;
  double shift_cycles(const Prefix &prefix, std::size_t n_active) const;
  std::vector<std::int32_t> ft_of(const Case &one, const std::uint32_t *rows) const;

  const Problem &problem_;
  std::vector<Axes> f_op_;
  CostFunctions costs_;
  Settings settings_;
  Hooks hooks_;
  Front front_;
  Statistics statistics_;
  Memo boxes_;
  Memo reductions_;
  RowBuilder builder_;
  std::unique_ptr<ComputeBound> compute_bound_;
  double task_cycles_ = 0.0;     // least cycles of a sub-task
  double advance_cycles_ = 0.0;  // least cycles of a shift
  Mask blocks_ = 0;  // axes along which some operand moves in whole blocks

  std::vector<Still> still_;
  std::vector<std::vector<std::int64_t>> padded_lengths_;  // of the F_op being opened, per active axis
  std::vector<Case> chunk_;
  std::vector<Leaf> leaves_;
  std::vector<std::uint32_t> leaf_rows_;
  // Of the case being combined:
  const Case *case_ = nullptr;
  std::vector<Prefix> prefixes_;
  std::vector<Rest> rests_;
  std::vector<std::uint32_t> chosen_;
  std::size_t n_ticks_ = 0;
  double done_ = 0.0;
};

}  // namespace t10::search
