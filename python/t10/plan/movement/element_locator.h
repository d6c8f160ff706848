// Where a value's elements lie: from an element and a copy to the core, the slot and the length of the run there.
//
// The same answers as t10.core.movement.home_tables (of equal elements the first core's counts) without its tables:
// dims are cut into cells that every window either holds whole or not at all, and one small table names the first
// core of every cell. Where a slot depends on more than the element (halos), a table over all elements takes over.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../../core/chunks.h"
#include "partition_cells.h"

namespace t10 {

// Division of numbers below 2^32 by a fixed one, by multiplication.
class Divider {
 public:
  explicit Divider(Int divisor = 1)
      : magic_(divisor == 1 ? 0 : std::numeric_limits<std::uint64_t>::max() / static_cast<std::uint64_t>(divisor) + 1) {}

  Int operator()(Int number) const {
    if (magic_ == 0) return number;
    return static_cast<Int>((static_cast<unsigned __int128>(magic_) * static_cast<std::uint64_t>(number)) >> 64);
  }

 private:
  std::uint64_t magic_;
};

// `length` elements from the one asked for lie in the slots from `slot` of `core`; core -1: on none.
struct SlotRun {
  Int core;
  Int slot;
  Int length;
};

class ElementLocator {
 public:
  ElementLocator(std::shared_ptr<const PartitionCells> cells, Int scatter) : partition_(std::move(cells)), scatter_(scatter) {
    if (scatter < 1) throw std::invalid_argument("ElementLocator: scatter must be 1 or more");
    if (partition_->n_elements >= (Int{1} << 32) || partition_->n_slots >= (Int{1} << 32))
      throw std::invalid_argument("ElementLocator: values of 2^32 elements and more are not supported");
    n_slots = window_chunk(partition_->n_slots, scatter);
    by_chunk_ = Divider(n_slots);
    rank_cores();
    if (is_linear()) return;
    if (!make_cells()) make_table();
  }

  Int n_cores() const { return partition_->n_cores; }
  const PartitionCells &cells() const { return *partition_; }
  Int chunk_of(Int core) const { return chunk_of_core_[static_cast<std::size_t>(core)]; }

  // Which copy a destination core reads: its own if it holds one, else copies in turn.
  Int choice(Int core) const {
    return core < partition_->n_cores ? copy_of_core_[static_cast<std::size_t>(core)] : core % n_copies;
  }

  SlotRun find(Int copy, Int element) const {
    switch (kind_) {
      case Kind::kLinear: {
        const Int core = by_chunk_(element);
        const Int slot = element - core * n_slots;
        return {core, slot, n_slots - slot};
      }
      case Kind::kCells:
        return find_cell(copy, element);
      default: {
        const auto entry = static_cast<std::size_t>(copy * partition_->n_elements + element);
        return {core_[entry], slot_[entry], 1};
      }
    }
  }

  Int n_slots = 0;
  Int n_copies = 1;

 private:
  enum class Kind { kLinear, kCells, kTable };

  // One index of a dim: which cells it is in, its part of the slot number, and how many indices continue the run.
  struct IndexPlace {
    std::int32_t cell;
    std::int32_t slot;
    std::int32_t left;
  };

  struct LookupDim {
    Divider by_stride;
    Int stride;
    std::vector<IndexPlace> places;
    // Where windows of different cores have an index in different slots: slot less index, by variant of the dim.
    Ints slot_less_index;
    Int slot_stride;
    const std::int32_t *variant_of_core;
  };

  void rank_cores() {
    const auto n = static_cast<std::size_t>(partition_->n_cores);
    copy_of_core_.resize(n);
    chunk_of_core_.resize(n);
    for (std::size_t group = 0; group < partition_->groups.size(); ++group)
      for (std::size_t rank = 0; rank < partition_->groups.size(group); ++rank) {
        const auto core = static_cast<std::size_t>(partition_->groups.begin(group)[rank]);
        copy_of_core_[core] = static_cast<std::int32_t>(static_cast<Int>(rank) / scatter_);
        chunk_of_core_[core] = static_cast<std::int32_t>(static_cast<Int>(rank) % scatter_);
        n_copies = std::max<Int>(n_copies, copy_of_core_[core] + 1);
      }
  }

  // One dim, one part after the other in core order, each in one run: a layout that is spread evenly.
  bool is_linear() {
    if (scatter_ != 1 || n_copies != 1 || partition_->dims.size() != 1) return false;
    const CellDim &dim = partition_->dims[0];
    if (static_cast<Int>(dim.variants.size()) != partition_->n_cores || dim.length * partition_->n_cores < dim.extent) return false;
    for (Int core = 0; core < partition_->n_cores; ++core) {
      const auto &pieces = dim.variants[static_cast<std::size_t>(dim.variant_of_core[static_cast<std::size_t>(core)])];
      if (pieces.empty() && core * dim.length >= dim.extent) continue;
      if (pieces.size() != 1 || pieces[0].slot != 0 || pieces[0].index != core * dim.length) return false;
    }
    kind_ = Kind::kLinear;
    return true;
  }

  // Cuts every dim at all ends of pieces. Returns false where that does not say where an element lies.
  bool make_cells() {
    std::vector<std::vector<std::vector<std::int32_t>>> cells;
    n_cells_ = 1;
    for (std::size_t d = 0; d < partition_->dims.size() && d <= partition_->run_dim; ++d) {
      cells.emplace_back();
      if (!cut_dim(partition_->dims[d], cells.back())) return false;
      if (n_cells_ * n_copies * scatter_ > kMostCells) return false;
    }
    owner_.assign(static_cast<std::size_t>(n_cells_ * n_copies * scatter_), -1);
    for (Int core = partition_->n_cores - 1; core >= 0; --core) {
      const auto at = static_cast<std::size_t>(core);
      own_cells(cells, at, 0, (copy_of_core_[at] * scatter_ + chunk_of_core_[at]) * n_cells_);
    }
    kind_ = Kind::kCells;
    return true;
  }

  bool cut_dim(const CellDim &dim, std::vector<std::vector<std::int32_t>> &cells_by_variant) {
    Ints ends{0, dim.extent};
    for (const auto &pieces : dim.variants)
      for (const IndexRun &piece : pieces) {
        ends.push_back(piece.index);
        ends.push_back(piece.index + piece.length);
      }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    const std::size_t n_here = ends.size() - 1;
    Ints slots(n_here, -1);
    bool is_shifted = false;
    cells_by_variant.resize(dim.variants.size());
    for (std::size_t variant = 0; variant < dim.variants.size(); ++variant)
      for (const IndexRun &piece : dim.variants[variant]) {
        auto cell = static_cast<std::size_t>(std::lower_bound(ends.begin(), ends.end(), piece.index) - ends.begin());
        for (; cell < n_here && ends[cell] < piece.index + piece.length; ++cell) {
          const Int slot = piece.slot + ends[cell] - piece.index;
          is_shifted |= slots[cell] >= 0 && slots[cell] != slot;
          slots[cell] = slot;
          cells_by_variant[variant].push_back(static_cast<std::int32_t>(static_cast<Int>(cell) * n_cells_));
        }
      }
    LookupDim lookup{Divider(dim.stride), dim.stride, {}, {}, dim.slot_stride, dim.variant_of_core.data()};
    if (is_shifted) {
      if (scatter_ > 1) return false;
      is_shifted_ = true;
      for (const auto &pieces : dim.variants) {
        if (pieces.size() > 1) return false;
        lookup.slot_less_index.push_back(pieces.empty() ? 0 : pieces[0].slot - pieces[0].index);
      }
    }
    lookup.places.resize(static_cast<std::size_t>(dim.extent));
    for (std::size_t cell = 0; cell < n_here; ++cell)
      for (Int index = ends[cell]; index < ends[cell + 1]; ++index)
        lookup.places[static_cast<std::size_t>(index)] = {
            static_cast<std::int32_t>(static_cast<Int>(cell) * n_cells_),
            is_shifted ? 0
                       : static_cast<std::int32_t>((std::max<Int>(slots[cell], 0) + index - ends[cell]) * dim.slot_stride),
            static_cast<std::int32_t>(ends[cell + 1] - index)};
    lookup_.push_back(std::move(lookup));
    n_cells_ *= static_cast<Int>(n_here);
    return true;
  }

  void own_cells(const std::vector<std::vector<std::vector<std::int32_t>>> &cells, std::size_t core, std::size_t d,
                 Int entry) {
    if (d == cells.size()) {
      owner_[static_cast<std::size_t>(entry)] = static_cast<std::int32_t>(core);
      return;
    }
    const auto variant = static_cast<std::size_t>(partition_->dims[d].variant_of_core[core]);
    for (const std::int32_t cell : cells[d][variant]) own_cells(cells, core, d + 1, entry + cell);
  }

  SlotRun find_cell(Int copy, Int element) const {
    Int rest = element;
    Int cell = 0;
    Int slot = 0;
    Int left = 1;
    Int stride = 1;
    for (const LookupDim &dim : lookup_) {
      const Int index = dim.by_stride(rest);
      rest -= index * dim.stride;
      const IndexPlace &place = dim.places[static_cast<std::size_t>(index)];
      cell += place.cell;
      slot += place.slot;
      left = place.left;
      stride = dim.stride;
    }
    slot += rest;
    Int length = left * stride - rest;
    Int chunk = copy;
    if (scatter_ > 1) {
      const Int number = by_chunk_(slot);
      slot -= number * n_slots;
      length = std::min(length, n_slots - slot);
      chunk = copy * scatter_ + number;
    }
    const Int core = owner_[static_cast<std::size_t>(chunk * n_cells_ + cell)];
    if (is_shifted_ && core >= 0) slot += shifted_slots(core, element);
    return {core, slot, length};
  }

  // The part of a slot number that comes from dims in which it depends on the core.
  Int shifted_slots(Int core, Int element) const {
    Int rest = element;
    Int slot = 0;
    for (const LookupDim &dim : lookup_) {
      const Int index = dim.by_stride(rest);
      rest -= index * dim.stride;
      if (dim.slot_less_index.empty()) continue;
      const auto variant = static_cast<std::size_t>(dim.variant_of_core[core]);
      slot += (index + dim.slot_less_index[variant]) * dim.slot_stride;
    }
    return slot;
  }

  void make_table() {
    lookup_.clear();
    owner_.clear();
    const Int n_entries = n_copies * partition_->n_elements;
    core_.assign(static_cast<std::size_t>(n_entries), -1);
    slot_.assign(static_cast<std::size_t>(n_entries), -1);
    for (std::size_t group = 0; group < partition_->groups.size(); ++group)
      partition_->walk(partition_->groups.begin(group)[0], [&](Int slot, Int element, Int length) {
        while (length > 0) {
          const Int chunk = by_chunk_(slot);
          const Int first = slot - chunk * n_slots;
          const Int n = std::min(length, n_slots - first);
          hold_in_chunk(group, chunk, first, element, n);
          slot += n;
          element += n;
          length -= n;
        }
      });
    kind_ = Kind::kTable;
  }

  // Notes elements that lie in one chunk of a group's windows, from a slot of that chunk on: in every copy of it.
  void hold_in_chunk(std::size_t group, Int chunk, Int slot, Int element, Int length) {
    for (Int rank = chunk; rank < static_cast<Int>(partition_->groups.size(group)); rank += scatter_) {
      const std::int32_t core = partition_->groups.begin(group)[rank];
      const auto first = static_cast<std::size_t>(rank / scatter_ * partition_->n_elements + element);
      for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
        if (core_[first + i] >= 0 && core_[first + i] <= core) continue;
        core_[first + i] = core;
        slot_[first + i] = static_cast<std::int32_t>(slot + static_cast<Int>(i));
      }
    }
  }

  static constexpr Int kMostCells = Int{1} << 24;

  std::shared_ptr<const PartitionCells> partition_;
  Int scatter_;
  Divider by_chunk_;
  Kind kind_ = Kind::kTable;
  std::vector<std::int32_t> copy_of_core_;
  std::vector<std::int32_t> chunk_of_core_;
  bool is_shifted_ = false;
  Int n_cells_ = 1;
  std::vector<LookupDim> lookup_;
  std::vector<std::int32_t> owner_;
  std::vector<std::int32_t> core_;
  std::vector<std::int32_t> slot_;
};

}  // namespace t10
