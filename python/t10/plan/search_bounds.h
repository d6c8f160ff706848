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
#include <utility>
#include <vector>

#include "search_interval.h"
#include "search_problem.h"

namespace t10::search {

class ComputeBound {
 public:
  // `lengths[a]`: the L0 that occur; `parts[a]`: the F that gives each of them.
  ComputeBound(const Problem &problem, const std::vector<std::vector<std::int64_t>> &lengths,
               const std::vector<std::vector<std::int64_t>> &parts, Mask rotating) {
    grids_.resize(problem.n_axes);
    n_entries_ = 1;
    for (std::size_t axis = 0; axis < problem.n_axes; ++axis) {
      add_axis(problem, axis, lengths[axis], parts[axis], has(rotating, axis));
      n_entries_ *= grids_[axis].lengths.size();
    }
  }

  std::size_t n_entries() const { return n_entries_; }

  // c0: the least cycles of any sub-task.
  double step_cycles() const { return step_cycles_; }

  // Tabulates the bounds; before, they are 0.
  void fill(const IntervalFunction &cost, double padding) {
    tabulate(cost, padding);
    step_cycles_ = std::floor(kStepShare * *std::min_element(table_.begin(), table_.end()));
    for (double &cycles : table_) cycles -= step_cycles_;
    std::size_t stride = table_.size();
    for (const Grid &grid : grids_) {
      const std::size_t outer = table_.size() / stride;
      stride /= grid.lengths.size();
      for (std::size_t i = 0; i < outer; ++i) minimise(grid, table_.data() + i * stride * grid.lengths.size(), stride);
    }
  }

  // D(L0), without c0.
  double least(const Axes &lengths) const {
    if (table_.empty()) return 0.0;
    std::size_t place = 0;
    for (std::size_t axis = 0; axis < grids_.size(); ++axis) {
      const std::vector<std::int64_t> &own = grids_[axis].lengths;
      const auto found = std::lower_bound(own.begin(), own.end(), lengths[axis]);
      place = place * own.size() + static_cast<std::size_t>(found - own.begin());
    }
    return table_[place];
  }

 private:
  static constexpr double kStepShare = 0.5;

  struct Split {
    std::size_t part;  // number of the length of one step
    double n_steps;
  };

  struct Grid {
    std::vector<std::int64_t> lengths;       // rising
    std::vector<std::vector<Split>> splits;  // per length; none for those that are never a whole part
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
    for (std::size_t i = 0; i < lengths.size(); ++i)
      for (const auto &[box, steps] : found[i])
        grid.splits[number(grid, lengths[i])].push_back({number(grid, box), static_cast<double>(steps)});
  }

  static std::size_t number(const Grid &grid, std::int64_t length) {
    return static_cast<std::size_t>(std::lower_bound(grid.lengths.begin(), grid.lengths.end(), length) -
                                    grid.lengths.begin());
  }

  void tabulate(const IntervalFunction &cost, double padding) {
    table_.assign(n_entries_, 0.0);
    constexpr std::size_t kBatch = 4096;
    const std::size_t n_axes = grids_.size();
    std::vector<double> low(n_axes * kBatch);
    std::vector<double> high(n_axes * kBatch);
    std::vector<const double *> lows;
    std::vector<const double *> highs;
    for (std::size_t axis = 0; axis < n_axes; ++axis) {
      lows.push_back(low.data() + axis * kBatch);
      highs.push_back(high.data() + axis * kBatch);
    }
    for (std::size_t first = 0; first < n_entries_; first += kBatch) {
      const std::size_t count = std::min(kBatch, n_entries_ - first);
      for (std::size_t k = 0; k < count; ++k) {
        std::size_t place = first + k;
        for (std::size_t axis = n_axes; axis-- > 0;) {
          const std::vector<std::int64_t> &own = grids_[axis].lengths;
          const auto length = static_cast<double>(own[place % own.size()]);
          place /= own.size();
          low[axis * kBatch + k] = length;
          high[axis * kBatch + k] = padding > 0.0 ? std::max(length, std::floor(length / padding + 1e-6)) : 1e12;
        }
      }
      cost.least(lows.data(), highs.data(), count, table_.data() + first);
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
  double step_cycles_ = 0.0;
  std::vector<double> table_;
};

}  // namespace t10::search
