// Answers of a cost function, kept by argument, and asked in batches.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "batch_function.h"

namespace t10::search {

// A hash table from rows of `width` integers, kept as `Stored`, to numbers that are filled in later, many at once.
template <class Stored>
class Memo {
 public:
  Memo(std::size_t width, const char *question) : width_(width), question_(question), table_(1024, kEmpty) {}

  // Tells the processor that `row` will be looked up.
  template <class Integer>
  void prefetch(const Integer *row) const {
    __builtin_prefetch(table_.data() + (hash(row) & (table_.size() - 1)));
  }

  // Returns the index under which the answer to `row` can be read once `answer` has run.
  template <class Integer>
  std::uint32_t index(const Integer *row) {
    std::size_t place = hash(row) & (table_.size() - 1);
    while (table_[place] != kEmpty) {
      if (is_row(table_[place], row)) return table_[place];
      place = (place + 1) & (table_.size() - 1);
    }
    const auto added = static_cast<std::uint32_t>(size());
    table_[place] = added;
    for (std::size_t i = 0; i < width_; ++i) rows_.push_back(static_cast<Stored>(row[i]));
    ++n_rows_;
    if (2 * size() > table_.size()) grow();
    return added;
  }

  // The same for n rows, one after the other. Where they are likely to be found is fetched for many at a time.
  template <class Integer>
  void indices(const Integer *rows, std::size_t n, std::uint32_t *out) {
    constexpr std::size_t kTogether = 16;
    for (std::size_t first = 0; first < n; first += kTogether) {
      const std::size_t last = std::min(n, first + kTogether);
      for (std::size_t i = first; i < last; ++i) {
        const std::uint32_t likely = table_[hash(rows + i * width_) & (table_.size() - 1)];
        if (likely == kEmpty) continue;
        __builtin_prefetch(rows_.data() + static_cast<std::size_t>(likely) * width_);
        if (is_answered(likely)) __builtin_prefetch(values_.data() + likely);
      }
      for (std::size_t i = first; i < last; ++i) out[i] = index(rows + i * width_);
    }
  }

  std::size_t size() const { return n_rows_; }
  bool is_answered(std::uint32_t index) const { return index < values_.size(); }
  double operator[](std::uint32_t index) const { return values_[index]; }

  // Answers all new rows; `ask(columns, n, out)` takes the columns of the rows.
  template <class Ask>
  void answer(Ask ask) {
    const std::size_t first = values_.size();
    const std::size_t n = size() - first;
    if (n == 0) return;
    columns_.resize(width_ * n);
    pointers_.resize(width_);
    for (std::size_t i = 0; i < width_; ++i) {
      for (std::size_t k = 0; k < n; ++k)
        columns_[i * n + k] = static_cast<double>(rows_[(first + k) * width_ + i]);
      pointers_[i] = columns_.data() + i * n;
    }
    values_.resize(first + n);
    ask(pointers_.data(), n, values_.data() + first);
    for (std::size_t k = first; k < values_.size(); ++k) check(values_[k]);
  }

 private:
  static constexpr std::uint32_t kEmpty = 0xffffffffU;

  template <class Integer>
  std::size_t hash(const Integer *row) const {
    std::uint64_t h = 0;
    for (std::size_t i = 0; i < width_; ++i) h = (h ^ static_cast<std::uint64_t>(row[i])) * 0x9e3779b97f4a7c15ULL;
    return h ^ h >> 29;
  }

  template <class Integer>
  bool is_row(std::uint32_t index, const Integer *row) const {
    const Stored *own = rows_.data() + static_cast<std::size_t>(index) * width_;
    for (std::size_t i = 0; i < width_; ++i)
      if (own[i] != row[i]) return false;
    return true;
  }

  void grow() {
    table_.assign(2 * table_.size(), kEmpty);
    for (std::size_t k = 0; k < size(); ++k) {
      std::size_t place = hash(rows_.data() + k * width_) & (table_.size() - 1);
      while (table_[place] != kEmpty) place = (place + 1) & (table_.size() - 1);
      table_[place] = static_cast<std::uint32_t>(k);
    }
  }

  // Bounds and sums need whole numbers from 0 on: the results of a cost function are checked.
  void check(double value) const {
    if (!(value >= 0.0) || value > 9007199254740992.0 || value != std::floor(value))
      throw std::invalid_argument("a cost function gave " + std::to_string(value) + " cycles for " + question_ +
                                  " (expected a whole number, 0 or more)");
  }

  std::size_t width_;
  std::size_t n_rows_ = 0;  // counted: a row of an operator without axes has no elements
  std::string question_;
  std::vector<std::uint32_t> table_;
  std::vector<Stored> rows_;
  std::vector<double> values_;
  std::vector<double> columns_;
  std::vector<const double *> pointers_;
};

}  // namespace t10::search
