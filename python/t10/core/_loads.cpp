// t10.core._loads: what an exchange phase makes every core do, from runs of elements (see _loads.pyi).

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "phase_loads.h"

namespace nb = nanobind;

namespace {

using Rows = nb::ndarray<const std::int32_t, nb::shape<-1, 6>, nb::c_contig, nb::device::cpu>;
using Fills = nb::ndarray<const std::int32_t, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<std::int64_t, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;

constexpr std::size_t kTake = 5;  // source, core, slot, here, elements
constexpr std::size_t kFill = 3;  // constant, here, elements

void check_core(std::int32_t core, std::int64_t n_cores) {
  if (core < 0 || core >= n_cores) throw std::out_of_range("phase_loads: a run names a core that is not there");
}

// Cores by what they take and fill.
class Groups {
 public:
  void add(std::int32_t core, const std::vector<std::int32_t> &takes, const std::vector<std::int32_t> &fills) {
    cores_[{takes, fills}].push_back(core);
  }

  void give(t10::PhaseLoads &loads) const {
    for (const auto &[content, cores] : cores_) {
      const auto &[takes, fills] = content;
      loads.begin_group(cores.data(), cores.size());
      for (std::size_t i = 0; i < takes.size(); i += kTake)
        loads.take(takes[i], takes[i + 1], takes[i + 2], takes[i + 3], takes[i + 4]);
      for (std::size_t i = 0; i < fills.size(); i += kFill) loads.fill(fills[i], fills[i + 1], fills[i + 2]);
    }
  }

 private:
  std::map<std::tuple<std::vector<std::int32_t>, std::vector<std::int32_t>>, std::vector<std::int32_t>> cores_;
};

Groups groups_of(const Rows &rows, const Fills &fills, std::int64_t n_cores) {
  const auto n_rows = rows.shape(0), n_fills = fills.shape(0);
  const std::int32_t *row = rows.data(), *fill = fills.data();
  for (std::size_t i = 0; i < n_rows; ++i) {
    check_core(row[6 * i + 1], n_cores);
    check_core(row[6 * i + 3], n_cores);
  }
  for (std::size_t i = 0; i < n_fills; ++i) check_core(fill[4 * i + 1], n_cores);
  Groups groups;
  std::vector<std::int32_t> takes, filled;
  std::size_t r = 0, f = 0;
  for (std::int32_t core = 0; core < n_cores; ++core) {
    takes.clear();
    filled.clear();
    for (; r < n_rows && row[6 * r + 3] == core; ++r) {
      const std::int32_t *each = row + 6 * r;
      takes.insert(takes.end(), {each[0], each[1], each[2], each[4], each[5]});
    }
    for (; f < n_fills && fill[4 * f + 1] == core; ++f)
      filled.insert(filled.end(), {fill[4 * f], fill[4 * f + 2], fill[4 * f + 3]});
    if (!takes.empty() || !filled.empty()) groups.add(core, takes, filled);
  }
  if (r < n_rows || f < n_fills) throw std::invalid_argument("phase_loads: runs must be sorted by the core that takes them");
  return groups;
}

nb::tuple phase_loads(const Rows &rows, const Fills &fills, const std::vector<std::int64_t> &rates,
                      std::int64_t item_bytes, bool is_scheduled, const std::vector<std::int64_t> &places, Table &table) {
  const auto n_cores = static_cast<std::int64_t>(table.shape(0));
  t10::Loads found;
  {
    const nb::gil_scoped_release unlocked;
    t10::PhaseLoads loads(t10::LoadRates(rates), item_bytes, n_cores, t10::Places(places));
    groups_of(rows, fills, n_cores).give(loads);
    found = loads.finish(is_scheduled);
    for (std::int64_t core = 0; core < n_cores; ++core) {
      const auto [before, sent, received, behind] = loads.of_core(static_cast<std::size_t>(core));
      std::int64_t *row = table.data() + 4 * core;
      row[0] = before;
      row[1] = sent;
      row[2] = received;
      row[3] = behind;
    }
  }
  return nb::make_tuple(found.port, found.before, found.behind);
}

using Transfers = nb::ndarray<const std::int64_t, nb::shape<-1, 4>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::int64_t link_loads(const std::vector<std::int64_t> &numbers, std::int64_t n_cores, const Transfers &transfers,
                        Bytes &n_bytes) {
  const std::int64_t *row = transfers.data();
  const std::size_t n_rows = transfers.shape(0);
  for (std::size_t i = 0; i < n_rows; ++i)
    for (const std::size_t end : {1, 2})
      if (row[4 * i + end] < 0 || row[4 * i + end] >= n_cores)
        throw std::out_of_range("link_loads: a transfer names a core that is not there");
  t10::LinkLoads links(numbers, n_cores);
  if (links.bytes().size() != n_bytes.shape(0)) throw std::invalid_argument("link_loads: a number for every link");
  const nb::gil_scoped_release unlocked;
  for (std::size_t i = 0; i < n_rows; ++i, row += 4) {
    if (i == 0 || row[0] != row[-4]) links.begin(row[1], row[3]);
    links.to(row[2]);
  }
  std::copy(links.bytes().begin(), links.bytes().end(), n_bytes.data());
  return links.latency();
}

}  // namespace

NB_MODULE(_loads, module) {
  module.doc() = "Native loads of exchange phases (see _loads.pyi for meanings and units).";
  module.attr("UNITS") = t10::kUnits;
  module.attr("RATE_CYCLES") = t10::kRateCycles;
  module.def("phase_loads", &phase_loads, nb::arg("runs"), nb::arg("fills"), nb::arg("rates"), nb::arg("item_bytes"),
             nb::arg("is_scheduled"), nb::arg("places"), nb::arg("table"));
  module.def("link_loads", &link_loads, nb::arg("links"), nb::arg("n_cores"), nb::arg("transfers"), nb::arg("n_bytes"));
}
