// t10.emit._routes: who sends what to whom, as runs of elements (see _routes.pyi).
//
// Every slot that a layout wants is looked up where it lies; slots that lie side by side on both ends become one run.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace nb = nanobind;

namespace {

using Elements = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Longs = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Source = std::tuple<Elements, Longs, std::int64_t>;
using Rows = nb::ndarray<nb::numpy, std::int32_t>;

constexpr std::int64_t kOutside = -1;

// Where the elements of one source lie: tables of core and slot per copy and element, -1 where a copy lacks one.
class SourceTable {
 public:
  SourceTable(const Source &source, std::int64_t first) : first_(first), n_(std::get<2>(source)) {
    const auto &elements = std::get<0>(source);
    const auto &copies = std::get<1>(source);
    const std::int64_t n_cores = static_cast<std::int64_t>(elements.shape(0));
    const std::int64_t n_slots = static_cast<std::int64_t>(elements.shape(1));
    for (std::int64_t core = 0; core < n_cores; ++core) {
      own_.push_back(copies.data()[core]);
      n_copies_ = std::max(n_copies_, own_.back() + 1);
    }
    cores_.assign(static_cast<std::size_t>(n_copies_ * n_), -1);
    slots_.assign(static_cast<std::size_t>(n_copies_ * n_), -1);
    // Backwards, so that of equal elements (halos) the first core's stays.
    for (std::int64_t core = n_cores - 1; core >= 0; --core) {
      const std::int32_t *row = elements.data() + core * n_slots;
      const std::int64_t base = own_[static_cast<std::size_t>(core)] * n_;
      for (std::int64_t slot = n_slots - 1; slot >= 0; --slot) {
        if (row[slot] < 0) continue;
        cores_[static_cast<std::size_t>(base + row[slot])] = static_cast<std::int32_t>(core);
        slots_[static_cast<std::size_t>(base + row[slot])] = static_cast<std::int32_t>(slot);
      }
    }
  }

  bool holds(std::int64_t id) const { return id >= first_ && id < first_ + n_; }

  // The copy that a core reads: its own if it holds one, else copies in turn.
  std::int64_t copy_of(std::int64_t core) const {
    return core < static_cast<std::int64_t>(own_.size()) ? own_[static_cast<std::size_t>(core)] : core % n_copies_;
  }

  std::size_t at(std::int64_t copy, std::int64_t id) const { return static_cast<std::size_t>(copy * n_ + id - first_); }
  std::int32_t core(std::size_t at) const { return cores_[at]; }
  std::int32_t slot(std::size_t at) const { return slots_[at]; }

 private:
  std::int64_t first_;
  std::int64_t n_;
  std::int64_t n_copies_ = 1;
  std::vector<std::int64_t> own_;
  std::vector<std::int32_t> cores_;
  std::vector<std::int32_t> slots_;
};

// Rows (source, source core, source slot, target core, target slot, elements), grown slot by slot.
struct Runs {
  std::vector<std::int32_t> rows;

  void add(std::int32_t source, std::int32_t core, std::int32_t slot, std::int32_t target, std::int32_t at) {
    if (!rows.empty()) {
      std::int32_t *last = rows.data() + rows.size() - 6;
      const std::int32_t n = last[5];
      if (last[0] == source && last[1] == core && last[3] == target && last[2] + n == slot && last[4] + n == at) {
        ++last[5];
        return;
      }
    }
    rows.insert(rows.end(), {source, core, slot, target, at, 1});
  }
};

Rows to_numpy(std::vector<std::int32_t> &&rows, std::size_t width) {
  auto *kept = new std::vector<std::int32_t>(std::move(rows));
  const nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<std::int32_t> *>(p); });
  return Rows(kept->data(), {kept->size() / width, width}, owner);
}

// Returns runs and fills; a fill's first entry is the constant's number, `n_constants` for slots outside the tensor.
std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> find(const Elements &wanted,
                                                                     const std::optional<Longs> &ids,
                                                                     const std::vector<Source> &sources,
                                                                     std::int64_t n_constants, bool is_padded) {
  std::vector<SourceTable> homes;
  std::int64_t first = 0;
  for (const Source &source : sources) {
    homes.emplace_back(source, first);
    first += std::get<2>(source);
  }
  Runs moves;
  Runs fills;
  const std::int64_t n_cores = static_cast<std::int64_t>(wanted.shape(0));
  const std::int64_t n_slots = static_cast<std::int64_t>(wanted.shape(1));
  for (std::int64_t core = 0; core < n_cores; ++core) {
    const std::int32_t *row = wanted.data() + core * n_slots;
    std::size_t number = 0;
    for (std::int64_t slot = 0; slot < n_slots; ++slot) {
      const auto here = static_cast<std::int32_t>(slot);
      const auto target = static_cast<std::int32_t>(core);
      if (row[slot] < 0) {
        if (is_padded) fills.add(static_cast<std::int32_t>(n_constants), 0, here, target, here);
        continue;
      }
      const std::int64_t id = ids ? ids->data()[row[slot]] : row[slot];
      if (id < 0) {
        fills.add(static_cast<std::int32_t>(kOutside - id), 0, here, target, here);
        continue;
      }
      if (!homes[number].holds(id)) {
        number = 0;
        while (!homes[number].holds(id)) ++number;
      }
      const SourceTable &home = homes[number];
      const std::size_t at = home.at(home.copy_of(core), id);
      moves.add(static_cast<std::int32_t>(number), home.core(at), home.slot(at), target, here);
    }
  }
  return {std::move(moves.rows), std::move(fills.rows)};
}

nb::tuple runs(const Elements &wanted, const std::optional<Longs> &ids, const std::vector<Source> &sources,
               std::int64_t n_constants, bool is_padded) {
  std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> found;
  {
    const nb::gil_scoped_release unlocked;
    found = find(wanted, ids, sources, n_constants, is_padded);
  }
  return nb::make_tuple(to_numpy(std::move(found.first), 6), to_numpy(std::move(found.second), 6));
}

}  // namespace

NB_MODULE(_routes, module) {
  module.def("runs", &runs, nb::arg("wanted"), nb::arg("ids").none(), nb::arg("sources"), nb::arg("n_constants"),
             nb::arg("is_padded"));
}
