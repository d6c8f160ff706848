// t10.cost._batch_function: `t10::BatchFunction` and its lower bounds seen from Python.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "batch_function.h"
#include "interval_function.h"

namespace nb = nanobind;

namespace {

using Columns = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Column = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

Column evaluate(const t10::BatchFunction &function, const Columns &columns) {
  if (columns.shape(0) != function.n_inputs())
    throw std::invalid_argument("evaluate: the function takes " + std::to_string(function.n_inputs()) +
                                " columns, found " + std::to_string(columns.shape(0)));
  const std::size_t n = columns.shape(1);
  std::vector<const double *> inputs;
  for (std::size_t i = 0; i < columns.shape(0); ++i) inputs.push_back(columns.data() + i * n);
  auto result = std::make_unique<double[]>(n);
  {
    const nb::gil_scoped_release unlocked;
    function.evaluate(inputs.data(), n, result.get());
  }
  double *data = result.release();
  const nb::capsule owner(data, [](void *p) noexcept { delete[] static_cast<double *>(p); });
  return Column(data, {n}, owner);
}

Column least(nb::handle description, const Columns &low, const Columns &high) {
  const std::unique_ptr<t10::IntervalFunction> function = t10::interval_function(description);
  if (function == nullptr) throw std::invalid_argument("least: only formulas have bounds");
  const std::size_t n = low.shape(1);
  if (high.shape(0) != low.shape(0) || high.shape(1) != n)
    throw std::invalid_argument("least: low and high differ in shape");
  std::vector<const double *> lows;
  std::vector<const double *> highs;
  for (std::size_t i = 0; i < low.shape(0); ++i) {
    lows.push_back(low.data() + i * n);
    highs.push_back(high.data() + i * n);
  }
  auto result = std::make_unique<double[]>(n);
  function->least(lows.data(), highs.data(), n, result.get());
  double *data = result.release();
  const nb::capsule owner(data, [](void *p) noexcept { delete[] static_cast<double *>(p); });
  return Column(data, {n}, owner);
}

}  // namespace

NB_MODULE(_batch_function, m) {
  m.doc() = "Cost functions as native code evaluates them.";
  nb::class_<t10::BatchFunction>(m, "BatchFunction");
  m.def("read", &t10::batch_function, nb::arg("description"), nb::keep_alive<0, 1>(),
        "Return the described function, for `evaluate`.");
  m.def("evaluate", &evaluate, nb::arg("function"), nb::arg("columns").noconvert(),
        "Return float64 [n]: a function of the rows of `columns`, float64 [n_inputs, n].");
  m.def(
      "evaluate",
      [](nb::handle description, const Columns &columns) { return evaluate(*t10::batch_function(description), columns); },
      nb::arg("description"), nb::arg("columns").noconvert(), "The same of a description.");
  m.def("least", &least, nb::arg("formula"), nb::arg("low").noconvert(), nb::arg("high").noconvert(),
        "Return float64 [n]: what a formula is never below where inputs lie between `low` and `high`, [n_inputs, n].");
}
