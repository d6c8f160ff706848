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
#include <stdexcept>
#include <tuple>
#include <vector>

namespace nb = nanobind;

namespace {

using Elements = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Parts = std::vector<nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>>;
using Longs = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Source = std::tuple<Elements, Longs, std::int64_t>;
using Rows = nb::ndarray<nb::numpy, std::int32_t>;

constexpr std::int64_t kOutside = -1;
constexpr std::size_t kRunColumns = 6;
constexpr std::size_t kSeriesColumns = 9;

// A slot of a core, as one number; the next slot is the next number.
std::int64_t place_of(std::int64_t core, std::int64_t slot) { return (core << 32) | slot; }
std::int32_t core_of(std::int64_t place) { return static_cast<std::int32_t>(place >> 32); }
std::int32_t slot_of(std::int64_t place) { return static_cast<std::int32_t>(place & 0xffffffff); }

// Returns for every number how many from it on count up by one; those below zero do not.
std::vector<std::int32_t> rising(const std::int64_t *numbers, std::size_t n) {
  std::vector<std::int32_t> lengths(n, 1);
  for (std::size_t i = n; i-- > 1;)
    if (numbers[i - 1] >= 0 && numbers[i] == numbers[i - 1] + 1) lengths[i - 1] = lengths[i] + 1;
  return lengths;
}

// Where the elements of one source lie: a place per copy and element, -1 where a copy lacks one.
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
    places_.assign(static_cast<std::size_t>(n_copies_ * n_), -1);
    // Backwards, so that of equal elements (halos) the first core's stays.
    for (std::int64_t core = n_cores - 1; core >= 0; --core) {
      const std::int32_t *row = elements.data() + core * n_slots;
      const std::int64_t base = own_[static_cast<std::size_t>(core)] * n_;
      for (std::int64_t slot = n_slots - 1; slot >= 0; --slot) {
        if (row[slot] < 0) continue;
        places_[static_cast<std::size_t>(base + row[slot])] = place_of(core, slot);
      }
    }
    for (std::int64_t copy = 0; copy < n_copies_; ++copy) {
      const auto lengths = rising(places_.data() + copy * n_, static_cast<std::size_t>(n_));
      lengths_.insert(lengths_.end(), lengths.begin(), lengths.end());
    }
  }

  bool holds(std::int64_t id) const { return id >= first_ && id < first_ + n_; }

  // The copy that a core reads: its own if it holds one, else copies in turn.
  std::int64_t copy_of(std::int64_t core) const {
    return core < static_cast<std::int64_t>(own_.size()) ? own_[static_cast<std::size_t>(core)] : core % n_copies_;
  }

  // The place of an element in a copy, and how many elements from it on lie side by side.
  std::pair<std::int64_t, std::int32_t> find(std::int64_t copy, std::int64_t id) const {
    const auto at = static_cast<std::size_t>(copy * n_ + id - first_);
    return {places_[at], lengths_[at]};
  }

 private:
  std::int64_t first_;
  std::int64_t n_;
  std::int64_t n_copies_ = 1;
  std::vector<std::int64_t> own_;
  std::vector<std::int64_t> places_;
  std::vector<std::int32_t> lengths_;
};

// Rows (source, source core, source slot, target core, target slot, elements), grown piece by piece.
class Runs {
 public:
  std::vector<std::int32_t> rows;

  void add(std::int32_t source, std::int64_t from, std::int64_t to, std::int32_t n) {
    if (source == source_ && from == from_ && to == to_) {
      rows.back() += n;
    } else {
      rows.insert(rows.end(), {source, core_of(from), slot_of(from), core_of(to), slot_of(to), n});
      source_ = source;
    }
    from_ = from + n;
    to_ = to + n;
  }

 private:
  // What goes on with the last row.
  std::int32_t source_ = -1;
  std::int64_t from_ = -1;
  std::int64_t to_ = -1;
};

Rows to_numpy(std::vector<std::int32_t> &&rows, std::size_t width) {
  auto *kept = new std::vector<std::int32_t>(std::move(rows));
  const nb::capsule owner(kept, [](void *p) noexcept { delete static_cast<std::vector<std::int32_t> *>(p); });
  return Rows(kept->data(), {kept->size() / width, width}, owner);
}

// The slots that a core wants to be filled, walked in runs of elements that count up by one.
class Walk {
 public:
  Walk(const Parts &parts, std::size_t core) {
    for (const auto &part : parts) rows_.emplace_back(part.data() + core * part.shape(1), part.shape(1));
    if (!rows_.empty()) lengths_ = rising(rows_.back().first, rows_.back().second);
  }

  // Calls take(place, element, n) in the order of the slots; the first one's place is `to`, the next one after is left.
  template <class Take>
  void go(std::size_t dim, std::int64_t element, std::int64_t &to, Take &take) const {
    if (dim == rows_.size()) {
      take(to++, element, 1);
      return;
    }
    const auto &[row, extent] = rows_[dim];
    const bool is_last = dim + 1 == rows_.size();
    for (std::size_t i = 0; i < extent;) {
      if (!is_last) {
        go(dim + 1, element + row[i++], to, take);
        continue;
      }
      take(to, element + row[i], lengths_[i]);
      to += lengths_[i];
      i += static_cast<std::size_t>(lengths_[i]);
    }
  }

 private:
  std::vector<std::pair<const std::int64_t *, std::size_t>> rows_;
  std::vector<std::int32_t> lengths_;
};

// Returns runs and fills; a fill's first entry is the constant's number, `n_constants` for slots outside the tensor.
std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> find(const Parts &wanted, std::size_t n_cores,
                                                                     const std::optional<Longs> &ids,
                                                                     const std::vector<Source> &sources,
                                                                     std::int64_t n_constants, bool is_padded) {
  std::vector<SourceTable> homes;
  std::int64_t first = 0;
  for (const Source &source : sources) {
    homes.emplace_back(source, first);
    first += std::get<2>(source);
  }
  const std::vector<std::int32_t> id_lengths = ids ? rising(ids->data(), ids->shape(0)) : std::vector<std::int32_t>();
  Runs moves;
  Runs fills;
  for (std::size_t core = 0; core < n_cores; ++core) {
    std::size_t number = 0;
    const auto target = static_cast<std::int64_t>(core);
    const auto take = [&](std::int64_t to, std::int64_t element, std::int32_t n) {
      if (element < 0) {
        if (is_padded) fills.add(static_cast<std::int32_t>(n_constants), slot_of(to), to, n);
        return;
      }
      while (n > 0) {
        const std::int64_t id = ids ? ids->data()[element] : element;
        std::int32_t here = ids ? std::min(n, id_lengths[static_cast<std::size_t>(element)]) : n;
        if (id < 0) {
          fills.add(static_cast<std::int32_t>(kOutside - id), slot_of(to), to, here);
        } else {
          if (!homes[number].holds(id)) {
            number = 0;
            while (!homes[number].holds(id)) ++number;
          }
          const SourceTable &home = homes[number];
          const auto [from, length] = home.find(home.copy_of(target), id);
          here = std::min(here, length);
          moves.add(static_cast<std::int32_t>(number), from, to, here);
        }
        to += here;
        element += here;
        n -= here;
      }
    };
    std::int64_t begin = place_of(target, 0);
    Walk(wanted, core).go(0, 0, begin, take);
  }
  return {std::move(moves.rows), std::move(fills.rows)};
}

nb::tuple runs(const Parts &wanted, std::size_t n_cores, const std::optional<Longs> &ids, const std::vector<Source> &sources,
               std::int64_t n_constants, bool is_padded) {
  std::pair<std::vector<std::int32_t>, std::vector<std::int32_t>> found;
  {
    const nb::gil_scoped_release unlocked;
    found = find(wanted, n_cores, ids, sources, n_constants, is_padded);
  }
  return nb::make_tuple(to_numpy(std::move(found.first), kRunColumns), to_numpy(std::move(found.second), kRunColumns));
}

// Returns rows (source, source core, offset there, target core, offset there, bytes, count, step there, step here): runs
// whose distances from the one before are equal become one row.
Rows series(const Elements &runs, std::int32_t item_bytes) {
  if (runs.shape(1) != kRunColumns) throw std::invalid_argument("series: a run has 6 columns");
  std::vector<std::int32_t> rows;
  bool was_alike = false;
  std::int32_t source_step = 0;
  std::int32_t target_step = 0;
  for (std::size_t i = 0; i < runs.shape(0); ++i) {
    const std::int32_t *run = runs.data() + i * kRunColumns;
    const std::int32_t *before = run - kRunColumns;
    const bool is_alike = i > 0 && run[0] == before[0] && run[1] == before[1] && run[3] == before[3] && run[5] == before[5];
    const std::int32_t source_here = i > 0 ? (run[2] - before[2]) * item_bytes : 0;
    const std::int32_t target_here = i > 0 ? (run[4] - before[4]) * item_bytes : 0;
    if (is_alike && (!was_alike || (source_here == source_step && target_here == target_step))) {
      std::int32_t *last = rows.data() + rows.size() - kSeriesColumns;
      ++last[6];
      last[7] = source_here;
      last[8] = target_here;
    } else {
      rows.insert(rows.end(), {run[0], run[1], run[2] * item_bytes, run[3], run[4] * item_bytes, run[5] * item_bytes, 1, 0, 0});
    }
    was_alike = is_alike;
    source_step = source_here;
    target_step = target_here;
  }
  return to_numpy(std::move(rows), kSeriesColumns);
}

}  // namespace

NB_MODULE(_routes, module) {
  module.def("series", &series, nb::arg("rows"), nb::arg("item_bytes"));
  module.def("runs", &runs, nb::arg("wanted"), nb::arg("n_cores"), nb::arg("ids").none(), nb::arg("sources"), nb::arg("n_constants"),
             nb::arg("is_padded"));
}
