#include "interval_function.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../core/chunks.h"
#include "formula_code.h"

namespace nb = nanobind;

namespace t10 {
namespace {

constexpr std::size_t kBlock = 64;
constexpr double kHuge = 1e300;

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

// A chunk is at most an eighth longer than an even number of elements must be.
Range chunk(Range a, Range b) {
  if (b.low < 1.0) return kAnything;
  const auto at = [](double n_slots, double n_parts, const auto &f) {
    return static_cast<double>(f(static_cast<std::int64_t>(n_slots), static_cast<std::int64_t>(n_parts)));
  };
  if (a.low == a.high && b.low == b.high && a.low < 1e15) {
    const double exact = at(a.low, b.low, window_chunk);
    return {exact, exact};
  }
  const double most = std::ceil(a.high / b.low) + 1.0;
  return {std::ceil(a.low / b.high), most + std::floor(most / 8.0)};
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
    case kChunk: return chunk(a, b);
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

bool is_unary(std::int32_t opcode) { return (opcode >= kNeg && opcode <= kSqrt) || opcode == kNot; }

Range applied(std::int32_t opcode, Range a, Range b) {
  return opcode < kLt ? arithmetic(opcode, a, b) : logic(opcode, a, b);
}

// A block of intervals of one value.
struct Column {
  double low[kBlock];
  double high[kBlock];
};

// Intervals of a block, or the same number in all of them; `is_from_zero` says that none is below 0.
struct Operand {
  const Column *column = nullptr;
  double constant = 0.0;
  bool is_from_zero = false;
};

// Applies `f` to the intervals of two operands; one loop per mix of columns and constants.
template <class F>
T10_INLINE void each(const Operand &a, const Operand &b, Column &out, F f) {
  if (b.column == nullptr) {
    const Range y{b.constant, b.constant};
    for (std::size_t k = 0; k < kBlock; ++k) {
      const Range result = f(Range{a.column->low[k], a.column->high[k]}, y);
      out.low[k] = result.low;
      out.high[k] = result.high;
    }
  } else if (a.column == nullptr) {
    const Range x{a.constant, a.constant};
    for (std::size_t k = 0; k < kBlock; ++k) {
      const Range result = f(x, Range{b.column->low[k], b.column->high[k]});
      out.low[k] = result.low;
      out.high[k] = result.high;
    }
  } else {
    for (std::size_t k = 0; k < kBlock; ++k) {
      const Range result = f(Range{a.column->low[k], a.column->high[k]}, Range{b.column->low[k], b.column->high[k]});
      out.low[k] = result.low;
      out.high[k] = result.high;
    }
  }
}

T10_INLINE double least_of(double a, double b) { return b < a ? b : a; }
T10_INLINE double most_of(double a, double b) { return a < b ? b : a; }

// What overflowed encloses nothing: say so.
T10_INLINE Range clamped(Range x) { return {x.low >= -kHuge ? x.low : -kHuge, x.high <= kHuge ? x.high : kHuge}; }

// `quotient` by numbers from 0 on, without branches; with `is_from_zero` the dividend is from 0 on, too.
template <bool is_from_zero, class F>
T10_INLINE Range whole_quotient(Range a, Range b, F f) {
  const double least = most_of(b.low, 1.0);
  const double most = most_of(b.high, 1.0);
  const double low = f(is_from_zero ? a.low / most : least_of(a.low / least, a.low / most));
  const double high = f(is_from_zero ? a.high / least : most_of(a.high / least, a.high / most));
  const bool may_be_zero = b.low < 1.0;
  const bool is_below_one = b.high < 1.0;
  const Range far{b.high == 0.0 ? 0.0 : -kHuge, b.high == 0.0 ? 0.0 : kHuge};
  return {is_below_one ? far.low : may_be_zero ? least_of(low, 0.0) : low,
          is_below_one ? far.high : may_be_zero ? most_of(high, 0.0) : high};
}

T10_INLINE Range whole_remainder(Range a, Range b) {
  const double first = __builtin_floor(a.low / b.low);
  const bool is_same = (b.low == b.high) & (first == __builtin_floor(a.high / b.low));
  const Range found{is_same ? a.low - b.low * first : 0.0, is_same ? a.high - b.low * first : b.high};
  return b.low < 1.0 ? kAnything : found;
}

T10_INLINE Range product(Range a, Range b) {
  const double ll = a.low * b.low, lh = a.low * b.high, hl = a.high * b.low, hh = a.high * b.high;
  return {least_of(least_of(ll, lh), least_of(hl, hh)), most_of(most_of(ll, lh), most_of(hl, hh))};
}

// `surely` and `maybe` without branches.
T10_INLINE bool is_sure(Range x) { return (x.low > 0.0) | (x.high < 0.0); }
T10_INLINE bool is_possible(Range x) { return (x.low != 0.0) | (x.high != 0.0); }

T10_CLONES bool is_from_zero(const Column &column) {
  std::int64_t n = 0;
  for (std::size_t k = 0; k < kBlock; ++k) n += column.low[k] >= 0.0 ? 1 : 0;
  return n == kBlock;
}

// Quotients by numbers from 0 on, rounded by `f`; by one number they rise with the dividend whatever it is.
template <class F>
T10_INLINE bool divide(const Operand &a, const Operand &b, Column &out, F f) {
  if (b.column == nullptr && b.constant >= 1.0) {
    each(a, b, out, [=](Range x, Range y) { return Range{f(x.low / y.low), f(x.high / y.low)}; });
  } else if (a.is_from_zero) {
    each(a, b, out, [=](Range x, Range y) { return whole_quotient<true>(x, y, f); });
  } else {
    each(a, b, out, [=](Range x, Range y) { return whole_quotient<false>(x, y, f); });
  }
  return true;
}

// Arithmetic on whole columns, as nearly all of every cost has it. Returns false where `applied` must do it.
T10_CLONES bool fast_arithmetic(std::int32_t opcode, const Operand &a, const Operand &b, Column &out) {
  const bool are_from_zero = a.is_from_zero && b.is_from_zero;
  switch (opcode) {
    case kAdd: each(a, b, out, [](Range x, Range y) { return Range{x.low + y.low, x.high + y.high}; }); return true;
    case kSub: each(a, b, out, [](Range x, Range y) { return Range{x.low - y.high, x.high - y.low}; }); return true;
    case kMul:
      if (are_from_zero) {
        each(a, b, out, [](Range x, Range y) { return clamped({x.low * y.low, x.high * y.high}); });
      } else {
        each(a, b, out, [](Range x, Range y) { return clamped(product(x, y)); });
      }
      return true;
    case kMin:
      each(a, b, out, [](Range x, Range y) { return Range{least_of(x.low, y.low), least_of(x.high, y.high)}; });
      return true;
    case kMax:
      each(a, b, out, [](Range x, Range y) { return Range{most_of(x.low, y.low), most_of(x.high, y.high)}; });
      return true;
    case kFloorDiv:
    case kCeilDiv:
      if (!b.is_from_zero) return false;
      if (opcode == kCeilDiv) return divide(a, b, out, [](double x) { return __builtin_ceil(x); });
      return divide(a, b, out, [](double x) { return __builtin_floor(x); });
    case kMod: each(a, b, out, [](Range x, Range y) { return clamped(whole_remainder(x, y)); }); return true;
    default: return false;
  }
}

// Comparisons and logic on whole columns, likewise: the rules of `logic` without branches.
T10_CLONES bool fast_logic(std::int32_t opcode, const Operand &a, const Operand &b, Column &out) {
  const auto truth_of = [](bool low, bool high) { return Range{low ? 1.0 : 0.0, high ? 1.0 : 0.0}; };
  switch (opcode) {
    case kLt: each(a, b, out, [=](Range x, Range y) { return truth_of(x.high < y.low, x.low < y.high); }); return true;
    case kLe: each(a, b, out, [=](Range x, Range y) { return truth_of(x.high <= y.low, x.low <= y.high); }); return true;
    case kEq:
      each(a, b, out, [=](Range x, Range y) {
        return truth_of((x.low == x.high) & (y.low == y.high) & (x.low == y.low), (x.low <= y.high) & (y.low <= x.high));
      });
      return true;
    case kNe:
      each(a, b, out, [=](Range x, Range y) {
        return truth_of((x.high < y.low) | (y.high < x.low), (x.low != x.high) | (y.low != y.high) | (x.low != y.low));
      });
      return true;
    case kAnd:
      each(a, b, out, [=](Range x, Range y) { return truth_of(is_sure(x) & is_sure(y), is_possible(x) & is_possible(y)); });
      return true;
    case kOr:
      each(a, b, out, [=](Range x, Range y) { return truth_of(is_sure(x) | is_sure(y), is_possible(x) | is_possible(y)); });
      return true;
    case kNot: each(a, a, out, [=](Range x, Range) { return truth_of(!is_possible(x), !is_sure(x)); }); return true;
    default: return false;
  }
}

// Which side a choice takes for a whole block: 1 or 2, 0 where that is not the same for all.
T10_CLONES int side_of(const Column &choice) {
  std::int64_t n_sure = 0;
  std::int64_t n_possible = 0;
  for (std::size_t k = 0; k < kBlock; ++k) {
    const Range x{choice.low[k], choice.high[k]};
    n_sure += is_sure(x) ? 1 : 0;
    n_possible += is_possible(x) ? 1 : 0;
  }
  return n_sure == kBlock ? 1 : n_possible == 0 ? 2 : 0;
}

T10_CLONES void select(const Column &choice, const Operand &a, const Operand &b, Column &out) {
  const auto chosen = [&](std::size_t k, Range x, Range y) {
    const Range c{choice.low[k], choice.high[k]};
    const double low = is_possible(c) ? least_of(x.low, y.low) : y.low;
    const double high = is_possible(c) ? most_of(x.high, y.high) : y.high;
    out.low[k] = is_sure(c) ? x.low : low;
    out.high[k] = is_sure(c) ? x.high : high;
  };
  const Range p{a.constant, a.constant};
  const Range q{b.constant, b.constant};
  if (a.column != nullptr && b.column != nullptr) {
    for (std::size_t k = 0; k < kBlock; ++k)
      chosen(k, {a.column->low[k], a.column->high[k]}, {b.column->low[k], b.column->high[k]});
  } else if (a.column != nullptr) {
    for (std::size_t k = 0; k < kBlock; ++k) chosen(k, {a.column->low[k], a.column->high[k]}, q);
  } else if (b.column != nullptr) {
    for (std::size_t k = 0; k < kBlock; ++k) chosen(k, p, {b.column->low[k], b.column->high[k]});
  } else {
    for (std::size_t k = 0; k < kBlock; ++k) chosen(k, p, q);
  }
}

// Whether no result is below 0 because no operand is.
bool keeps_from_zero(std::int32_t opcode) {
  switch (opcode) {
    case kAdd: case kMul: case kFloorDiv: case kCeilDiv: case kMod: case kMin: case kMax: case kChunk: return true;
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
    static thread_local Scratch scratch;
    start(scratch);
    for (std::size_t first = 0; first < n; first += kBlock) {
      const std::size_t count = std::min(kBlock, n - first);
      for (std::size_t i = 0; i < n_inputs_; ++i) {
        Column &column = scratch.columns[i];
        std::copy_n(low[i] + first, count, column.low);
        std::copy_n(high[i] + first, count, column.high);
        // Rows beyond the last are computed, too: they are copies of one that is asked for.
        std::fill(column.low + count, column.low + kBlock, column.low[0]);
        std::fill(column.high + count, column.high + kBlock, column.high[0]);
        scratch.values[i] = {&column, 0.0, is_from_zero(column)};
      }
      ++scratch.block;
      const Operand &result = demand(result_, scratch);
      // Also 0 where the bound is no number.
      for (std::size_t k = 0; k < count; ++k)
        out[first + k] = std::max(0.0, result.column != nullptr ? result.column->low[k] : result.constant);
    }
  }

 private:
  using Instruction = std::array<std::int32_t, 4>;

  // One for every thread, for all formulas: what it holds of another formula, or another block, is never read.
  struct Scratch {
    std::vector<Column> columns;      // of inputs and instructions
    std::vector<Operand> values;      // of inputs, constants and instructions
    std::vector<std::size_t> blocks;  // per value: the block for which it was computed last
    std::size_t block = 0;
  };

  void start(Scratch &scratch) const {
    const std::size_t n_values = n_inputs_ + constants_.size() + instructions_.size();
    if (scratch.values.size() < n_values) {
      scratch.columns.resize(n_values);
      scratch.values.resize(n_values);
      scratch.blocks.resize(n_values, 0);
    }
    for (std::size_t i = 0; i < constants_.size(); ++i)
      scratch.values[n_inputs_ + i] = {nullptr, constants_[i], constants_[i] >= 0.0};
  }

  // Returns a value of the block, computed with what it needs. Of a choice that is the same for the whole block, the
  // other side is left out: costs have a formula per regime, and boxes that are neighbours are mostly in one.
  const Operand &demand(std::size_t number, Scratch &scratch) const {
    Operand &value = scratch.values[number];
    const std::size_t first = n_inputs_ + constants_.size();
    if (number < first || scratch.blocks[number] == scratch.block) return value;
    scratch.blocks[number] = scratch.block;
    const Instruction &one = instructions_[number - first];
    const Operand &a = demand(static_cast<std::size_t>(one[1]), scratch);
    Column &out = scratch.columns[number];
    if (one[0] == kSelect) {
      value = selected(one, a, out, scratch);
      return value;
    }
    const Operand &b = is_unary(one[0]) ? a : demand(static_cast<std::size_t>(one[2]), scratch);
    if (const Operand *const same = shortcut(one[0], a, b)) return value = *same;
    value = {&out, 0.0, false};
    if (a.column == nullptr && b.column == nullptr) return value = fixed(one[0], a.constant, b.constant, out);
    if (fast_arithmetic(one[0], a, b, out)) {
      value.is_from_zero = keeps_from_zero(one[0]) && a.is_from_zero && b.is_from_zero;
      if (one[0] == kSub) value.is_from_zero = is_from_zero(out);
    } else if (fast_logic(one[0], a, b, out)) {
      value.is_from_zero = true;
    } else {
      slow(one[0], a, b, out);
    }
    return value;
  }

  Operand selected(const Instruction &one, const Operand &choice, Column &out, Scratch &scratch) const {
    const auto b = static_cast<std::size_t>(one[2]);
    const auto c = static_cast<std::size_t>(one[3]);
    if (choice.column == nullptr) return demand(choice.constant != 0.0 ? b : c, scratch);
    const int side = side_of(*choice.column);
    if (side != 0) return demand(side == 1 ? b : c, scratch);
    const Operand &first = demand(b, scratch);
    const Operand &second = demand(c, scratch);
    select(*choice.column, first, second, out);
    return {&out, 0.0, first.is_from_zero && second.is_from_zero};
  }

  // Returns the operand that an operation with a neutral or absorbing number gives, nullptr for any other.
  static const Operand *shortcut(std::int32_t opcode, const Operand &a, const Operand &b) {
    const auto is = [](const Operand &x, double number) { return x.column == nullptr && x.constant == number; };
    switch (opcode) {
      case kAdd: return is(b, 0.0) ? &a : is(a, 0.0) ? &b : nullptr;
      case kSub: return is(b, 0.0) ? &a : nullptr;
      case kMul: return is(a, 0.0) || is(b, 1.0) ? &a : is(b, 0.0) || is(a, 1.0) ? &b : nullptr;
      default: return nullptr;
    }
  }

  // Returns what an operation gives on two numbers: a number again, or where that is not certain an interval.
  static Operand fixed(std::int32_t opcode, double a, double b, Column &out) {
    const Range result = clamped(applied(opcode, {a, a}, {b, b}));
    if (result.low == result.high) return {nullptr, result.low, result.low >= 0.0};
    std::fill_n(out.low, kBlock, result.low);
    std::fill_n(out.high, kBlock, result.high);
    return {&out, 0.0, result.low >= 0.0};
  }

  static void slow(std::int32_t opcode, const Operand &a, const Operand &b, Column &out) {
    for (std::size_t k = 0; k < kBlock; ++k) {
      const Range result = clamped(applied(opcode, range(a, k), range(b, k)));
      out.low[k] = result.low;
      out.high[k] = result.high;
    }
  }

  static Range range(const Operand &operand, std::size_t k) {
    if (operand.column == nullptr) return {operand.constant, operand.constant};
    return {operand.column->low[k], operand.column->high[k]};
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

}  // namespace t10
