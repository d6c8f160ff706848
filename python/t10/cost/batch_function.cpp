// The interpreter of formulas and the call back to Python behind `t10::BatchFunction`.
//
// A formula runs over blocks of rows, one operation at a time, so that every loop is a plain one over doubles that the
// compiler vectorises and all intermediate columns stay in the first-level cache. Loops compute every row by itself
// and the build forbids contraction, so neither the vector width nor the block size changes a bit of the result.

#include "batch_function.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "../core/chunks.h"
#include "formula_code.h"

namespace nb = nanobind;

namespace t10 {
namespace {

constexpr std::size_t kBlock = 256;

// A column of a block, or the same number in every row.
struct Operand {
  const double *column = nullptr;
  double constant = 0.0;
};

struct Instruction {
  std::int32_t opcode = 0;
  std::array<std::int32_t, 3> operands{};  // value numbers: inputs, constants, instructions
  std::size_t scratch = 0;                 // number of the scratch column that takes the result
};

// Nearest integer of |x| < 2^51 by the rounding of an addition: the same on every instruction set, unlike a library
// call vectorised on some of them only. Beyond, a double of this size is an integer already or none we promise.
T10_INLINE double nearest(double x) {
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52
  return (x + kShift) - kShift;
}

T10_INLINE double floor_of(double x) {
  const double whole = nearest(x);
  return whole > x ? whole - 1.0 : whole;
}

T10_INLINE double ceil_of(double x) {
  const double whole = nearest(x);
  return whole < x ? whole + 1.0 : whole;
}

// Applies `f` to every row; one loop per mix of columns and constants, so that each is free of branches.
template <class F>
T10_INLINE void each(const Operand &a, const Operand &b, double *__restrict out, std::size_t n, F f) {
  const double *__restrict x = a.column;
  const double *__restrict y = b.column;
  const double p = a.constant;
  const double q = b.constant;
  if (x != nullptr && y != nullptr) {
    for (std::size_t k = 0; k < n; ++k) out[k] = f(x[k], y[k]);
  } else if (x != nullptr) {
    for (std::size_t k = 0; k < n; ++k) out[k] = f(x[k], q);
  } else if (y != nullptr) {
    for (std::size_t k = 0; k < n; ++k) out[k] = f(p, y[k]);
  } else {
    for (std::size_t k = 0; k < n; ++k) out[k] = f(p, q);
  }
}

// A quotient of integers with `f` to round it; multiplying by the reciprocal of a power of two is exact.
template <class F>
T10_INLINE void each_quotient(const Operand &a, const Operand &b, double *__restrict out, std::size_t n, F f) {
  if (b.column == nullptr) {
    const double q = b.constant;
    const double reciprocal = 1.0 / q;
    const auto bits = static_cast<std::int64_t>(q);
    if (q == 0.0) {
      std::fill_n(out, n, 0.0);
    } else if (q > 0.0 && static_cast<double>(bits) == q && (bits & (bits - 1)) == 0) {
      each(a, b, out, n, [=](double x, double y) { return f(x, y, x * reciprocal); });
    } else {
      each(a, b, out, n, [=](double x, double y) { return f(x, y, x / y); });
    }
  } else {
    each(a, b, out, n, [=](double x, double y) { return y != 0.0 ? f(x, y, x / y) : 0.0; });
  }
}

T10_INLINE void select(const Operand &condition, const Operand &a, const Operand &b, double *__restrict out,
                       std::size_t n) {
  if (condition.column == nullptr) {
    const Operand &chosen = condition.constant != 0.0 ? a : b;
    each(chosen, chosen, out, n, [](double x, double) { return x; });
    return;
  }
  const double *__restrict c = condition.column;
  const double *__restrict x = a.column;
  const double *__restrict y = b.column;
  const double p = a.constant;
  const double q = b.constant;
  if (x != nullptr && y != nullptr) {
    for (std::size_t k = 0; k < n; ++k) out[k] = c[k] != 0.0 ? x[k] : y[k];
  } else if (x != nullptr) {
    for (std::size_t k = 0; k < n; ++k) out[k] = c[k] != 0.0 ? x[k] : q;
  } else if (y != nullptr) {
    for (std::size_t k = 0; k < n; ++k) out[k] = c[k] != 0.0 ? p : y[k];
  } else {
    for (std::size_t k = 0; k < n; ++k) out[k] = c[k] != 0.0 ? p : q;
  }
}

T10_INLINE void arithmetic(std::int32_t opcode, const Operand &a, const Operand &b, double *out, std::size_t n) {
  switch (opcode) {
    case kAdd: return each(a, b, out, n, [](double x, double y) { return x + y; });
    case kSub: return each(a, b, out, n, [](double x, double y) { return x - y; });
    case kMul: return each(a, b, out, n, [](double x, double y) { return x * y; });
    case kDiv: return each(a, b, out, n, [](double x, double y) { return x / y; });
    case kFloorDiv: return each_quotient(a, b, out, n, [](double, double, double t) { return floor_of(t); });
    case kCeilDiv: return each_quotient(a, b, out, n, [](double, double, double t) { return ceil_of(t); });
    case kMod: return each_quotient(a, b, out, n, [](double x, double y, double t) { return x - y * floor_of(t); });
    case kMin: return each(a, b, out, n, [](double x, double y) { return x < y ? x : y; });
    case kMax: return each(a, b, out, n, [](double x, double y) { return x > y ? x : y; });
    case kChunk:
      return each(a, b, out, n, [](double x, double y) {
        return y < 1.0 ? 0.0 : static_cast<double>(window_chunk(static_cast<std::int64_t>(x), static_cast<std::int64_t>(y)));
      });
    case kNeg: return each(a, a, out, n, [](double x, double) { return -x; });
    case kAbs: return each(a, a, out, n, [](double x, double) { return x < 0.0 ? -x : x; });
    case kFloor: return each(a, a, out, n, [](double x, double) { return floor_of(x); });
    case kCeil: return each(a, a, out, n, [](double x, double) { return ceil_of(x); });
    case kTrunc: return each(a, a, out, n, [](double x, double) { return x < 0.0 ? ceil_of(x) : floor_of(x); });
    default: return each(a, a, out, n, [](double x, double) { return __builtin_sqrt(x); });
  }
}

T10_INLINE void logic(std::int32_t opcode, const Operand &a, const Operand &b, double *out, std::size_t n) {
  switch (opcode) {
    case kLt: return each(a, b, out, n, [](double x, double y) { return x < y ? 1.0 : 0.0; });
    case kLe: return each(a, b, out, n, [](double x, double y) { return x <= y ? 1.0 : 0.0; });
    case kEq: return each(a, b, out, n, [](double x, double y) { return x == y ? 1.0 : 0.0; });
    case kNe: return each(a, b, out, n, [](double x, double y) { return x != y ? 1.0 : 0.0; });
    case kAnd: return each(a, b, out, n, [](double x, double y) { return (x != 0.0) & (y != 0.0) ? 1.0 : 0.0; });
    case kOr: return each(a, b, out, n, [](double x, double y) { return (x != 0.0) | (y != 0.0) ? 1.0 : 0.0; });
    default: return each(a, a, out, n, [](double x, double) { return x == 0.0 ? 1.0 : 0.0; });
  }
}

T10_CLONES void run(std::int32_t opcode, const Operand *operands, double *out, std::size_t n) {
  if (opcode == kSelect) return select(operands[0], operands[1], operands[2], out, n);
  if (opcode < kLt) return arithmetic(opcode, operands[0], operands[1], out, n);
  return logic(opcode, operands[0], operands[1], out, n);
}

std::size_t n_operands(std::int32_t opcode) {
  if (opcode == kSelect) return 3;
  return (opcode >= kNeg && opcode <= kSqrt) || opcode == kNot ? 1 : 2;
}

class FormulaFunction final : public BatchFunction {
 public:
  explicit FormulaFunction(nb::handle formula)
      : n_inputs_(nb::cast<std::size_t>(formula.attr("n_inputs"))),
        result_(nb::cast<std::int32_t>(formula.attr("result"))) {
    for (nb::handle constant : formula.attr("constants")) constants_.push_back(nb::cast<double>(constant));
    for (nb::handle row : formula.attr("instructions")) {
      Instruction instruction;
      instruction.opcode = nb::cast<std::int32_t>(nb::int_(row[0]));
      for (std::size_t i = 0; i < 3; ++i) instruction.operands[i] = nb::cast<std::int32_t>(row[i + 1]);
      check(instruction);
      instructions_.push_back(instruction);
    }
    check_value(result_, first_instruction() + instructions_.size());
    assign_scratch();
  }

  std::size_t n_inputs() const override { return n_inputs_; }

  void evaluate(const double *const *inputs, std::size_t n, double *out) const override {
    static thread_local std::vector<double> scratch;
    scratch.resize(std::max(scratch.size(), n_scratch_ * kBlock));
    for (std::size_t first = 0; first < n; first += kBlock)
      evaluate_block(inputs, first, std::min(kBlock, n - first), scratch.data(), out + first);
  }

 private:
  std::size_t first_instruction() const { return n_inputs_ + constants_.size(); }

  static void check_value(std::int32_t value, std::size_t n_known) {
    if (value < 0 || static_cast<std::size_t>(value) >= n_known)
      throw std::invalid_argument("a formula uses value " + std::to_string(value) + " before it is defined");
  }

  void check(const Instruction &instruction) const {
    if (instruction.opcode < 0 || instruction.opcode >= kOpcodes)
      throw std::invalid_argument("a formula has an unknown opcode " + std::to_string(instruction.opcode));
    for (std::size_t i = 0; i < n_operands(instruction.opcode); ++i)
      check_value(instruction.operands[i], first_instruction() + instructions_.size());
  }

  // Gives every result a scratch column that no live value and none of its own operands is in.
  void assign_scratch() {
    const std::size_t first = first_instruction();
    std::vector<std::size_t> last_use(first + instructions_.size(), 0);
    for (std::size_t i = 0; i < instructions_.size(); ++i)
      for (std::size_t j = 0; j < n_operands(instructions_[i].opcode); ++j)
        last_use[static_cast<std::size_t>(instructions_[i].operands[j])] = i;
    last_use[static_cast<std::size_t>(result_)] = instructions_.size();
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      if (free.empty()) free.push_back(n_scratch_++);
      instructions_[i].scratch = free.back();
      free.pop_back();
      for (std::size_t value = first; value < first + i; ++value)
        if (last_use[value] == i) free.push_back(instructions_[value - first].scratch);
    }
  }

  Operand operand(std::int32_t number, const double *const *inputs, std::size_t first, const double *scratch) const {
    auto value = static_cast<std::size_t>(number);
    if (value < n_inputs_) return {inputs[value] + first, 0.0};
    value -= n_inputs_;
    if (value < constants_.size()) return {nullptr, constants_[value]};
    return {scratch + instructions_[value - constants_.size()].scratch * kBlock, 0.0};
  }

  void evaluate_block(const double *const *inputs, std::size_t first, std::size_t n, double *scratch,
                      double *out) const {
    const auto result = static_cast<std::size_t>(result_);
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      const Instruction &instruction = instructions_[i];
      std::array<Operand, 3> operands{};
      for (std::size_t j = 0; j < n_operands(instruction.opcode); ++j)
        operands[j] = operand(instruction.operands[j], inputs, first, scratch);
      const bool is_result = result == first_instruction() + i;
      run(instruction.opcode, operands.data(), is_result ? out : scratch + instruction.scratch * kBlock, n);
      if (is_result) return;
    }
    const Operand value = operand(result_, inputs, first, scratch);
    for (std::size_t k = 0; k < n; ++k) out[k] = value.column != nullptr ? value.column[k] : value.constant;
  }

  std::size_t n_inputs_;
  std::int32_t result_;
  std::vector<double> constants_;
  std::vector<Instruction> instructions_;
  std::size_t n_scratch_ = 0;
};

// A Python object with `n_inputs` and `evaluate(int64 [n, n_inputs]) -> float64 [n]`.
class PythonFunction final : public BatchFunction {
 public:
  explicit PythonFunction(nb::handle description)
      : n_inputs_(nb::cast<std::size_t>(description.attr("n_inputs"))), function_(description.attr("evaluate")) {}

  ~PythonFunction() override {
    const nb::gil_scoped_acquire locked;
    function_.reset();
  }

  PythonFunction(const PythonFunction &) = delete;
  PythonFunction &operator=(const PythonFunction &) = delete;

  std::size_t n_inputs() const override { return n_inputs_; }

  void evaluate(const double *const *inputs, std::size_t n, double *out) const override {
    const nb::gil_scoped_acquire locked;
    auto *rows = new std::int64_t[n * n_inputs_ + 1];
    const nb::capsule owner(rows, [](void *data) noexcept { delete[] static_cast<std::int64_t *>(data); });
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t i = 0; i < n_inputs_; ++i) rows[k * n_inputs_ + i] = static_cast<std::int64_t>(inputs[i][k]);
    const nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>> argument(rows, {n, n_inputs_}, owner);
    const nb::object result = function_(argument);
    const auto values = nb::cast<nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(result);
    if (values.shape(0) != n)
      throw std::invalid_argument("a cost function gave " + std::to_string(values.shape(0)) + " numbers for " +
                                  std::to_string(n) + " rows");
    std::copy_n(values.data(), n, out);
  }

 private:
  std::size_t n_inputs_;
  nb::object function_;
};

}  // namespace

std::unique_ptr<BatchFunction> batch_function(nb::handle description) {
  if (nb::hasattr(description, "instructions")) return std::make_unique<FormulaFunction>(description);
  return std::make_unique<PythonFunction>(description);
}

}  // namespace t10
