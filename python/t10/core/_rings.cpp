// t10.core._rings: which cores hold the same window, and who hands a ring's windows to whom (see _rings.pyi).

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;

namespace {

using Table = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Axes = std::vector<std::int64_t>;

constexpr std::int64_t kMostGroups = std::int64_t{1} << 62;

// From keys to numbers; a key that is new gets the number given for it.
class Numbering {
 public:
  explicit Numbering(std::size_t most) {
    std::size_t size = 16;
    while (size < 2 * most) size *= 2;
    mask_ = size - 1;
    keys_.assign(size, -1);
    numbers_.resize(size);
  }

  // The number of a key; `next` where it is new.
  std::int64_t &of(std::int64_t key, std::int64_t next) {
    std::size_t at = slot(key);
    if (keys_[at] != key) {
      keys_[at] = key;
      numbers_[at] = next;
    }
    return numbers_[at];
  }

  std::int64_t find(std::int64_t key) const {
    const std::size_t at = slot(key);
    return keys_[at] == key ? numbers_[at] : -1;
  }

 private:
  std::size_t slot(std::int64_t key) const {
    std::size_t at = (static_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15ULL >> 20) & mask_;
    while (keys_[at] != key && keys_[at] != -1) at = (at + 1) & mask_;
    return at;
  }

  std::size_t mask_;
  std::vector<std::int64_t> keys_, numbers_;
};

// Rows of numbers as one number each, equal for equal rows.
class Keys {
 public:
  explicit Keys(std::size_t n_rows) : keys_(n_rows, 0) {}

  // Take in the next column, whose entries are below `size`.
  template <typename Entry>
  void add(std::int64_t size, const Entry &entry) {
    if (size > 1 && most_ >= kMostGroups / size) renumber();
    if (size > 1 && most_ >= kMostGroups / size) throw std::invalid_argument("rings: a window starts beyond 2^40");
    for (std::size_t row = 0; row < keys_.size(); ++row) keys_[row] = keys_[row] * size + entry(row);
    most_ *= size;
  }

  const std::vector<std::int64_t> &all() const { return keys_; }

 private:
  void renumber() {
    Numbering numbering(keys_.size());
    std::int64_t n_found = 0;
    for (auto &key : keys_) {
      key = numbering.of(key, n_found);
      n_found += key == n_found;
    }
    most_ = std::max<std::int64_t>(n_found, 1);
  }

  std::vector<std::int64_t> keys_;
  std::int64_t most_ = 1;
};

void check(const Table &where, const Table &starts, const Axes &own, const Numbers &result) {
  const auto n_cores = where.shape(0), n_axes = where.shape(1);
  if (starts.shape(0) != n_cores || starts.shape(1) != n_axes || result.shape(0) != n_cores)
    throw std::invalid_argument("rings: expected one row per core in every table");
  for (const auto axis : own)
    if (axis < 0 || axis >= static_cast<std::int64_t>(n_axes)) throw std::out_of_range("rings: an axis that is not there");
  const std::int64_t *all[] = {where.data(), starts.data()};
  for (const auto *numbers : all)
    if (std::any_of(numbers, numbers + n_cores * n_axes, [](std::int64_t each) { return each < 0; }))
      throw std::invalid_argument("rings: expected numbers from 0");
}

std::int64_t size_of(const Table &table, std::int64_t axis) {
  std::int64_t most = 0;
  for (std::size_t core = 0; core < table.shape(0); ++core)
    most = std::max(most, table.data()[core * table.shape(1) + static_cast<std::size_t>(axis)]);
  return most + 1;
}

// The windows of cores, then, for every core from `n_cores` on, the window `step` further along `axis`.
Keys windows(const Table &where, const Table &starts, const Axes &own, std::int64_t axis, std::int64_t step,
             std::int64_t length, bool has_next) {
  const auto n_cores = where.shape(0), n_axes = where.shape(1);
  Keys keys(has_next ? 2 * n_cores : n_cores);
  for (const auto each : own) {
    const auto column = static_cast<std::size_t>(each);
    const auto at = [&](const Table &table, std::size_t row) {
      return table.data()[(row < n_cores ? row : row - n_cores) * n_axes + column];
    };
    keys.add(size_of(where, each), [&](std::size_t row) { return at(where, row); });
    keys.add(std::max(size_of(starts, each), each == axis ? length : 1), [&](std::size_t row) {
      const auto start = at(starts, row);
      return row < n_cores || each != axis ? start : (start + step) % length;
    });
  }
  return keys;
}

// How many cores with the same window come before each.
std::vector<std::int64_t> ranks_of(const std::vector<std::int64_t> &keys, std::size_t n_cores) {
  Numbering seen(n_cores);
  std::vector<std::int64_t> ranks(n_cores);
  for (std::size_t core = 0; core < n_cores; ++core) ranks[core] = seen.of(keys[core], 0)++;
  return ranks;
}

void window_ranks(const Table &where, const Table &starts, const Axes &own, Numbers &result) {
  check(where, starts, own, result);
  const nb::gil_scoped_release unlocked;
  const auto ranks = ranks_of(windows(where, starts, own, -1, 0, 1, false).all(), where.shape(0));
  std::copy(ranks.begin(), ranks.end(), result.data());
}

void window_groups(const Table &where, const Table &starts, const Axes &own, Numbers &result) {
  check(where, starts, own, result);
  const nb::gil_scoped_release unlocked;
  const auto keys = windows(where, starts, own, -1, 0, 1, false);
  Numbering numbering(where.shape(0));
  std::int64_t n_found = 0;
  for (std::size_t core = 0; core < where.shape(0); ++core) {
    result.data()[core] = numbering.of(keys.all()[core], n_found);
    n_found += result.data()[core] == n_found;
  }
}

void ring_sources(const Table &where, const Table &starts, const Axes &own, std::int64_t axis, std::int64_t step,
                  std::int64_t length, Numbers &result) {
  check(where, starts, own, result);
  if (length < 1 || step < 0) throw std::invalid_argument("rings: expected a length of 1 or more and a step from 0");
  const nb::gil_scoped_release unlocked;
  const auto n_cores = where.shape(0);
  auto keys = windows(where, starts, own, axis, step, length, true);
  const auto ranks = ranks_of(keys.all(), n_cores);
  const auto most = n_cores ? *std::max_element(ranks.begin(), ranks.end()) + 1 : 1;
  keys.add(most, [&](std::size_t row) { return ranks[row < n_cores ? row : row - n_cores]; });
  Numbering holder(n_cores);
  for (std::size_t core = 0; core < n_cores; ++core) holder.of(keys.all()[core], static_cast<std::int64_t>(core));
  for (std::size_t core = 0; core < n_cores; ++core) result.data()[core] = holder.find(keys.all()[n_cores + core]);
}

}  // namespace

NB_MODULE(_rings, module) {
  module.doc() = "Who holds the same window, and who hands it on (see _rings.pyi for meanings and units).";
  module.def("window_ranks", &window_ranks, nb::arg("coordinates"), nb::arg("starts"), nb::arg("own"), nb::arg("ranks"));
  module.def("window_groups", &window_groups, nb::arg("coordinates"), nb::arg("starts"), nb::arg("own"), nb::arg("groups"));
  module.def("ring_sources", &ring_sources, nb::arg("coordinates"), nb::arg("starts"), nb::arg("own"), nb::arg("axis"),
             nb::arg("step"), nb::arg("length"), nb::arg("sources"));
}
