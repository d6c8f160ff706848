#include "part_bound.h"

#include <algorithm>
#include <utility>

namespace t10::search {
namespace {

using Axes = std::vector<PartedAxis>;

// The cores of a plan: where each lies on the grid, and where it starts.
class Cores {
 public:
  Cores(const Axes &axes, const Integers &order) : axes_(axes), order_(order) {}

  std::int64_t size() const {
    std::int64_t n = 1;
    for (const PartedAxis &axis : axes_) n *= axis.n_parts;
    return n;
  }

  Integers coordinates(std::int64_t core) const {
    Integers found(axes_.size());
    for (std::size_t i = order_.size(); i-- > 0;) {
      const auto axis = static_cast<std::size_t>(order_[i]);
      found[axis] = core % axes_[axis].n_parts;
      core /= axes_[axis].n_parts;
    }
    return found;
  }

  std::int64_t start(const Integers &coordinates, std::size_t axis) const {
    std::int64_t sum = 0;
    for (const auto &[sharers, divisor, modulus, stride] : axes_[axis].phases) {
      std::int64_t number = 0;
      for (const std::int64_t sharer : sharers) {
        const auto at = static_cast<std::size_t>(sharer);
        number = number * axes_[at].n_parts + coordinates[at];
      }
      sum += stride * (number / divisor % modulus);
    }
    return sum % axes_[axis].length;
  }

  // Returns the coordinates of at most `most` of the cores that begin at different places.
  std::vector<Integers> different(std::size_t most) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> cores;  // where each begins, as one number
    Integers where(axes_.size(), 0);
    const std::int64_t n_cores = size();
    for (std::int64_t core = 0; core < n_cores; ++core) {
      std::int64_t key = 0;
      for (std::size_t axis = 0; axis < axes_.size(); ++axis)
        if (axes_[axis].n_steps > 1) key = key * axes_[axis].length + start(where, axis);
      cores.emplace_back(key, core);
      advance(where);
    }
    std::sort(cores.begin(), cores.end());
    const auto is_same = [](const auto &one, const auto &other) { return one.first == other.first; };
    cores.erase(std::unique(cores.begin(), cores.end(), is_same), cores.end());
    const std::size_t n = std::min(cores.size(), most);
    std::vector<Integers> chosen;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = n == 1 ? 0 : i * (cores.size() - 1) / (n - 1);
      chosen.push_back(coordinates(cores[at].second));
    }
    return chosen;
  }

 private:
  // Goes on to the coordinates of the next core.
  void advance(Integers &coordinates) const {
    for (std::size_t i = order_.size(); i-- > 0;) {
      const auto axis = static_cast<std::size_t>(order_[i]);
      if (++coordinates[axis] < axes_[axis].n_parts) return;
      coordinates[axis] = 0;
    }
  }

  const Axes &axes_;
  const Integers &order_;
};

// Returns how many local indices of a core's part of an axis are run over, from the first on.
std::int64_t inside(const PartedAxis &axis, std::int64_t coordinate) {
  const std::int64_t left = axis.extent - coordinate * axis.length;
  if (!axis.is_whole) return std::max<std::int64_t>(left, 0);
  // A core of whose outputs all are padding has nothing to do.
  return left <= 0 && !axis.is_summed ? 0 : std::max(left, axis.length);
}

// The lengths of the parts of boxes along one axis: a row per part and position, with one entry per core.
using Lengths = std::vector<Integers>;

Lengths lengths_of(const Cores &cores, const Axes &axes, std::size_t number, const std::vector<Integers> &chosen) {
  const PartedAxis &axis = axes[number];
  const bool rotates = axis.n_steps > 1;
  const auto n_steps = static_cast<std::size_t>(axis.n_steps);
  const Integers none(chosen.size(), 0);
  Lengths found;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::int64_t start = rotates ? cores.start(chosen[i], number) : 0;
    const std::int64_t end = inside(axis, chosen[i][number]);
    for (std::size_t step = 0; step < n_steps; ++step) {
      std::int64_t rest = rotates ? axis.pace : axis.length;
      std::int64_t local = rotates ? (start + static_cast<std::int64_t>(step) * axis.pace) % axis.length : 0;
      for (std::size_t part = 0; rest > 0; ++part) {
        std::int64_t run = rest;
        for (const std::int64_t modulus : axis.moduli) run = std::min(run, modulus - local % modulus);
        if ((part + 1) * n_steps > found.size()) found.resize((part + 1) * n_steps, none);
        found[part * n_steps + step][i] = std::clamp<std::int64_t>(end - local, 0, run);
        rest -= run;
        local = (local + run) % axis.length;
      }
    }
  }
  // What no core has at any position is no part.
  for (std::size_t part = found.size() / n_steps; part-- > 0;) {
    const auto begin = found.begin() + static_cast<std::ptrdiff_t>(part * n_steps);
    const auto end = begin + axis.n_steps;
    if (std::all_of(begin, end, [&none](const Integers &row) { return row == none; })) found.erase(begin, end);
  }
  if (found.empty()) found.assign(n_steps, none);
  return found;
}

// Cycles of every box whose sides are among the different lengths of their axes.
class Boxes {
 public:
  Boxes(const BatchFunction &bound, const std::vector<Lengths> &tables) {
    std::size_t n = 1;
    for (const Lengths &table : tables) {
      Integers sides;
      for (const Integers &row : table) sides.insert(sides.end(), row.begin(), row.end());
      std::sort(sides.begin(), sides.end());
      sides.erase(std::unique(sides.begin(), sides.end()), sides.end());
      n *= sides.size();
      sides_.push_back(std::move(sides));
    }
    std::vector<std::vector<double>> columns;
    std::size_t stride = n;
    for (const Integers &sides : sides_) {
      stride /= sides.size();
      std::vector<double> column(n);
      for (std::size_t k = 0; k < n; ++k) column[k] = static_cast<double>(sides[k / stride % sides.size()]);
      columns.push_back(std::move(column));
    }
    std::vector<const double *> inputs;
    for (const std::vector<double> &column : columns) inputs.push_back(column.data());
    cycles_.resize(n);
    bound.evaluate(inputs.data(), n, cycles_.data());
    for (const std::vector<double> &column : columns)
      for (std::size_t k = 0; k < n; ++k)
        if (column[k] == 0.0) cycles_[k] = 0.0;
  }

  // Returns the sum over all parts of the cycles of its slowest core.
  double sum(const std::vector<Lengths> &tables, std::size_t n_cores) const {
    return sum(tables, 0, std::vector<std::size_t>(n_cores, 0));
  }

 private:
  double sum(const std::vector<Lengths> &tables, std::size_t axis, const std::vector<std::size_t> &numbers) const {
    if (axis == tables.size()) {
      double most = 0.0;
      for (const std::size_t number : numbers) most = std::max(most, cycles_[number]);
      return most;
    }
    const Integers &sides = sides_[axis];
    double total = 0.0;
    std::vector<std::size_t> next(numbers.size());
    for (const Integers &row : tables[axis]) {
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto place = std::lower_bound(sides.begin(), sides.end(), row[i]) - sides.begin();
        next[i] = numbers[i] * sides.size() + static_cast<std::size_t>(place);
      }
      total += sum(tables, axis + 1, next);
    }
    return total;
  }

  std::vector<Integers> sides_;
  std::vector<double> cycles_;
};

}  // namespace

double least_part_cycles(const BatchFunction &bound, const Axes &axes, const Integers &core_order, std::size_t most_cores,
                         std::size_t most_parts) {
  const Cores cores(axes, core_order);
  const std::vector<Integers> chosen = cores.different(most_cores);
  std::vector<Lengths> tables;
  std::size_t n_parts = 1;
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    tables.push_back(lengths_of(cores, axes, axis, chosen));
    n_parts *= tables.back().size();
  }
  const std::size_t n_cores = std::min(chosen.size(), std::max<std::size_t>(most_parts / n_parts, 1));
  for (Lengths &table : tables)
    for (Integers &row : table) row.resize(n_cores);
  return Boxes(bound, tables).sum(tables, n_cores);
}

}  // namespace t10::search
