// Least compute cycles of all plans of an F_op, known before any of them is looked at.
//
// A plan cuts the part L0_a of an axis in S_a >= 1 steps of at least ceil(L0_a / S_a) points. With E(b) a lower bound of
// the cost function over all boxes that are at least b (and at most what the padding constraint allows), its compute
// cycles are at least D(L0) = min over S of prod(S) * E(ceil(L0 / S)). Lengths ceil(ceil(N / F) / S) = ceil(N / (F S))
// are few per axis, so E is tabulated over all of them and D follows by minimising along one axis after the other.
//
// Every sub-task takes at least c0 = min E, so E - c0 is minimised and c0 counted per sub-task: a plan with n of them
// computes for at least n * c0 + D(L0).

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "interval_function.h"
#include "search_problem.h"

namespace t10::search {

class ComputeBound {
 public:
  // `lengths[a]`: the L0 that occur; `parts[a]`: the F that gives each of them; `most_points`: the largest product of L0.
  ComputeBound(const Problem &problem, const std::vector<std::vector<std::int64_t>> &lengths,
               const std::vector<std::vector<std::int64_t>> &parts, Mask rotating, double most_points)
      : most_points_(most_points) {
    grids_.resize(problem.n_axes);
    n_entries_ = 1;
    for (std::size_t axis = 0; axis < problem.n_axes; ++axis) {
      add_axis(problem, axis, lengths[axis], parts[axis], has(rotating, axis));
      n_entries_ *= grids_[axis].lengths.size();
    }
  }

  std::size_t n_entries() const { return n_entries_; }

  // c0: what every sub-task takes at least.
  double step_cycles() const { return step_cycles_; }

  // Tabulates the bounds; before, they are 0.
  void fill(const IntervalFunction &cost, double padding) {
    tabulate(cost, padding);
    step_cycles_ = std::floor(kStepShare * step_cycles_);
    for (double &cycles : table_) cycles -= step_cycles_;
    std::size_t stride = table_.size();
    for (const Grid &grid : grids_) {
      const std::size_t outer = table_.size() / stride;
      stride /= grid.lengths.size();
      for (std::size_t i = 0; i < outer; ++i) minimise(grid, table_.data() + i * stride * grid.lengths.size(), stride);
    }
  }

  // D of parts of at least these lengths, without c0. What holds of the longest part of some F_op that is no longer holds
  // of them: every split of theirs is at least as long as one of its splits.
  double least(const Axes &lengths) const {
    if (table_.empty()) return 0.0;
    std::size_t place = 0;
    for (std::size_t axis = 0; axis < grids_.size(); ++axis) {
      const Grid &grid = grids_[axis];
      const auto found = std::upper_bound(grid.parts.begin(), grid.parts.end(), lengths[axis]);
      if (found == grid.parts.begin()) return 0.0;
      place = place * grid.lengths.size() + grid.numbers[static_cast<std::size_t>(found - grid.parts.begin() - 1)];
    }
    return table_[place];
  }

 private:
  static constexpr double kStepShare = 0.5;
  static constexpr double kUnpaddedMost = 1e12;  // more than any part is long
  static constexpr std::size_t kBatch = 4096;

  struct Split {
    std::size_t part;  // number of the length of one step
    double n_steps;
  };

  struct Grid {
    std::vector<std::int64_t> lengths;       // rising
    std::vector<std::vector<Split>> splits;  // per length; none for those that are never a whole part
    std::vector<std::int64_t> parts;         // lengths of whole parts, rising
    std::vector<std::size_t> numbers;        // per whole part: its number among the lengths
  };

  static bool is_split(const Problem &problem, std::size_t axis, std::int64_t parts, std::int64_t length,
                       std::int64_t steps) {
    return problem.is_padding_kept(axis, parts, length, ceil_div(length, steps) * steps);
  }

  void add_axis(const Problem &problem, std::size_t axis, const std::vector<std::int64_t> &lengths,
                const std::vector<std::int64_t> &parts, bool is_rotating) {
    Grid &grid = grids_[axis];
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> found(lengths.size());
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const std::int64_t most = is_rotating ? lengths[i] : 1;
      for (std::int64_t steps = 1; steps <= most;) {
        const std::int64_t box = ceil_div(lengths[i], steps);
        if (is_split(problem, axis, parts[i], lengths[i], steps)) {
          found[i].push_back({box, steps});
          grid.lengths.push_back(box);
        }
        if (box == 1) break;
        steps = ceil_div(lengths[i], box - 1);
      }
    }
    std::sort(grid.lengths.begin(), grid.lengths.end());
    grid.lengths.erase(std::unique(grid.lengths.begin(), grid.lengths.end()), grid.lengths.end());
    grid.splits.resize(grid.lengths.size());
    grid.parts = lengths;
    std::sort(grid.parts.begin(), grid.parts.end());
    for (const std::int64_t part : grid.parts) grid.numbers.push_back(number(grid, part));
    for (std::size_t i = 0; i < lengths.size(); ++i)
      for (const auto &[box, steps] : found[i])
        grid.splits[number(grid, lengths[i])].push_back({number(grid, box), static_cast<double>(steps)});
  }

  static std::size_t number(const Grid &grid, std::int64_t length) {
    return static_cast<std::size_t>(std::lower_bound(grid.lengths.begin(), grid.lengths.end(), length) -
                                    grid.lengths.begin());
  }

  // Fills in E of all boxes no larger than the largest part: others are neither asked for nor parts of those that are.
  void tabulate(const IntervalFunction &cost, double padding) {
    table_.assign(n_entries_, 0.0);
    const std::size_t n_axes = grids_.size();
    std::vector<std::size_t> places;
    std::vector<double> low(n_axes * kBatch);
    std::vector<double> high(n_axes * kBatch);
    std::vector<double> found(kBatch);
    std::vector<const double *> lows;
    std::vector<const double *> highs;
    for (std::size_t axis = 0; axis < n_axes; ++axis) {
      lows.push_back(low.data() + axis * kBatch);
      highs.push_back(high.data() + axis * kBatch);
    }
    std::vector<std::size_t> digits(n_axes, 0);
    for (std::size_t place = 0; place < n_entries_; ++place) {
      double n_points = 1.0;
      for (std::size_t axis = 0; axis < n_axes; ++axis) {
        const auto length = static_cast<double>(grids_[axis].lengths[digits[axis]]);
        low[axis * kBatch + places.size()] = length;
        n_points *= length;
      }
      if (n_points <= most_points_) {
        for (std::size_t axis = 0; axis < n_axes; ++axis) {
          const double length = low[axis * kBatch + places.size()];
          high[axis * kBatch + places.size()] =
              padding > 0.0 ? std::max(length, std::floor(length / padding + 1e-6)) : kUnpaddedMost;
        }
        places.push_back(place);
      }
      for (std::size_t axis = n_axes; axis-- > 0 && ++digits[axis] == grids_[axis].lengths.size();) digits[axis] = 0;
      if (places.size() < kBatch && place + 1 < n_entries_) continue;
      cost.least(lows.data(), highs.data(), places.size(), found.data());
      for (std::size_t k = 0; k < places.size(); ++k) {
        table_[places[k]] = found[k];
        step_cycles_ = std::min(step_cycles_, found[k]);
      }
      places.clear();
    }
  }

  // Replaces E by its minimum over the splits of one axis, longest first: shorter lengths are read before they change.
  static void minimise(const Grid &grid, double *block, std::size_t stride) {
    for (std::size_t length = grid.lengths.size(); length-- > 0;) {
      double *out = block + length * stride;
      for (const Split &split : grid.splits[length]) {
        if (split.part == length) continue;
        const double *part = block + split.part * stride;
        for (std::size_t k = 0; k < stride; ++k) out[k] = std::min(out[k], split.n_steps * part[k]);
      }
    }
  }

  std::vector<Grid> grids_;
  std::size_t n_entries_ = 0;
  double most_points_ = 0.0;  // of a part
  double step_cycles_ = std::numeric_limits<double>::infinity();
  std::vector<double> table_;
};

// Returns the bound for the parts that rows of F_op make of a problem, whatever memory there is; nullptr where it would
// have too many entries.
std::unique_ptr<ComputeBound> compute_bound(const Problem &problem, const std::vector<Axes> &f_op,
                                            const IntervalFunction &least_sub_task);

}  // namespace t10::search
