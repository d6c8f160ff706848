// t10.plan.movement._moves: counts what moves between layouts, exactly or on a sample of cores (see _moves.pyi).
//
// All functions release the interpreter lock while they count; objects are never changed once made.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstddef>
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
using Pairs = nb::ndarray<const Int, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<nb::numpy, Int, nb::ndim<2>>;
using Locators = std::vector<std::shared_ptr<t10::ElementLocator>>;

constexpr std::size_t kCounts = 8;

std::shared_ptr<t10::ViewRuns> make_view(const Ids &ids, const Ints &sizes) {
  const nb::gil_scoped_release unlocked;
  return std::make_shared<t10::ViewRuns>(ids.data(), ids.shape(0), sizes);
}

std::shared_ptr<t10::ElementLocator> make_locator(const std::shared_ptr<t10::PartitionCells> &cells, Int scatter) {
  const nb::gil_scoped_release unlocked;
  return std::make_shared<t10::ElementLocator>(cells, scatter);
}

std::optional<t10::Pricing> pricing_of(const Ints &rates, Int item_bytes, bool is_padded, const Ints &places) {
  if (rates.empty()) return std::nullopt;
  return t10::Pricing{t10::LoadRates(rates), item_bytes, is_padded, t10::Places(places)};
}

std::array<Int, kCounts> numbers_of(const t10::Counts &counts) {
  return {counts.received, counts.sent,       counts.fragments,    counts.total,
          counts.copied,   counts.loads.port, counts.loads.before, counts.loads.behind};
}

using OptionalView = std::optional<std::shared_ptr<t10::ViewRuns>>;

std::array<Int, kCounts> count(const t10::PartitionCells &wanted, const Locators &homes, const OptionalView &view,
                               const Ints &rates, Int item_bytes, bool is_padded, const Ints &places) {
  const nb::gil_scoped_release unlocked;
  t10::MoveCounter counter(wanted, {homes.begin(), homes.end()}, view ? view->get() : nullptr,
                           pricing_of(rates, item_bytes, is_padded, places));
  return numbers_of(counter.count(std::nullopt));
}

Table bounds(const std::vector<std::shared_ptr<t10::PartitionCells>> &wanted, const std::vector<bool> &is_padded,
             const std::vector<Locators> &homes, const Pairs &pairs, const OptionalView &view, Int budget,
             Int most_pieces, const Ints &rates, Int item_bytes) {
  const std::size_t n_pairs = pairs.shape(0);
  auto numbers = std::make_unique<Int[]>(n_pairs * kCounts);
  {
    const nb::gil_scoped_release unlocked;
    for (std::size_t pair = 0; pair < n_pairs; ++pair) {
      const auto plan = static_cast<std::size_t>(pairs(pair, 0));
      const Locators &home = homes.at(static_cast<std::size_t>(pairs(pair, 1)));
      t10::MoveCounter counter(*wanted.at(plan), {home.begin(), home.end()}, view ? view->get() : nullptr,
                               pricing_of(rates, item_bytes, is_padded.at(plan), {}));
      const auto found = numbers_of(counter.count(budget, most_pieces));
      std::copy(found.begin(), found.end(), numbers.get() + pair * kCounts);
    }
  }
  Int *data = numbers.release();
  const nb::capsule owner(data, [](void *held) noexcept { delete[] static_cast<Int *>(held); });
  return Table(data, {n_pairs, kCounts}, owner);
}

std::vector<bool> lie_in_place(const std::vector<std::shared_ptr<t10::PartitionCells>> &wanted, const Locators &homes,
                               const Pairs &pairs) {
  const nb::gil_scoped_release unlocked;
  std::vector<bool> result(pairs.shape(0));
  for (std::size_t pair = 0; pair < result.size(); ++pair)
    result[pair] = t10::lies_in_place(*wanted.at(static_cast<std::size_t>(pairs(pair, 0))),
                                      *homes.at(static_cast<std::size_t>(pairs(pair, 1))));
  return result;
}

}  // namespace

NB_MODULE(_moves, module) {
  module.doc() = "Native counting of what moves between layouts (see _moves.pyi for meanings and units).";
  nb::class_<t10::PartitionCells>(module, "PartitionCells", "How an operand lies on the cores of a plan.")
      .def(nb::init<const std::vector<t10::DimFields> &, Ints, Ints, Ints, const Ints &,
                    const std::vector<std::vector<t10::PhaseFields>> &, const Ints &, std::vector<bool>,
                    std::vector<t10::Boxes>>(),
           nb::arg("dims"), nb::arg("f_op"), nb::arg("lengths"), nb::arg("windows"), nb::arg("core_order"),
           nb::arg("phases"), nb::arg("shift"), nb::arg("rotates"), nb::arg("chunks") = std::vector<t10::Boxes>())
      .def_prop_ro("n_cores", [](const t10::PartitionCells &cells) { return cells.n_cores; })
      .def_prop_ro("n_slots", [](const t10::PartitionCells &cells) { return cells.n_slots; });
  nb::class_<t10::ElementLocator>(module, "ElementLocator", "Where the elements of a value lie.")
      .def_prop_ro("n_slots", [](const t10::ElementLocator &home) { return home.n_slots; })
      .def_prop_ro("n_copies", [](const t10::ElementLocator &home) { return home.n_copies; });
  nb::class_<t10::ViewRuns>(module, "View", "A value read through views.");
  module.def("make_locator", &make_locator, nb::arg("cells"), nb::arg("scatter"));
  module.def("make_view", &make_view, nb::arg("ids"), nb::arg("sizes"));
  module.def("count", &count, nb::arg("wanted"), nb::arg("homes"), nb::arg("view").none(), nb::arg("rates"),
             nb::arg("item_bytes"), nb::arg("is_padded"), nb::arg("places") = Ints{},
             "What moves when every slot fetches its element from where it lies.");
  module.def("bounds", &bounds, nb::arg("wanted"), nb::arg("is_padded"), nb::arg("homes"), nb::arg("pairs"),
             nb::arg("view").none(), nb::arg("budget"), nb::arg("most_pieces"), nb::arg("rates"), nb::arg("item_bytes"),
             "What moves at least, for pairs of what is wanted and where it lies.");
  module.def("lie_in_place", &lie_in_place, nb::arg("wanted"), nb::arg("homes"), nb::arg("pairs"),
             "Whether every core wants exactly the slots it has, for pairs of what is wanted and where it lies.");
}
