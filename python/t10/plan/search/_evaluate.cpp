// t10.plan.search._evaluate: the hot loops of plan search, over arrays that hold many candidate plans at once.
//
// Every function takes one row per candidate, releases the interpreter lock while it works, and uses no state of its
// own, so the same arrays always give the same bits. Index order of all two-dimensional arrays: [candidate, axis].

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace nb = nanobind;

namespace {

// Rotating axes of one operator: an operator has at most a handful of axes, so the order of one nest fits on the stack.
constexpr std::size_t kMaxAxes = 16;

using Int32Matrix = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Float64Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Float64Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Float64Result = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

// Writes into `order` the axes of one nest, outermost first: most expensive advance outermost (compute-shift model,
// theorem 3). Insertion sort, because it is stable (ties keep axis order) and n_axes is tiny.
void order_axes(const double *advance_cycles, std::size_t n_axes, std::array<std::size_t, kMaxAxes> &order) {
  for (std::size_t axis = 0; axis < n_axes; ++axis) {
    std::size_t slot = axis;
    while (slot > 0 && advance_cycles[order[slot - 1]] < advance_cycles[axis]) {
      order[slot] = order[slot - 1];
      --slot;
    }
    order[slot] = axis;
  }
}

// Cycles of one nest: every sub-task once, plus, per axis, its advances in every sweep started by the loops around it.
double nest_cycles(const std::int32_t *steps, const double *advance_cycles, double subtask_cycles,
                   std::size_t n_axes) {
  std::array<std::size_t, kMaxAxes> order{};
  order_axes(advance_cycles, n_axes, order);
  double shift_cycles = 0.0;
  double sweeps = 1.0;
  for (std::size_t depth = 0; depth < n_axes; ++depth) {
    const std::size_t axis = order[depth];
    const double n_steps = static_cast<double>(steps[axis]);
    shift_cycles += advance_cycles[axis] * (n_steps - 1.0) * sweeps;
    sweeps *= n_steps;
  }
  return sweeps * subtask_cycles + shift_cycles;
}

void check_nests(const Int32Matrix &steps, const Float64Matrix &shift_cycles, const Float64Vector &subtask_cycles) {
  const std::size_t n = steps.shape(0);
  const std::size_t k = steps.shape(1);
  if (shift_cycles.shape(0) != n || shift_cycles.shape(1) != k || subtask_cycles.shape(0) != n)
    throw std::invalid_argument("evaluate_nests: steps is [" + std::to_string(n) + ", " + std::to_string(k) +
                                "], so shift_cycles must have the same shape and subtask_cycles " +
                                std::to_string(n) + " elements; found [" + std::to_string(shift_cycles.shape(0)) +
                                ", " + std::to_string(shift_cycles.shape(1)) + "] and " +
                                std::to_string(subtask_cycles.shape(0)));
  if (k > kMaxAxes)
    throw std::invalid_argument("evaluate_nests: at most " + std::to_string(kMaxAxes) + " axes, found " +
                                std::to_string(k));
  for (std::size_t i = 0; i < n * k; ++i)
    if (steps.data()[i] < 1)
      throw std::invalid_argument("evaluate_nests: steps must be 1 or more, found " +
                                  std::to_string(steps.data()[i]) + " in candidate " + std::to_string(i / k));
}

Float64Result evaluate_nests(const Int32Matrix &steps, const Float64Matrix &shift_cycles,
                             const Float64Vector &subtask_cycles) {
  check_nests(steps, shift_cycles, subtask_cycles);
  const std::size_t n = steps.shape(0);
  const std::size_t k = steps.shape(1);
  auto cycles = std::make_unique<double[]>(n);
  {
    const nb::gil_scoped_release unlocked;
    for (std::size_t row = 0; row < n; ++row)
      cycles[row] = nest_cycles(steps.data() + row * k, shift_cycles.data() + row * k, subtask_cycles.data()[row], k);
  }
  double *data = cycles.get();
  nb::capsule owner(data, [](void *pointer) noexcept { delete[] static_cast<double *>(pointer); });
  cycles.release();
  return Float64Result(data, {n}, owner);
}

}  // namespace

NB_MODULE(_evaluate, module) {
  module.doc() = "Native evaluation of many candidate plans at once (see _evaluate.pyi for shapes and units).";
  module.def("evaluate_nests", &evaluate_nests, nb::arg("steps"), nb::arg("shift_cycles"), nb::arg("subtask_cycles"),
             "Cycles of every candidate's compute-shift nest under its best loop order.");
}
