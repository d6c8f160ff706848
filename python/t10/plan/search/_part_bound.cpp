// t10.plan.search._part_bound: what steps in parts take at least, seen from Python.

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "batch_function.h"
#include "part_bound.h"

namespace nb = nanobind;

namespace {

// As they come from Python: `t10.plan.search.part_bound` has their order.
using Axis = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, t10::search::Integers,
                        std::vector<t10::search::Phase>, bool, bool>;

double least_part_cycles(const t10::BatchFunction &bound, const std::vector<Axis> &rows,
                         const t10::search::Integers &core_order, std::size_t most_cores, std::size_t most_parts) {
  if (rows.size() != bound.n_inputs() || rows.size() != core_order.size())
    throw std::invalid_argument("least_part_cycles: the function takes " + std::to_string(bound.n_inputs()) + " axes");
  std::vector<t10::search::PartedAxis> axes;
  for (const Axis &row : rows)
    axes.push_back(std::apply([](const auto &...each) { return t10::search::PartedAxis{each...}; }, row));
  const nb::gil_scoped_release unlocked;
  return t10::search::least_part_cycles(bound, axes, core_order, most_cores, most_parts);
}

}  // namespace

NB_MODULE(_part_bound, m) {
  m.doc() = "Lower bounds of steps that run in parts.";
  // The class of `bound` is this module's.
  nb::module_::import_("t10.cost._batch_function");
  m.def("least_part_cycles", &least_part_cycles, nb::arg("bound"), nb::arg("axes"), nb::arg("core_order"),
        nb::arg("most_cores"), nb::arg("most_parts"),
        "Return cycles that steps in parts do not fall below; see `t10.plan.search.part_bound`.");
}
