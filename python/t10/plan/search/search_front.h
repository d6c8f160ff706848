// The time x memory front found so far, and what it already beats.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
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
// Of operands with sub-tensors of `wholes` bytes, m - kept_bytes are held. A ring of one of them has at least whole / held
// members, and a plan as many sub-tasks as its longest ring. With at most d operands that rotate along an axis, its
// number of steps to the power of d is at least the product of their factors, so that the number of sub-tasks to the
// power of d is at least the product of all rings. A byte of a weight that is not held takes `weight_cycles` to arrive,
// one of an activation `activation_cycles` more than if it had been fetched before.
struct Bound {
  std::int64_t n_bytes = 0;
  double cycles = 0.0;   // whatever m: all that is certain, n_steps included
  double n_steps = 1.0;
  double kept_bytes = 0.0;
  double rings = 1.0;    // product of the rings of what is kept
  double root = 1.0;     // 1 / d
  double cycles_per_step = 0.0;
  std::size_t n_wholes = 0;
  std::array<double, 16> wholes;  // rising
  double fixed_bytes = 0.0;       // at least held of operands that are neither of the next two
  double weight_bytes = 0.0;
  double weight_cycles = 0.0;
  double activation_bytes = 0.0;
  double activation_cycles = 0.0;

  double at(std::int64_t m) const {
    const double held = static_cast<double>(m) - kept_bytes;
    if (held <= 0.0) return cycles;
    // The product of the rings is least where the operands share the memory evenly, none more than whole.
    double left = held;
    double product = rings;
    double longest = 1.0;
    for (std::size_t i = 0; i < n_wholes; ++i) {
      const double share = left / static_cast<double>(n_wholes - i);
      if (wholes[i] <= share) {
        left -= wholes[i];
        continue;
      }
      for (std::size_t j = i; j < n_wholes; ++j) product *= wholes[j] / share;
      longest = wholes[n_wholes - 1] / left;
      break;
    }
    const double n = std::max({n_steps, longest, root == 0.5 ? std::sqrt(product) : std::pow(product, root)});
    const double weights = std::min(std::max(held - fixed_bytes, 0.0), weight_bytes);
    const double activations = std::min(std::max(held - fixed_bytes - weights, 0.0), activation_bytes);
    return cycles + cycles_per_step * (n - n_steps) + weight_cycles * (weight_bytes - weights) +
           activation_cycles * (activation_bytes - activations);
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
    const Mark &mark = marks_[i - 1];
    const double least = whole(cycles);
    if (mark.cycles != least) return mark.cycles < least;
    return mark.n_bytes < n_bytes || mark.f_row < f_row;
  }

  // Whether every plan of F_op `f_row` is beaten that takes at least as long as a bound says for its memory.
  bool beats(const Bound &bound, std::size_t f_row) const {
    const std::size_t first = upper(bound.n_bytes);
    if (first == 0) return false;
    const double least = whole(bound.cycles);
    for (std::size_t i = first - 1; i < marks_.size(); ++i) {
      if (is_faster(marks_[i], least, f_row)) return true;
      if (i + 1 == marks_.size()) return false;
      // Up to the next point this one is the best; the bound falls with memory and is least at the end.
      if (!is_faster(marks_[i], whole(bound.at(marks_[i + 1].n_bytes)), f_row)) return false;
    }
    return false;
  }

  // Returns the most cycles with which a plan of so many bytes might be on the front.
  double most(std::int64_t n_bytes) const {
    const std::size_t i = upper(n_bytes);
    return i == 0 ? std::numeric_limits<double>::infinity() : points_[i - 1].cycles;
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
    mark();
  }

 private:
  struct Mark {
    std::int64_t n_bytes;
    double cycles;
    std::size_t f_row;
  };

  static constexpr std::size_t kBuckets = 1024;

  // Cycles are whole numbers, so a bound may be rounded up, what the sums behind it lost in rounding aside.
  static double whole(double bound) { return std::ceil(bound - 1e-3); }

  static bool is_faster(const Mark &mark, double cycles, std::size_t f_row) {
    return mark.cycles < cycles || (mark.cycles == cycles && mark.f_row < f_row);
  }

  // Copies what queries need, and notes for ranges of bytes how many points lie before them.
  void mark() {
    marks_.clear();
    for (const Point &point : points_) marks_.push_back({point.n_bytes, point.cycles, point.f_row});
    shift_ = 0;
    while (static_cast<std::size_t>(marks_.back().n_bytes >> shift_) >= kBuckets) ++shift_;
    before_.assign(kBuckets, marks_.size());
    for (std::size_t i = marks_.size(); i-- > 0;) {
      const auto bucket = static_cast<std::size_t>(marks_[i].n_bytes >> shift_);
      const std::size_t previous = i == 0 ? 0 : static_cast<std::size_t>(marks_[i - 1].n_bytes >> shift_) + 1;
      for (std::size_t b = previous; b <= bucket; ++b) before_[b] = i;
    }
  }

  // Number of points with at most so many bytes.
  std::size_t upper(std::int64_t n_bytes) const {
    if (marks_.empty()) return 0;
    const auto bucket = static_cast<std::size_t>(n_bytes >> shift_);
    if (bucket >= kBuckets) return marks_.size();
    std::size_t i = before_[bucket];
    while (i < marks_.size() && marks_[i].n_bytes <= n_bytes) ++i;
    return i;
  }

  std::vector<Point> points_;
  std::vector<Mark> marks_;
  std::vector<std::size_t> before_;
  int shift_ = 0;
};

}  // namespace t10::search
