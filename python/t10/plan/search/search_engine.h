// The complete search of one operator: all F_op, all ft rows of all operands, and the front of what fits and is placed.
//
// 1. Every F_op without rotation, exactly. 2. F_op by F_op, most promising first, those skipped of which a lower bound
// of time and memory says that the front beats all their plans. 3. In an F_op, the operands' ft rows one after the
// other, with such bounds for every choice made. 4. What is left is priced, many plans at a time. Where exact prices are
// slow, prices are lower bounds up to here, and plans that would enter the front are priced exactly, one at a time.

#pragma once

#include <array>
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
  const BatchFunction *whole;  // the same of plans in which nothing rotates; nullptr: it does not differ
  const BatchFunction *epilogue;
  const BatchFunction *reduce;
  const ShiftTable *shift;
  const ComputeBound *compute_bound;       // lower bounds, nullptr where there is none
  const IntervalFunction *least_epilogue;
  const IntervalFunction *least_reduce;
};

struct Settings {
  bool is_pruning = true;    // false: every plan is evaluated
  bool is_bytes_only = false;  // all cycles are taken to be 0
  bool asks_always = false;  // plans that closed forms place are asked about, too
};

// What a plan takes at least: all steps, and all shifts beyond what the table says.
struct CloserBound {
  double steps;
  double waits;
};

struct Hooks {
  std::function<bool(std::size_t f_row, const std::vector<std::int32_t> &ft)> is_placeable;
  // Cycles of a plan but for fetches and shifts, where the cost functions are only lower bounds of them; else empty.
  // Gives a lower bound where that is above `most`; a step takes `least_step`, what follows the steps `least_rest`,
  // all shifts `waits` more than the table says.
  std::function<double(const Point &point, double least_step, double least_rest, double waits, double most)> price;
  // Bounds of some plans, closer than the cost functions; may be empty.
  std::function<std::vector<CloserBound>(const std::vector<const Point *> &points)> bounds;
  std::function<void(double done)> poll;  // called now and then; may throw to end the search
};

struct Statistics {
  std::size_t n_partitions = 0;           // F_op in the space
  std::size_t n_opened = 0;               // cases, an F_op and padded lengths, whose ft rows were combined
  std::size_t n_evaluated = 0;            // plans priced
  std::size_t n_placements = 0;           // plans whose placement had to be looked for
  std::size_t n_boxes = 0;                // different sub-tasks priced, or bounded
  std::size_t n_exact = 0;                // plans priced exactly after a bound
};

class Engine {
 public:
  Engine(const Problem &problem, std::vector<Axes> f_op, const CostFunctions &costs, Settings settings, Hooks hooks);

  void run();
  const Front &front() const { return front_; }
  const Statistics &statistics() const { return statistics_; }

 private:
  // A plan that waits for the price of its sub-task. Its box is in leaf_boxes_, its row per mover in leaf_rows_.
  struct Leaf {
    std::uint32_t number;  // of its case in the chunk
    std::uint32_t rows;    // where its rows start
    std::int64_t n_bytes;
    double cycles;  // all but compute
    double n_sub_tasks;
  };

  // A plan that waits for its exact price: `point` has a lower bound of it, `moved` of which are fetches and shifts.
  struct Waiting {
    Point point;
    double least_step;
    double least_rest;
    double moved;
    double n_sub_tasks = 0.0;
    double waits = 0.0;    // of its shifts, beyond the table
    bool is_close = true;  // it need not be bounded closer
  };

  // What is chosen so far on the way down a case.
  struct Prefix {
    struct PerAxis {
      std::int32_t most;   // largest t, the steps
      std::int32_t least;  // smallest t above 1, 0 for none
      std::int32_t pace;
      std::int64_t unit;
      std::int64_t block;
    };

    std::int64_t n_bytes;
    double cycles;
    double n_moved;
    double n_steps;
    double rings;                        // product of the rings of all operands
    std::array<PerAxis, kMaxAxes> axes;  // active axes only
  };

  // Of the movers from a depth on: what they have at least, all together.
  struct Rest {
    std::int64_t n_bytes = 0;
    double total = 0.0;  // cycles, see SlotRows::least_total
    double fixed_bytes = 0.0;
    double weight_bytes = 0.0;
    double activation_bytes = 0.0;
    Mask turning = 0;  // active axes along which some of them may rotate
    std::size_t n_wholes = 0;
    std::array<double, kMaxSlots> wholes{};  // rising
  };

  // What bounds the cycles of an output of one F_op: its sharers; elements of a part, at least; run of an epilogue on
  // a whole part, shortest and longest.
  using OutputKey = std::array<std::int64_t, 4>;

  // What may become of outputs: members; elements of a window at least, of a chunk of it at least, of both at most;
  // run, low and high.
  struct OutputCases {
    static constexpr std::size_t kColumns = 6;
    std::array<std::vector<double>, kColumns> columns;
    std::vector<double> moved;         // cycles in which the rest of the output arrives
    std::vector<std::size_t> numbers;  // of the output that it is a case of
  };

  struct Still {
    std::int64_t n_bytes;
    double fetch;
    std::uint32_t box;
    std::uint32_t reduction;
  };

  void price_still();
  double still_cycles(std::size_t f_row) const;
  void bound_outputs();
  OutputKey output_key(const Axes &f_op) const;
  void add_cases(const OutputKey &key, std::size_t number, OutputCases &cases) const;
  void price_cases(OutputCases &cases, double *out) const;
  std::vector<std::size_t> order() const;
  bool is_beaten(std::size_t f_row, const Axes &lengths, bool is_exact) const;
  void open(std::size_t f_row);
  void pad(std::size_t place, Axes &lengths);
  void work_off();
  void combine(const Case &one);
  void descend(std::size_t depth);
  void finish_all(std::size_t depth);
  void push(const Prefix &all);
  bool has_whole_blocks(const Prefix &all) const;
  Mask unpadded(const Prefix &prefix, std::size_t depth) const;
  bool is_hopeless(const Prefix &prefix, const Rest &rest) const;
  void flush();
  void answer();
  Memo<std::int32_t> &still_boxes() { return costs_.whole == nullptr ? boxes_ : wholes_; }
  const Memo<std::int32_t> &still_boxes() const { return costs_.whole == nullptr ? boxes_ : wholes_; }
  bool is_exact() const { return !hooks_.price || settings_.is_bytes_only; }
  bool is_bounding() const { return settings_.is_pruning || is_exact(); }
  void price_waiting();
  void wait(Waiting one);
  Waiting next_waiting();
  void bound_closer(Waiting first);
  std::uint32_t reduction_of(const Leaf &leaf) const;
  void offer(Point point);
  bool is_placeable(const Point &point);
  void tick();
  Axes lengths_of(const Axes &f_op) const;
  double shift_cycles(const Prefix &all) const;
  std::vector<std::int32_t> ft_of(const Case &one, const std::uint32_t *rows) const;

  const Problem &problem_;
  std::vector<Axes> f_op_;
  CostFunctions costs_;
  Settings settings_;
  Hooks hooks_;
  Front front_;
  Statistics statistics_;
  Memo<std::int32_t> boxes_;
  Memo<std::int32_t> wholes_;  // boxes of plans in which nothing rotates, where they differ
  Memo<std::int64_t> reductions_;
  RowBuilder builder_;
  double task_cycles_ = 0.0;     // least cycles of a sub-task
  double advance_cycles_ = 0.0;  // least cycles of a shift
  double root_ = 1.0;            // 1 / the most operands that rotate along one axis
  std::vector<double> output_cycles_;  // per F_op: least of reduction, epilogue and rotation of the output
  Mask blocks_ = 0;  // axes along which some operand moves in whole blocks

  std::vector<Still> still_;
  std::vector<std::unique_ptr<Opened>> opened_;  // the first n_opened_ are in use
  std::size_t n_opened_ = 0;
  std::array<std::size_t, kMaxAxes> choice_{};  // of lengths of the F_op being opened, per active axis
  std::vector<Case> chunk_;
  std::size_t n_chunk_ = 0;
  std::vector<Leaf> leaves_;
  std::vector<std::uint32_t> leaf_rows_;
  std::vector<std::int32_t> leaf_boxes_;
  std::vector<std::uint32_t> leaf_answers_;
  std::vector<Waiting> waiting_;
  // Of the case being combined:
  const Case *case_ = nullptr;
  std::size_t n_active_ = 0;
  std::vector<Prefix> prefixes_;
  std::vector<Rest> rests_;
  std::vector<std::uint32_t> chosen_;
  std::size_t n_ticks_ = 0;
  double done_ = 0.0;
};

}  // namespace t10::search
