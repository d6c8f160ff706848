#include "search_interval.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace nb = nanobind;

// One clone per vector width where the loader can pick among them; elsewhere the plain function.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__)
#define T10_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define T10_CLONES
#endif
#define T10_INLINE inline __attribute__((always_inline))

namespace t10::search {
namespace {

constexpr std::size_t kBlock = 64;
constexpr double kHuge = 1e300;

// The numbers of `t10.cost.formula.Opcode`.
enum Opcode : std::int32_t {
  kAdd, kSub, kMul, kDiv, kFloorDiv, kCeilDiv, kMod, kMin, kMax, kNeg, kAbs, kFloor, kCeil, kTrunc, kSqrt,
  kLt, kLe, kEq, kNe, kAnd, kOr, kNot, kSelect, kOpcodes
};

struct Range {
  double low;
  double high;
};

constexpr Range kAnything{-kHuge, kHuge};

inline Range hull(double a, double b, double c, double d) {
  return {std::min(std::min(a, b), std::min(c, d)), std::max(std::max(a, b), std::max(c, d))};
}

// Of the truth of a number: low where it surely holds, high where it may.
inline bool surely(Range x) { return x.low > 0.0 || x.high < 0.0; }
inline bool maybe(Range x) { return x.low != 0.0 || x.high != 0.0; }
inline Range truth(bool low, bool high) { return {low ? 1.0 : 0.0, high ? 1.0 : 0.0}; }

// A quotient of integers rounded by `f`; 0 where the divisor is 0. Divisors below 1 other than 0 do not occur in costs.
template <class F>
Range quotient(Range a, Range b, F f) {
  if (b.low < 0.0) return kAnything;
  if (b.high < 1.0) return b.high == 0.0 ? Range{0.0, 0.0} : kAnything;
  const double least = std::max(b.low, 1.0);
  Range result = hull(f(a.low / least), f(a.low / b.high), f(a.high / least), f(a.high / b.high));
  if (b.low < 1.0) result = {std::min(result.low, 0.0), std::max(result.high, 0.0)};
  return result;
}

Range divided(Range a, Range b) {
  if (b.low <= 0.0 && b.high >= 0.0) return kAnything;
  return hull(a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high);
}

Range remainder(Range a, Range b) {
  if (b.low < 1.0) return kAnything;
  const double low = std::floor(a.low / b.low);
  if (b.low == b.high && low == std::floor(a.high / b.low)) return {a.low - b.low * low, a.high - b.low * low};
  return {0.0, b.high};
}

Range arithmetic(std::int32_t opcode, Range a, Range b) {
  switch (opcode) {
    case kAdd: return {a.low + b.low, a.high + b.high};
    case kSub: return {a.low - b.high, a.high - b.low};
    case kMul: return hull(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high);
    case kDiv: return divided(a, b);
    case kFloorDiv: return quotient(a, b, [](double x) { return std::floor(x); });
    case kCeilDiv: return quotient(a, b, [](double x) { return std::ceil(x); });
    case kMod: return remainder(a, b);
    case kMin: return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case kMax: return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case kNeg: return {-a.high, -a.low};
    case kAbs:
      if (a.low >= 0.0) return a;
      if (a.high <= 0.0) return {-a.high, -a.low};
      return {0.0, std::max(-a.low, a.high)};
    case kFloor: return {std::floor(a.low), std::floor(a.high)};
    case kCeil: return {std::ceil(a.low), std::ceil(a.high)};
    case kTrunc: return {std::trunc(a.low), std::trunc(a.high)};
    default: return a.low < 0.0 ? kAnything : Range{std::sqrt(a.low), std::sqrt(a.high)};
  }
}

Range logic(std::int32_t opcode, Range a, Range b) {
  switch (opcode) {
    case kLt: return truth(a.high < b.low, a.low < b.high);
    case kLe: return truth(a.high <= b.low, a.low <= b.high);
    case kEq: return truth(a.low == a.high && b.low == b.high && a.low == b.low, a.low <= b.high && b.low <= a.high);
    case kNe: return truth(a.high < b.low || b.high < a.low, a.low != a.high || b.low != b.high || a.low != b.low);
    case kAnd: return truth(surely(a) && surely(b), maybe(a) && maybe(b));
    case kOr: return truth(surely(a) || surely(b), maybe(a) || maybe(b));
    default: return truth(!maybe(a), !surely(a));
  }
}

Range applied(std::int32_t opcode, Range a, Range b, Range c) {
  if (opcode == kSelect) {
    if (surely(a)) return b;
    if (!maybe(a)) return c;
    return {std::min(b.low, c.low), std::max(b.high, c.high)};
  }
  return opcode < kLt ? arithmetic(opcode, a, b) : logic(opcode, a, b);
}

// A block of intervals of one value.
struct Column {
  double low[kBlock];
  double high[kBlock];
};

// Whether `f` holds for all of a block; the loops have no exit, so that they are vectorised.
template <class F>
T10_INLINE bool all_of(std::size_t n, F f) {
  bool result = true;
  for (std::size_t k = 0; k < n; ++k) result &= f(k);
  return result;
}

// Quotients of numbers from 0 on by the same positive number everywhere, rounded by `f`.
template <class F>
T10_INLINE void divide(const Column &a, double divisor, Column &out, std::size_t n, F f) {
  for (std::size_t k = 0; k < n; ++k) out.low[k] = f(a.low[k] / divisor);
  for (std::size_t k = 0; k < n; ++k) out.high[k] = f(a.high[k] / divisor);
}

// What overflowed encloses nothing: say so.
T10_INLINE void clamp(Column &out, std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) out.low[k] = out.low[k] >= -kHuge ? out.low[k] : -kHuge;
  for (std::size_t k = 0; k < n; ++k) out.high[k] = out.high[k] <= kHuge ? out.high[k] : kHuge;
}

// Arithmetic on whole columns, as nearly all of every cost has it. Returns false where `applied` must do it.
T10_CLONES bool fast_arithmetic(std::int32_t opcode, const Column &a, const Column &b, Column &out, std::size_t n) {
  switch (opcode) {
    case kAdd:
      for (std::size_t k = 0; k < n; ++k) out.low[k] = a.low[k] + b.low[k];
      for (std::size_t k = 0; k < n; ++k) out.high[k] = a.high[k] + b.high[k];
      return true;
    case kSub:
      for (std::size_t k = 0; k < n; ++k) out.low[k] = a.low[k] - b.high[k];
      for (std::size_t k = 0; k < n; ++k) out.high[k] = a.high[k] - b.low[k];
      return true;
    case kMul:
      if (!all_of(n, [&](std::size_t k) { return (a.low[k] >= 0.0) & (b.low[k] >= 0.0); })) return false;
      for (std::size_t k = 0; k < n; ++k) out.low[k] = a.low[k] * b.low[k];
      for (std::size_t k = 0; k < n; ++k) out.high[k] = a.high[k] * b.high[k];
      clamp(out, n);
      return true;
    case kMin:
      for (std::size_t k = 0; k < n; ++k) out.low[k] = std::min(a.low[k], b.low[k]);
      for (std::size_t k = 0; k < n; ++k) out.high[k] = std::min(a.high[k], b.high[k]);
      return true;
    case kMax:
      for (std::size_t k = 0; k < n; ++k) out.low[k] = std::max(a.low[k], b.low[k]);
      for (std::size_t k = 0; k < n; ++k) out.high[k] = std::max(a.high[k], b.high[k]);
      return true;
    case kFloorDiv:
    case kCeilDiv:
      if (b.low[0] < 1.0 ||
          !all_of(n, [&](std::size_t k) { return (b.low[k] == b.low[0]) & (b.high[k] == b.low[0]); }))
        return false;
      if (opcode == kCeilDiv) {
        divide(a, b.low[0], out, n, [](double x) { return __builtin_ceil(x); });
      } else {
        divide(a, b.low[0], out, n, [](double x) { return __builtin_floor(x); });
      }
      return true;
    default: return false;
  }
}

// `surely` and `maybe` without branches.
T10_INLINE bool is_sure_at(const Column &a, std::size_t k) { return (a.low[k] > 0.0) | (a.high[k] < 0.0); }
T10_INLINE bool is_possible_at(const Column &a, std::size_t k) { return (a.low[k] != 0.0) | (a.high[k] != 0.0); }

// Which side a choice takes for a whole block: 1 or 2, 0 where that is not the same for all.
T10_CLONES int side_of(const Column &choice, std::size_t n) {
  if (all_of(n, [&](std::size_t k) { return is_sure_at(choice, k); })) return 1;
  return all_of(n, [&](std::size_t k) { return !is_possible_at(choice, k); }) ? 2 : 0;
}

// Choices between columns, likewise: the rules of `applied` and `logic` without branches.
T10_CLONES bool fast_choice(std::int32_t opcode, const Column &a, const Column &b, const Column &c, Column &out,
                            std::size_t n) {
  switch (opcode) {
    case kLt:
      for (std::size_t k = 0; k < n; ++k) out.low[k] = a.high[k] < b.low[k] ? 1.0 : 0.0;
      for (std::size_t k = 0; k < n; ++k) out.high[k] = a.low[k] < b.high[k] ? 1.0 : 0.0;
      return true;
    case kLe:
      for (std::size_t k = 0; k < n; ++k) out.low[k] = a.high[k] <= b.low[k] ? 1.0 : 0.0;
      for (std::size_t k = 0; k < n; ++k) out.high[k] = a.low[k] <= b.high[k] ? 1.0 : 0.0;
      return true;
    case kEq:
      for (std::size_t k = 0; k < n; ++k)
        out.low[k] = (a.low[k] == a.high[k]) & (b.low[k] == b.high[k]) & (a.low[k] == b.low[k]) ? 1.0 : 0.0;
      for (std::size_t k = 0; k < n; ++k)
        out.high[k] = (a.low[k] <= b.high[k]) & (b.low[k] <= a.high[k]) ? 1.0 : 0.0;
      return true;
    case kAnd:
      for (std::size_t k = 0; k < n; ++k) out.low[k] = is_sure_at(a, k) & is_sure_at(b, k) ? 1.0 : 0.0;
      for (std::size_t k = 0; k < n; ++k) out.high[k] = is_possible_at(a, k) & is_possible_at(b, k) ? 1.0 : 0.0;
      return true;
    case kOr:
      for (std::size_t k = 0; k < n; ++k) out.low[k] = is_sure_at(a, k) | is_sure_at(b, k) ? 1.0 : 0.0;
      for (std::size_t k = 0; k < n; ++k) out.high[k] = is_possible_at(a, k) | is_possible_at(b, k) ? 1.0 : 0.0;
      return true;
    case kSelect:
      for (std::size_t k = 0; k < n; ++k) {
        const bool is_sure = is_sure_at(a, k);
        const bool is_possible = is_possible_at(a, k);
        const double low = is_possible ? std::min(b.low[k], c.low[k]) : c.low[k];
        const double high = is_possible ? std::max(b.high[k], c.high[k]) : c.high[k];
        out.low[k] = is_sure ? b.low[k] : low;
        out.high[k] = is_sure ? b.high[k] : high;
      }
      return true;
    default: return false;
  }
}

class FormulaIntervals final : public IntervalFunction {
 public:
  explicit FormulaIntervals(nb::handle formula)
      : n_inputs_(nb::cast<std::size_t>(formula.attr("n_inputs"))),
        result_(nb::cast<std::size_t>(formula.attr("result"))) {
    for (nb::handle constant : formula.attr("constants")) constants_.push_back(nb::cast<double>(constant));
    for (nb::handle row : formula.attr("instructions"))
      instructions_.push_back({nb::cast<std::int32_t>(nb::int_(row[0])), nb::cast<std::int32_t>(row[1]),
                               nb::cast<std::int32_t>(row[2]), nb::cast<std::int32_t>(row[3])});
  }

  void least(const double *const *low, const double *const *high, std::size_t n, double *out) const override {
    const std::size_t first = n_inputs_ + constants_.size();
    std::vector<Column> values(first + instructions_.size());
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      std::fill_n(values[n_inputs_ + i].low, kBlock, constants_[i]);
      std::fill_n(values[n_inputs_ + i].high, kBlock, constants_[i]);
    }
    // The number of the block, from 1, for which a value was computed last.
    std::vector<std::size_t> block_of(values.size(), 0);
    for (std::size_t start = 0; start < n; start += kBlock) {
      const std::size_t count = std::min(kBlock, n - start);
      for (std::size_t i = 0; i < n_inputs_; ++i) {
        std::copy_n(low[i] + start, count, values[i].low);
        std::copy_n(high[i] + start, count, values[i].high);
      }
      demand(result_, count, start / kBlock + 1, values, block_of);
      // Also 0 where the bound is no number.
      for (std::size_t k = 0; k < count; ++k) out[start + k] = std::max(0.0, values[result_].low[k]);
    }
  }

 private:
  using Instruction = std::array<std::int32_t, 4>;

  // Computes a value of a block and what it needs. Of a choice that is the same for the whole block, the other side is
  // left out: costs have a formula per regime, and boxes that are neighbours are mostly in one.
  void demand(std::size_t number, std::size_t n, std::size_t block, std::vector<Column> &values,
              std::vector<std::size_t> &block_of) const {
    const std::size_t first = n_inputs_ + constants_.size();
    if (number < first || block_of[number] == block) return;
    block_of[number] = block;
    const Instruction &one = instructions_[number - first];
    const auto a = static_cast<std::size_t>(one[1]);
    const auto b = static_cast<std::size_t>(one[2]);
    const auto c = static_cast<std::size_t>(one[3]);
    demand(a, n, block, values, block_of);
    if (one[0] == kSelect) {
      const int side = side_of(values[a], n);
      if (side != 0) {
        const std::size_t chosen = side == 1 ? b : c;
        demand(chosen, n, block, values, block_of);
        std::copy_n(values[chosen].low, n, values[number].low);
        std::copy_n(values[chosen].high, n, values[number].high);
        return;
      }
    }
    demand(b, n, block, values, block_of);
    demand(c, n, block, values, block_of);
    apply(one, values.data(), values[number], n);
  }

  static void apply(const Instruction &instruction, const Column *values, Column &out, std::size_t n) {
    const Column &a = values[static_cast<std::size_t>(instruction[1])];
    const Column &b = values[static_cast<std::size_t>(instruction[2])];
    const Column &c = values[static_cast<std::size_t>(instruction[3])];
    if (fast_arithmetic(instruction[0], a, b, out, n) || fast_choice(instruction[0], a, b, c, out, n)) return;
    for (std::size_t k = 0; k < n; ++k) {
      const Range range = applied(instruction[0], {a.low[k], a.high[k]}, {b.low[k], b.high[k]}, {c.low[k], c.high[k]});
      out.low[k] = range.low;
      out.high[k] = range.high;
    }
    clamp(out, n);
  }

  std::size_t n_inputs_;
  std::size_t result_;
  std::vector<double> constants_;
  std::vector<Instruction> instructions_;
};

}  // namespace

std::unique_ptr<IntervalFunction> interval_function(nb::handle description) {
  if (!nb::hasattr(description, "instructions")) return nullptr;
  return std::make_unique<FormulaIntervals>(description);
}

}  // namespace t10::search
