// t10.plan._batch_function: `t10::BatchFunction` seen from Python, for tests and measurements.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "batch_function.h"

namespace nb = nanobind;

namespace {

using Columns = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Column = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

Column evaluate(nb::handle description, const Columns &columns) {
  const std::unique_ptr<t10::BatchFunction> function = t10::batch_function(description);
  if (columns.shape(0) != function->n_inputs())
    throw std::invalid_argument("evaluate: the function takes " + std::to_string(function->n_inputs()) +
                                " columns, found " + std::to_string(columns.shape(0)));
  const std::size_t n = columns.shape(1);
  std::vector<const double *> inputs;
  for (std::size_t i = 0; i < columns.shape(0); ++i) inputs.push_back(columns.data() + i * n);
  auto result = std::make_unique<double[]>(n);
  {
    const nb::gil_scoped_release unlocked;
    function->evaluate(inputs.data(), n, result.get());
  }
  double *data = result.release();
  const nb::capsule owner(data, [](void *p) noexcept { delete[] static_cast<double *>(p); });
  return Column(data, {n}, owner);
}

}  // namespace

NB_MODULE(_batch_function, m) {
  m.doc() = "Cost functions as native search evaluates them.";
  m.def("evaluate", &evaluate, nb::arg("description"), nb::arg("columns").noconvert(),
        "Return float64 [n]: the described function of the rows of `columns`, float64 [n_inputs, n].");
}
