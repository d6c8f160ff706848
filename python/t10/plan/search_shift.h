// Cycles of a shift for every number of bytes, and a straight line below them.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "batch_function.h"

namespace t10::search {

// Every multiple of `granule` up to `limit` bytes is tabulated: a plan that fits a core moves no more at a time.
class ShiftTable {
 public:
  ShiftTable(const BatchFunction &cost, std::int64_t limit, std::int64_t granule) : granule_(granule) {
    const auto n = static_cast<std::size_t>(limit / granule + 1);
    std::vector<double> n_bytes(n);
    for (std::size_t i = 0; i < n; ++i) n_bytes[i] = static_cast<double>(i) * static_cast<double>(granule);
    cycles_.resize(n);
    const double *column = n_bytes.data();
    cost.evaluate(&column, n, cycles_.data());
    for (std::size_t i = 0; i < n; ++i)
      if (!(cycles_[i] >= 0.0) || cycles_[i] != static_cast<double>(static_cast<std::int64_t>(cycles_[i])))
        throw std::invalid_argument("a cost function gave " + std::to_string(cycles_[i]) + " cycles for a shift of " +
                                    std::to_string(static_cast<std::int64_t>(n_bytes[i])) +
                                    " bytes (expected a whole number, 0 or more)");
    fit_line(n_bytes);
  }

  std::int64_t granule() const { return granule_; }
  std::int64_t limit() const { return static_cast<std::int64_t>(cycles_.size() - 1) * granule_; }
  double operator[](std::int64_t n_bytes) const { return cycles_[static_cast<std::size_t>(n_bytes / granule_)]; }

  // A shift of b > 0 bytes takes at least least() + rate() * b cycles.
  double least() const { return least_; }
  double rate() const { return rate_; }

 private:
  static constexpr double kFarBytes = 512.0;

  // Cycles rise in steps of a word, so the slope is taken from larger shifts and the line then lowered until it is below
  // all of them.
  void fit_line(const std::vector<double> &n_bytes) {
    const std::size_t n = cycles_.size();
    if (n == 1) return;
    const double first = *std::min_element(cycles_.begin() + 1, cycles_.end());
    double rate = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < n; ++i)
      if (n_bytes[i] >= kFarBytes) rate = std::min(rate, (cycles_[i] - first) / n_bytes[i]);
    rate_ = rate < std::numeric_limits<double>::infinity() ? rate : 0.0;
    least_ = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < n; ++i) least_ = std::min(least_, cycles_[i] - rate_ * n_bytes[i]);
    if (least_ >= 0.0) return;
    least_ = first;
    rate_ = 0.0;
  }

  std::int64_t granule_;
  std::vector<double> cycles_;
  double least_ = 0.0;
  double rate_ = 0.0;
};

}  // namespace t10::search
