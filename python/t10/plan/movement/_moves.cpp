// t10.plan.movement._moves: counts what moves between layouts, exactly or on a sample of cores (see _moves.pyi).
//
// All functions release the interpreter lock while they count; objects are never changed once made.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "moves_count.h"
#include "partition_cells.h"
#include "element_locator.h"

namespace nb = nanobind;

namespace {

using t10::Int;
using t10::Ints;
using Ids = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::shared_ptr<t10::ViewRuns> make_view(const Ids &ids, const Ints &sizes) {
  const nb::gil_scoped_release unlocked;
  return std::make_shared<t10::ViewRuns>(ids.data(), ids.shape(0), sizes);
}

std::shared_ptr<t10::ElementLocator> make_locator(const std::shared_ptr<t10::PartitionCells> &cells, Int scatter) {
  const nb::gil_scoped_release unlocked;
  return std::make_shared<t10::ElementLocator>(cells, scatter);
}

nb::tuple count(const t10::PartitionCells &wanted, const std::vector<std::shared_ptr<t10::ElementLocator>> &homes,
                const std::optional<std::shared_ptr<t10::ViewRuns>> &view, const std::optional<Int> &budget,
                const Ints &rates, Int item_bytes, bool is_padded, const Ints &places) {
  std::optional<t10::Pricing> pricing;
  if (!rates.empty()) pricing = t10::Pricing{t10::LoadRates(rates), item_bytes, is_padded, t10::Places(places)};
  t10::Counts counts;
  {
    const nb::gil_scoped_release unlocked;
    t10::MoveCounter counter(wanted, {homes.begin(), homes.end()}, view ? view->get() : nullptr, pricing);
    counts = counter.count(budget);
  }
  return nb::make_tuple(counts.received, counts.sent, counts.fragments, counts.total, counts.copied,
                        counts.loads.port, counts.loads.before, counts.loads.behind);
}

bool in_place(const t10::PartitionCells &wanted, const t10::ElementLocator &home) {
  const nb::gil_scoped_release unlocked;
  return t10::lies_in_place(wanted, home);
}

}  // namespace

NB_MODULE(_moves, module) {
  module.doc() = "Native counting of what moves between layouts (see _moves.pyi for meanings and units).";
  nb::class_<t10::PartitionCells>(module, "PartitionCells", "How an operand lies on the cores of a plan.")
      .def(nb::init<const std::vector<t10::DimFields> &, Ints, Ints, Ints, const Ints &,
                    const std::vector<std::vector<t10::PhaseFields>> &, const Ints &, std::vector<bool>>(),
           nb::arg("dims"), nb::arg("f_op"), nb::arg("lengths"), nb::arg("windows"), nb::arg("core_order"),
           nb::arg("phases"), nb::arg("shift"), nb::arg("rotates"))
      .def_prop_ro("n_cores", [](const t10::PartitionCells &cells) { return cells.n_cores; })
      .def_prop_ro("n_slots", [](const t10::PartitionCells &cells) { return cells.n_slots; });
  nb::class_<t10::ElementLocator>(module, "ElementLocator", "Where the elements of a value lie.")
      .def_prop_ro("n_slots", [](const t10::ElementLocator &home) { return home.n_slots; })
      .def_prop_ro("n_copies", [](const t10::ElementLocator &home) { return home.n_copies; });
  nb::class_<t10::ViewRuns>(module, "View", "A value read through views.");
  module.def("make_locator", &make_locator, nb::arg("cells"), nb::arg("scatter"));
  module.def("make_view", &make_view, nb::arg("ids"), nb::arg("sizes"));
  module.def("count", &count, nb::arg("wanted"), nb::arg("homes"), nb::arg("view").none(), nb::arg("budget").none(),
             nb::arg("rates"), nb::arg("item_bytes"), nb::arg("is_padded"), nb::arg("places") = Ints{},
             "What moves when every slot fetches its element from where it lies.");
  module.def("lies_in_place", &in_place, nb::arg("wanted"), nb::arg("home"),
             "Whether every core wants exactly the slots it has.");
}
