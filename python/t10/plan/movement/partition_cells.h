// How an operand lies on the cores of a plan: per dim the runs of indices every core holds, walked as runs of elements.
//
// The same closed forms as t10.core.geometry (window_starts, dim_indices, flat_elements), kept as runs instead of slots.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace t10 {

using Int = std::int64_t;
using Ints = std::vector<Int>;

constexpr Int kSmallRange = Int{1} << 16;

// One digit of a phase: sharer axes, divisor, modulus, stride (t10.core.plan.PhaseTerm); negative where it is folded.
using PhaseFields = std::tuple<Ints, Int, Int, Int>;
// One dim of an operand: extent, offset, terms (axis, coefficient).
using DimFields = std::tuple<Int, Int, std::vector<std::pair<Int, Int>>>;

// First slots and extents per dim of a box of slots, and the boxes that a core of one rank takes of its partition.
using BoxFields = std::pair<Ints, Ints>;
using Boxes = std::vector<BoxFields>;

// `length` slots of one dim from `slot` hold the indices from `index`. Slots outside the tensor are in no piece.
struct IndexRun {
  Int slot;
  Int index;
  Int length;
};

// One dim of a cut operand. Cores that hold the same indices have the same variant.
struct CellDim {
  Int extent = 1;
  Int length = 1;
  Int stride = 1;
  Int slot_stride = 1;
  std::vector<std::vector<IndexRun>> variants;
  std::vector<std::int32_t> variant_of_core;

  bool is_whole() const {
    if (variants.size() != 1 || variants[0].size() != 1 || length != extent) return false;
    const IndexRun &piece = variants[0][0];
    return piece.slot == 0 && piece.index == 0 && piece.length == extent;
  }

  // Whether no index is in two variants.
  bool is_exclusive() const {
    if (variants.size() == 1) return true;
    std::vector<std::pair<Int, Int>> held;
    for (const auto &variant : variants)
      for (const IndexRun &run : variant) held.emplace_back(run.index, run.index + run.length);
    std::sort(held.begin(), held.end());
    for (std::size_t i = 1; i < held.size(); ++i)
      if (held[i].first < held[i - 1].second) return false;
    return true;
  }
};

// Numbers equal keys (0 <= key < range) alike, in order of first appearance; returns how many different ones there are.
inline std::size_t number_keys(const Ints &keys, Int range, std::vector<std::int32_t> &numbers) {
  numbers.resize(keys.size());
  std::int32_t n_numbers = 0;
  if (range <= kSmallRange) {
    std::vector<std::int32_t> seen(static_cast<std::size_t>(range), -1);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::int32_t &number = seen[static_cast<std::size_t>(keys[i])];
      if (number < 0) number = n_numbers++;
      numbers[i] = number;
    }
    return static_cast<std::size_t>(n_numbers);
  }
  std::unordered_map<Int, std::int32_t> seen;
  seen.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto [entry, is_new] = seen.emplace(keys[i], n_numbers);
    if (is_new) ++n_numbers;
    numbers[i] = entry->second;
  }
  return static_cast<std::size_t>(n_numbers);
}

// Cores by group, in core order: group g has `cores[first[g]]` to `cores[first[g + 1] - 1]`.
struct Groups {
  std::vector<std::int32_t> cores;
  std::vector<std::int32_t> first;

  Groups() = default;
  Groups(const std::vector<std::int32_t> &group_of_core, std::size_t n_groups)
      : cores(group_of_core.size()), first(n_groups + 1, 0) {
    for (const std::int32_t group : group_of_core) ++first[static_cast<std::size_t>(group) + 1];
    for (std::size_t group = 0; group < n_groups; ++group) first[group + 1] += first[group];
    std::vector<std::int32_t> next(first.begin(), first.end() - 1);
    for (std::size_t core = 0; core < group_of_core.size(); ++core)
      cores[static_cast<std::size_t>(next[static_cast<std::size_t>(group_of_core[core])]++)] =
          static_cast<std::int32_t>(core);
  }

  std::size_t size() const { return first.size() - 1; }
  std::size_t size(std::size_t group) const { return static_cast<std::size_t>(first[group + 1] - first[group]); }
  const std::int32_t *begin(std::size_t group) const { return cores.data() + first[group]; }
};

class PartitionCells {
 public:
  // `shift` is how far windows have moved along every axis, `windows` their lengths, `rotates` whether they move. Where
  // there are `chunks`, the core of rank k among those that hold the same windows takes the slots of chunk k only.
  PartitionCells(const std::vector<DimFields> &forms, Ints f_op, Ints lengths, Ints windows, const Ints &core_order,
      const std::vector<std::vector<PhaseFields>> &phases, const Ints &shift, std::vector<bool> rotates,
      std::vector<Boxes> chunks = {})
      : f_op_(std::move(f_op)),
        lengths_(std::move(lengths)),
        windows_(std::move(windows)),
        rotates_(std::move(rotates)),
        chunks_(std::move(chunks)) {
    const std::size_t n_axes = f_op_.size();
    if (lengths_.size() != n_axes || windows_.size() != n_axes || core_order.size() != n_axes ||
        phases.size() != n_axes || shift.size() != n_axes || rotates_.size() != n_axes)
      throw std::invalid_argument("PartitionCells: every row must have one entry per axis");
    n_cores = 1;
    for (std::size_t axis = 0; axis < n_axes; ++axis) {
      if (f_op_[axis] < 1 || lengths_[axis] < 1 || windows_[axis] < 1)
        throw std::invalid_argument("PartitionCells: factors, lengths and windows must be 1 or more");
      n_cores *= f_op_[axis];
    }
    if (n_cores > (Int{1} << 24)) throw std::invalid_argument("PartitionCells: too many cores");
    place_cores(core_order, phases, shift);
    add_dims(forms);
    is_exclusive = std::all_of(dims.begin(), dims.end(), [](const CellDim &dim) { return dim.is_exclusive(); });
    group_cores();
    n_taken = n_slots;
    if (!chunks_.empty()) rank_cores();
    // Only needed to get here; thousands are kept.
    coordinates_ = {};
    starts_ = {};
    start_numbers_ = {};
  }

  Int n_cores = 1;
  Int n_slots = 1;
  // The most slots that a core takes: all, or those of a chunk.
  Int n_taken = 1;
  Int n_elements = 1;
  std::vector<CellDim> dims;
  // Innermost dim that is not held whole: the dims behind it only make runs longer.
  std::size_t run_dim = 0;
  // Whether no element is held by cores of several groups.
  bool is_exclusive = true;
  // Cores that hold the same windows have the same group.
  std::vector<std::int32_t> group_of_core;
  Groups groups;

  // Calls emit(slot, element, length) for the runs of a core, in the order of its slots.
  template <class Emit>
  void walk(Int core, Emit &&emit) const {
    if (dims.empty()) {
      emit(Int{0}, Int{0}, Int{1});
      return;
    }
    if (!chunks_.empty()) {
      walk_chunk(static_cast<std::size_t>(core), emit);
      return;
    }
    descend(0, static_cast<std::size_t>(core), 0, 0, emit);
  }

  // Whether two cores hold some element both; never false where they do.
  bool overlap(Int one, Int other) const {
    return std::all_of(dims.begin(), dims.end(), [&](const CellDim &dim) {
      const std::int32_t first = dim.variant_of_core[static_cast<std::size_t>(one)];
      const std::int32_t second = dim.variant_of_core[static_cast<std::size_t>(other)];
      if (first == second) return true;
      for (const IndexRun &a : dim.variants[static_cast<std::size_t>(first)])
        for (const IndexRun &b : dim.variants[static_cast<std::size_t>(second)])
          if (a.index < b.index + b.length && b.index < a.index + a.length) return true;
      return false;
    });
  }

 private:
  template <class Emit>
  void descend(std::size_t d, std::size_t core, Int slot, Int element, Emit &emit) const {
    const CellDim &dim = dims[d];
    for (const IndexRun &piece : dim.variants[static_cast<std::size_t>(dim.variant_of_core[core])]) {
      Int slot_here = slot + piece.slot * dim.slot_stride;
      Int element_here = element + piece.index * dim.stride;
      if (d == run_dim) {
        emit(slot_here, element_here, piece.length * dim.stride);
        continue;
      }
      for (Int i = 0; i < piece.length; ++i) {
        descend(d + 1, core, slot_here, element_here, emit);
        slot_here += dim.slot_stride;
        element_here += dim.stride;
      }
    }
  }

  struct SlotElements {
    Int slot;
    Int element;
    Int length;
  };

  // Boxes of a chunk may alternate in the order of slots.
  template <class Emit>
  void walk_chunk(std::size_t core, Emit &emit) const {
    std::vector<SlotElements> runs;
    for (const auto &[first, size] : chunks_[rank_of_core_[core]]) descend_box(0, core, first, size, {0, 0, 0}, runs);
    std::sort(runs.begin(), runs.end(), [](const SlotElements &a, const SlotElements &b) { return a.slot < b.slot; });
    for (std::size_t i = 0; i < runs.size();) {
      SlotElements run = runs[i++];
      for (; i < runs.size() && runs[i].slot == run.slot + run.length && runs[i].element == run.element + run.length; ++i)
        run.length += runs[i].length;
      emit(run.slot, run.element, run.length);
    }
  }

  void descend_box(std::size_t d, std::size_t core, const Ints &first, const Ints &size, SlotElements at,
                   std::vector<SlotElements> &runs) const {
    const CellDim &dim = dims[d];
    const Int begin = first[d], end = first[d] + size[d];
    for (const IndexRun &piece : dim.variants[static_cast<std::size_t>(dim.variant_of_core[core])]) {
      const Int low = std::max(begin, piece.slot), high = std::min(end, piece.slot + piece.length);
      if (low >= high) continue;
      const Int index = piece.index + low - piece.slot;
      if (d + 1 == dims.size()) {
        runs.push_back({at.slot + low, at.element + index, high - low});
        continue;
      }
      for (Int i = 0; i < high - low; ++i)
        descend_box(d + 1, core, first, size,
                    {at.slot + (low + i) * dim.slot_stride, at.element + (index + i) * dim.stride, 0}, runs);
    }
  }

  void place_cores(const Ints &core_order, const std::vector<std::vector<PhaseFields>> &phases, const Ints &shift) {
    const std::size_t n_axes = f_op_.size();
    const auto n = static_cast<std::size_t>(n_cores);
    coordinates_.resize(n_axes);
    starts_.assign(n_axes, Ints());
    start_numbers_.resize(n_axes);
    n_starts_.assign(n_axes, 1);
    Int below = n_cores;
    for (const Int axis : core_order) {
      if (axis < 0 || axis >= static_cast<Int>(n_axes) || !coordinates_[static_cast<std::size_t>(axis)].empty())
        throw std::invalid_argument("PartitionCells: core_order must name every axis once");
      const auto a = static_cast<std::size_t>(axis);
      coordinates_[a].resize(n);
      below /= f_op_[a];
      for (std::size_t core = 0; core < n;) {
        const auto coordinate = static_cast<std::int32_t>(static_cast<Int>(core) / below % f_op_[a]);
        for (Int i = 0; i < below; ++i) coordinates_[a][core++] = coordinate;
      }
    }
    for (std::size_t axis = 0; axis < n_axes; ++axis) {
      if (!rotates_[axis]) continue;
      Ints &starts = starts_[axis];
      starts.assign(n, 0);
      for (const auto &[sharers, divisor, modulus, stride] : phases[axis])
        add_phase(starts, sharers, divisor, modulus, stride);
      for (Int &start : starts) {
        start = (start % lengths_[axis] + shift[axis]) % lengths_[axis];
        if (start < 0) start += lengths_[axis];
      }
      n_starts_[axis] = static_cast<Int>(number_keys(starts, lengths_[axis], start_numbers_[axis]));
    }
  }

  void add_phase(Ints &starts, const Ints &sharers, Int divisor, Int modulus, Int stride) const {
    const bool is_folded = modulus < 0;
    if (is_folded) modulus = -modulus;
    if (divisor < 1 || modulus < 1) throw std::invalid_argument("PartitionCells: a phase must divide by 1 or more");
    for (const Int axis : sharers)
      if (axis < 0 || axis >= static_cast<Int>(f_op_.size()))
        throw std::invalid_argument("PartitionCells: a phase names no axis");
    for (std::size_t core = 0; core < starts.size(); ++core) {
      Int sigma = 0;
      for (const Int axis : sharers)
        sigma = sigma * f_op_[static_cast<std::size_t>(axis)] + coordinates_[static_cast<std::size_t>(axis)][core];
      const Int digit = (sigma / divisor) % modulus;
      starts[core] += stride * (!is_folded ? digit : digit % 2 == 0 ? digit / 2 : modulus - (digit + 1) / 2);
    }
  }

  void add_dims(const std::vector<DimFields> &forms) {
    for (const auto &[extent, offset, terms] : forms) {
      if (extent < 1) throw std::invalid_argument("PartitionCells: a dim must have 1 element or more");
      CellDim dim;
      dim.extent = extent;
      for (const auto &[axis, coefficient] : terms) {
        if (axis < 0 || axis >= static_cast<Int>(f_op_.size()))
          throw std::invalid_argument("PartitionCells: a dim names no axis");
        dim.length += coefficient * (windows_[static_cast<std::size_t>(axis)] - 1);
      }
      add_variants(dim, offset, terms);
      dims.push_back(std::move(dim));
    }
    for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
      dim->stride = n_elements;
      dim->slot_stride = n_slots;
      n_elements *= dim->extent;
      n_slots *= dim->length;
    }
    run_dim = dims.empty() ? 0 : dims.size() - 1;
    while (run_dim > 0 && dims[run_dim].is_whole()) --run_dim;
  }

  void add_variants(CellDim &dim, Int offset, const std::vector<std::pair<Int, Int>> &terms) {
    const auto n = static_cast<std::size_t>(n_cores);
    dim.variant_of_core.assign(n, 0);
    std::size_t n_variants = 1;
    Ints keys(n);
    for (const auto &[axis, coefficient] : terms) {
      const auto a = static_cast<std::size_t>(axis);
      for (std::size_t core = 0; core < n; ++core)
        keys[core] = dim.variant_of_core[core] * f_op_[a] + coordinates_[a][core];
      n_variants = number_keys(keys, static_cast<Int>(n_variants) * f_op_[a], dim.variant_of_core);
      if (!rotates_[a]) continue;
      const Int n_starts = n_starts_[a];
      for (std::size_t core = 0; core < n; ++core)
        keys[core] = dim.variant_of_core[core] * n_starts + start_numbers_[a][core];
      n_variants = number_keys(keys, static_cast<Int>(n_variants) * n_starts, dim.variant_of_core);
    }
    dim.variants.resize(n_variants);
    std::vector<bool> is_made(n_variants, false);
    for (std::size_t core = 0; core < n; ++core) {
      const auto variant = static_cast<std::size_t>(dim.variant_of_core[core]);
      if (is_made[variant]) continue;
      is_made[variant] = true;
      add_pieces(dim.variants[variant], dim, offset, terms, core);
    }
  }

  void add_pieces(std::vector<IndexRun> &pieces, const CellDim &dim, Int offset,
                  const std::vector<std::pair<Int, Int>> &terms, std::size_t core) const {
    const bool is_simple = terms.size() == 1 && terms[0].second == 1 && offset == 0;
    if (!is_simple) {
      Int first = offset;
      for (const auto &[axis, coefficient] : terms) {
        const auto a = static_cast<std::size_t>(axis);
        first += coefficient * (coordinates_[a][core] * lengths_[a] + start(a, core));
      }
      add_piece(pieces, 0, first, dim.length, dim.extent);
      return;
    }
    // A circular window: index l of a part lies in slot l mod w.
    const auto a = static_cast<std::size_t>(terms[0].first);
    const Int base = coordinates_[a][core] * lengths_[a];
    const Int first = start(a, core);
    const Int window = windows_[a];
    const Int turn = first % window;
    add_wrapped(pieces, 0, first - turn + window, turn, base, lengths_[a], dim.extent);
    add_wrapped(pieces, turn, first, window - turn, base, lengths_[a], dim.extent);
  }

  Int start(std::size_t axis, std::size_t core) const { return rotates_[axis] ? starts_[axis][core] : 0; }

  static void add_wrapped(std::vector<IndexRun> &pieces, Int slot, Int local, Int length, Int base, Int part, Int extent) {
    while (length > 0) {
      const Int from = local % part;
      const Int here = std::min(length, part - from);
      add_piece(pieces, slot, base + from, here, extent);
      slot += here;
      local += here;
      length -= here;
    }
  }

  static void add_piece(std::vector<IndexRun> &pieces, Int slot, Int index, Int length, Int extent) {
    const Int below = std::max<Int>(0, -index);
    slot += below;
    index += below;
    length = std::min(length - below, extent - index);
    if (length <= 0) return;
    if (!pieces.empty()) {
      IndexRun &last = pieces.back();
      if (last.slot + last.length == slot && last.index + last.length == index) {
        last.length += length;
        return;
      }
    }
    pieces.push_back({slot, index, length});
  }

  void group_cores() {
    const auto n = static_cast<std::size_t>(n_cores);
    group_of_core.assign(n, 0);
    std::size_t n_groups = 1;
    Ints keys(n);
    for (const CellDim &dim : dims) {
      const auto n_variants = static_cast<Int>(dim.variants.size());
      if (n_variants == 1) continue;
      for (std::size_t core = 0; core < n; ++core)
        keys[core] = group_of_core[core] * n_variants + dim.variant_of_core[core];
      n_groups = number_keys(keys, static_cast<Int>(n_groups) * n_variants, group_of_core);
    }
    groups = Groups(group_of_core, n_groups);
  }

  // Every core takes something else: its rank counts those before it that hold the same windows.
  void rank_cores() {
    rank_of_core_.assign(static_cast<std::size_t>(n_cores), 0);
    for (std::size_t group = 0; group < groups.size(); ++group) {
      if (groups.size(group) > chunks_.size()) throw std::invalid_argument("PartitionCells: a core has no chunk");
      for (std::size_t i = 0; i < groups.size(group); ++i)
        rank_of_core_[static_cast<std::size_t>(groups.begin(group)[i])] = i;
    }
    n_taken = 0;
    for (const Boxes &boxes : chunks_) {
      Int taken = 0;
      for (const auto &[first, size] : boxes) {
        if (first.size() != dims.size() || size.size() != dims.size())
          throw std::invalid_argument("PartitionCells: a box must have one entry per dim");
        taken += std::accumulate(size.begin(), size.end(), Int{1}, std::multiplies<Int>());
      }
      n_taken = std::max(n_taken, taken);
    }
    std::iota(group_of_core.begin(), group_of_core.end(), 0);
    groups = Groups(group_of_core, group_of_core.size());
  }

  Ints f_op_;
  Ints lengths_;
  Ints windows_;
  std::vector<std::vector<std::int32_t>> coordinates_;
  std::vector<bool> rotates_;
  std::vector<Boxes> chunks_;
  std::vector<std::size_t> rank_of_core_;
  std::vector<Ints> starts_;
  std::vector<std::vector<std::int32_t>> start_numbers_;
  Ints n_starts_;
};

}  // namespace t10
