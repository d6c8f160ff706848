// The time x memory front found so far, and what it already beats.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace t10::search {

// A plan on the front: which F_op, and its ft rows of all slots one after the other.
struct Point {
  std::int64_t n_bytes;
  double cycles;
  std::size_t f_row;
  std::vector<std::int32_t> ft;

  bool precedes(const Point &other) const {
    return f_row != other.f_row ? f_row < other.f_row : ft < other.ft;
  }
};

// A lower bound of the cycles of some plans, given the bytes m >= n_bytes they hold: memory can be saved, but what is not
// held must arrive, in steps no larger than what is held.
//
// Of operands that are `rest_bytes` when whole, m - kept_bytes are held. So (rest_bytes - held) bytes arrive, and their
// longest ring, hence the number of sub-tasks, is at least rest_bytes / held; it is at least n_steps anyway.
struct Bound {
  std::int64_t n_bytes = 0;
  double cycles = 0.0;  // whatever m: all that is certain, n_steps included
  double n_steps = 1.0;
  double kept_bytes = 0.0;
  double rest_bytes = 0.0;
  double cycles_per_step = 0.0;
  double cycles_per_byte = 0.0;

  double at(std::int64_t m) const {
    const double held = static_cast<double>(m) - kept_bytes;
    if (held >= rest_bytes || held <= 0.0) return cycles;
    return cycles + cycles_per_step * std::max(0.0, rest_bytes / held - n_steps) + cycles_per_byte * (rest_bytes - held);
  }
};

// Points by rising bytes and falling cycles. Of plans with equal bytes and cycles the lexicographically first counts.
class Front {
 public:
  const std::vector<Point> &points() const { return points_; }

  // Whether every plan of F_op `f_row` with at least so many bytes and cycles is beaten.
  bool beats(std::int64_t n_bytes, double cycles, std::size_t f_row) const {
    const std::size_t i = upper(n_bytes);
    if (i == 0) return false;
    const Point &point = points_[i - 1];
    const double least = whole(cycles);
    if (point.cycles != least) return point.cycles < least;
    return point.n_bytes < n_bytes || point.f_row < f_row;
  }

  // Whether every plan of F_op `f_row` is beaten that takes at least as long as a bound says for its memory.
  bool beats(const Bound &bound, std::size_t f_row) const {
    const std::size_t first = upper(bound.n_bytes);
    if (first == 0) return false;
    const double least = whole(bound.cycles);
    for (std::size_t i = first - 1; i < points_.size(); ++i) {
      if (is_faster(points_[i], least, f_row)) return true;
      if (i + 1 == points_.size()) return false;
      // Up to the next point this one is the best; the bound falls with memory and is least at the end.
      if (!is_faster(points_[i], whole(bound.at(points_[i + 1].n_bytes)), f_row)) return false;
    }
    return false;
  }

  // Whether a plan would be on the front.
  bool wants(const Point &point) const {
    const std::size_t i = upper(point.n_bytes);
    if (i == 0) return true;
    const Point &other = points_[i - 1];
    if (other.cycles != point.cycles) return other.cycles > point.cycles;
    return other.n_bytes == point.n_bytes && point.precedes(other);
  }

  // Takes a plan that `wants` approved; what it beats goes.
  void insert(Point point) {
    std::size_t first = upper(point.n_bytes);
    if (first > 0 && points_[first - 1].n_bytes == point.n_bytes) --first;
    std::size_t last = first;
    while (last < points_.size() && points_[last].cycles >= point.cycles) ++last;
    const auto begin = points_.begin();
    const auto place = points_.erase(begin + static_cast<std::ptrdiff_t>(first),
                                     begin + static_cast<std::ptrdiff_t>(last));
    points_.insert(place, std::move(point));
  }

 private:
  // Cycles are whole numbers, so a bound may be rounded up, what the sums behind it lost in rounding aside.
  static double whole(double bound) { return std::ceil(bound - 1e-3); }

  static bool is_faster(const Point &point, double cycles, std::size_t f_row) {
    return point.cycles < cycles || (point.cycles == cycles && point.f_row < f_row);
  }

  // Number of points with at most so many bytes.
  std::size_t upper(std::int64_t n_bytes) const {
    const auto found = std::upper_bound(points_.begin(), points_.end(), n_bytes,
                                        [](std::int64_t value, const Point &point) { return value < point.n_bytes; });
    return static_cast<std::size_t>(found - points_.begin());
  }

  std::vector<Point> points_;
};

}  // namespace t10::search
