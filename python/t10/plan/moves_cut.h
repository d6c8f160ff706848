// How an operand lies on the cores of a plan: per dim the runs of indices every core holds, walked as runs of elements.
//
// The same closed forms as t10.core.geometry (window_starts, dim_indices, flat_elements), kept as runs instead of slots.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace t10 {

using Int = std::int64_t;
using Ints = std::vector<Int>;

// One digit of a phase: sharer axes, divisor, modulus, stride (t10.core.plan.PhaseTerm).
using PhaseFields = std::tuple<Ints, Int, Int, Int>;
// One dim of an operand: extent, offset, terms (axis, coefficient).
using DimFields = std::tuple<Int, Int, std::vector<std::pair<Int, Int>>>;

// `length` slots of one dim from `slot` hold the indices from `index`. Slots outside the tensor are in no piece.
struct Piece {
  Int slot;
  Int index;
  Int length;
};

// One dim of a cut operand. Cores that hold the same indices have the same variant.
struct CutDim {
  Int extent = 1;
  Int length = 1;
  Int stride = 1;
  Int slot_stride = 1;
  std::vector<std::vector<Piece>> variants;
  std::vector<std::int32_t> variant_of_core;

  bool is_whole() const {
    if (variants.size() != 1 || variants[0].size() != 1 || length != extent) return false;
    const Piece &piece = variants[0][0];
    return piece.slot == 0 && piece.index == 0 && piece.length == extent;
  }
};

// Numbers equal keys alike, in order of first appearance; returns how many different keys there are.
inline std::size_t number_keys(const Ints &keys, std::vector<std::int32_t> &numbers) {
  std::unordered_map<Int, std::int32_t> seen;
  seen.reserve(keys.size());
  numbers.resize(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i)
    numbers[i] = seen.emplace(keys[i], static_cast<std::int32_t>(seen.size())).first->second;
  return seen.size();
}

class Cut {
 public:
  // `shift` is how far windows have moved along every axis, `windows` their lengths, `rotates` whether they move.
  Cut(const std::vector<DimFields> &forms, Ints f_op, Ints lengths, Ints windows, const Ints &core_order,
      const std::vector<std::vector<PhaseFields>> &phases, const Ints &shift, const std::vector<bool> &rotates)
      : f_op_(std::move(f_op)), lengths_(std::move(lengths)), windows_(std::move(windows)) {
    const std::size_t n_axes = f_op_.size();
    if (lengths_.size() != n_axes || windows_.size() != n_axes || core_order.size() != n_axes ||
        phases.size() != n_axes || shift.size() != n_axes || rotates.size() != n_axes)
      throw std::invalid_argument("Cut: every row must have one entry per axis");
    n_cores = 1;
    for (std::size_t axis = 0; axis < n_axes; ++axis) {
      if (f_op_[axis] < 1 || lengths_[axis] < 1 || windows_[axis] < 1)
        throw std::invalid_argument("Cut: factors, lengths and windows must be 1 or more");
      n_cores *= f_op_[axis];
    }
    if (n_cores > (Int{1} << 24)) throw std::invalid_argument("Cut: too many cores");
    place_cores(core_order, phases, shift, rotates);
    add_dims(forms);
    group_cores();
    coordinates_.clear();
    starts_.clear();
  }

  Int n_cores = 1;
  Int n_slots = 1;
  Int n_elements = 1;
  std::vector<CutDim> dims;
  // Innermost dim that is not held whole: the dims behind it only make runs longer.
  std::size_t run_dim = 0;
  // Cores that hold the same windows have the same group; `members` by group, in core order.
  std::vector<std::int32_t> group_of_core;
  std::vector<std::vector<std::int32_t>> members;

  // Calls emit(slot, element, length) for the runs of a core, in the order of its slots.
  template <class Emit>
  void walk(Int core, Emit &&emit) const {
    if (dims.empty()) {
      emit(Int{0}, Int{0}, Int{1});
      return;
    }
    descend(0, static_cast<std::size_t>(core), 0, 0, emit);
  }

 private:
  template <class Emit>
  void descend(std::size_t d, std::size_t core, Int slot, Int element, Emit &emit) const {
    const CutDim &dim = dims[d];
    for (const Piece &piece : dim.variants[static_cast<std::size_t>(dim.variant_of_core[core])]) {
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

  void place_cores(const Ints &core_order, const std::vector<std::vector<PhaseFields>> &phases, const Ints &shift,
                   const std::vector<bool> &rotates) {
    const std::size_t n_axes = f_op_.size();
    const auto n = static_cast<std::size_t>(n_cores);
    coordinates_.assign(n_axes, std::vector<std::int32_t>(n));
    starts_.assign(n_axes, Ints(n, 0));
    Int below = n_cores;
    for (const Int axis : core_order) {
      if (axis < 0 || axis >= static_cast<Int>(n_axes)) throw std::invalid_argument("Cut: core_order names no axis");
      const auto a = static_cast<std::size_t>(axis);
      below /= f_op_[a];
      for (std::size_t core = 0; core < n; ++core)
        coordinates_[a][core] = static_cast<std::int32_t>(static_cast<Int>(core) / below % f_op_[a]);
    }
    for (std::size_t axis = 0; axis < n_axes; ++axis) {
      if (!rotates[axis]) continue;
      Ints &starts = starts_[axis];
      for (const auto &[sharers, divisor, modulus, stride] : phases[axis])
        add_phase(starts, sharers, divisor, modulus, stride);
      for (Int &start : starts) {
        start = (start % lengths_[axis] + shift[axis]) % lengths_[axis];
        if (start < 0) start += lengths_[axis];
      }
    }
  }

  void add_phase(Ints &starts, const Ints &sharers, Int divisor, Int modulus, Int stride) const {
    if (divisor < 1 || modulus < 1) throw std::invalid_argument("Cut: a phase must divide by 1 or more");
    for (const Int axis : sharers)
      if (axis < 0 || axis >= static_cast<Int>(f_op_.size())) throw std::invalid_argument("Cut: a phase names no axis");
    for (std::size_t core = 0; core < starts.size(); ++core) {
      Int sigma = 0;
      for (const Int axis : sharers)
        sigma = sigma * f_op_[static_cast<std::size_t>(axis)] + coordinates_[static_cast<std::size_t>(axis)][core];
      starts[core] += stride * ((sigma / divisor) % modulus);
    }
  }

  void add_dims(const std::vector<DimFields> &forms) {
    for (const auto &[extent, offset, terms] : forms) {
      CutDim dim;
      dim.extent = extent;
      for (const auto &[axis, coefficient] : terms) {
        if (axis < 0 || axis >= static_cast<Int>(f_op_.size())) throw std::invalid_argument("Cut: a dim names no axis");
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

  void add_variants(CutDim &dim, Int offset, const std::vector<std::pair<Int, Int>> &terms) {
    const auto n = static_cast<std::size_t>(n_cores);
    dim.variant_of_core.assign(n, 0);
    std::size_t n_variants = 1;
    Ints keys(n);
    for (const auto &[axis, coefficient] : terms) {
      const auto a = static_cast<std::size_t>(axis);
      const Int span = f_op_[a] * lengths_[a];
      for (std::size_t core = 0; core < n; ++core)
        keys[core] = dim.variant_of_core[core] * span + coordinates_[a][core] * lengths_[a] + starts_[a][core];
      n_variants = number_keys(keys, dim.variant_of_core);
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

  void add_pieces(std::vector<Piece> &pieces, const CutDim &dim, Int offset,
                  const std::vector<std::pair<Int, Int>> &terms, std::size_t core) const {
    const bool is_simple = terms.size() == 1 && terms[0].second == 1 && offset == 0;
    if (!is_simple) {
      Int first = offset;
      for (const auto &[axis, coefficient] : terms) {
        const auto a = static_cast<std::size_t>(axis);
        first += coefficient * (coordinates_[a][core] * lengths_[a] + starts_[a][core]);
      }
      add_piece(pieces, 0, first, dim.length, dim.extent);
      return;
    }
    // A circular window: index l of a part lies in slot l mod w.
    const auto a = static_cast<std::size_t>(terms[0].first);
    const Int base = coordinates_[a][core] * lengths_[a];
    const Int start = starts_[a][core];
    const Int window = windows_[a];
    const Int turn = start % window;
    add_wrapped(pieces, 0, start - turn + window, turn, base, lengths_[a], dim.extent);
    add_wrapped(pieces, turn, start, window - turn, base, lengths_[a], dim.extent);
  }

  static void add_wrapped(std::vector<Piece> &pieces, Int slot, Int local, Int length, Int base, Int part, Int extent) {
    while (length > 0) {
      const Int from = local % part;
      const Int here = std::min(length, part - from);
      add_piece(pieces, slot, base + from, here, extent);
      slot += here;
      local += here;
      length -= here;
    }
  }

  static void add_piece(std::vector<Piece> &pieces, Int slot, Int index, Int length, Int extent) {
    const Int below = std::max<Int>(0, -index);
    slot += below;
    index += below;
    length = std::min(length - below, extent - index);
    if (length <= 0) return;
    if (!pieces.empty()) {
      Piece &last = pieces.back();
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
    for (const CutDim &dim : dims) {
      if (dim.variants.size() == 1) continue;
      for (std::size_t core = 0; core < n; ++core)
        keys[core] = group_of_core[core] * static_cast<Int>(dim.variants.size()) + dim.variant_of_core[core];
      n_groups = number_keys(keys, group_of_core);
    }
    members.resize(n_groups);
    for (std::size_t core = 0; core < n; ++core)
      members[static_cast<std::size_t>(group_of_core[core])].push_back(static_cast<std::int32_t>(core));
  }

  Ints f_op_;
  Ints lengths_;
  Ints windows_;
  std::vector<std::vector<std::int32_t>> coordinates_;
  std::vector<Ints> starts_;
};

}  // namespace t10
