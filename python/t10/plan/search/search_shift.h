// Cycles of a shift for every number of bytes, and a straight line below them.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "batch_function.h"
#include "interval_function.h"

namespace t10::search {

// Multiples of `granule` up to `limit` bytes: the most a core can hold, so that no shift moves more at a time. What a real
// core holds is tabulated; beyond (memory taken to be unlimited) the function is asked each time.
class ShiftTable {
 public:
  ShiftTable(std::unique_ptr<BatchFunction> cost, const IntervalFunction *least, std::int64_t limit,
             std::int64_t granule)
      : cost_(std::move(cost)), limit_(limit), granule_(granule) {
    const auto n = static_cast<std::size_t>(std::min(limit, kMostTabulated) / granule + 1);
    std::vector<double> n_bytes(n);
    for (std::size_t i = 0; i < n; ++i) n_bytes[i] = static_cast<double>(i) * static_cast<double>(granule);
    cycles_.resize(n);
    const double *column = n_bytes.data();
    cost_->evaluate(&column, n, cycles_.data());
    for (std::size_t i = 0; i < n; ++i) check(cycles_[i], n_bytes[i]);
    std::vector<double> cycles = cycles_;
    if (limit > kMostTabulated) append_blocks(least, n_bytes, cycles);
    fit_line(n_bytes, cycles);
  }

  std::int64_t limit() const { return limit_; }

  double operator[](std::int64_t n_bytes) const {
    const auto place = static_cast<std::size_t>(n_bytes / granule_);
    return place < cycles_.size() ? cycles_[place] : asked(n_bytes);
  }

  // A shift of b > 0 bytes, at most the limit, takes at least least() + rate() * b cycles.
  double least() const { return least_; }
  double rate() const { return rate_; }

 private:
  static constexpr std::int64_t kMostTabulated = std::int64_t{1} << 22;
  static constexpr double kFarBytes = 512.0;
  static constexpr double kBlockRatio = 1.02;

  static void check(double cycles, double n_bytes) {
    if (!(cycles >= 0.0) || cycles != std::floor(cycles))
      throw std::invalid_argument("a cost function gave " + std::to_string(cycles) + " cycles for a shift of " +
                                  std::to_string(static_cast<std::int64_t>(n_bytes)) +
                                  " bytes (expected a whole number, 0 or more)");
  }

  double asked(std::int64_t n_bytes) const {
    const auto argument = static_cast<double>(n_bytes);
    const double *column = &argument;
    double cycles = 0.0;
    cost_->evaluate(&column, 1, &cycles);
    check(cycles, argument);
    return cycles;
  }

  // Beyond the table: blocks of sizes, each by its greatest and by a bound of all.
  void append_blocks(const IntervalFunction *least, std::vector<double> &n_bytes, std::vector<double> &cycles) const {
    for (double low = n_bytes.back(); low <= static_cast<double>(limit_);) {
      const double high = std::floor(low * kBlockRatio);
      const double *const lows = &low;
      const double *const highs = &high;
      double bound = 0.0;
      if (least != nullptr) least->least(&lows, &highs, 1, &bound);
      n_bytes.push_back(high);
      cycles.push_back(bound);
      low = high;
    }
  }

  // Cycles rise in steps of a word, so the slope is taken from larger shifts and the line then lowered until it is below
  // all of them.
  void fit_line(const std::vector<double> &n_bytes, const std::vector<double> &cycles) {
    const std::size_t n = cycles.size();
    if (n == 1) return;
    const double first = *std::min_element(cycles.begin() + 1, cycles.end());
    double rate = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < n; ++i)
      if (n_bytes[i] >= kFarBytes) rate = std::min(rate, (cycles[i] - first) / n_bytes[i]);
    rate_ = rate < std::numeric_limits<double>::infinity() ? rate : 0.0;
    least_ = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < n; ++i) least_ = std::min(least_, cycles[i] - rate_ * n_bytes[i]);
    if (least_ >= 0.0) return;
    least_ = first;
    rate_ = 0.0;
  }

  std::unique_ptr<BatchFunction> cost_;
  std::int64_t limit_;
  std::int64_t granule_;
  std::vector<double> cycles_;
  double least_ = 0.0;
  double rate_ = 0.0;
};

}  // namespace t10::search
