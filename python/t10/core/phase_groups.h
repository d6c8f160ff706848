// What groups of cores take from others and fill in an exchange phase, in the order of their slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "move_rates.h"
#include "word_parts.h"

namespace t10 {

// What is known of the partners of a group's cores: none takes any of the same; those of the group take the same, and nobody
// else takes any of it from where they do; or neither.
enum class Pairing : std::uint8_t { never, within, perhaps };

// Cores that take the same elements from the same places are one group.
class PhaseGroups {
 public:
  using Int = std::int64_t;

  PhaseGroups(Int item_bytes, Int n_cores)
      : item_bytes_(item_bytes), group_of_core_(static_cast<std::size_t>(n_cores), -1) {}

  // Begins a group; what it takes and fills follows in the order of its slots.
  void begin_group(const std::int32_t *cores, std::size_t n_members, Pairing pairing = Pairing::perhaps) {
    for (std::size_t i = 0; i < n_members; ++i)
      group_of_core_[static_cast<std::size_t>(cores[i])] = static_cast<std::int32_t>(groups_.size());
    groups_.push_back({members_.size(), n_members, takes_.size(), fills_.size(), pairing});
    members_.insert(members_.end(), cores, cores + n_members);
  }

  // What was given of the group that was begun last is not all of it.
  void cut_group() {
    if (groups_.back().pairing == Pairing::within) groups_.back().pairing = Pairing::perhaps;
  }

  // `length` slots from `here` on take what lies in the slots of `core` from `slot` on, in its variable `source`.
  void take(Int source, Int core, Int slot, Int here, Int length) {
    if (takes_.size() > groups_.back().first_take) {
      Take &last = takes_.back();
      if (last.core == core && last.source == source && Int{last.slot} + last.length == slot &&
          Int{last.here} + last.length == here) {
        last.length += static_cast<std::uint32_t>(length);
        return;
      }
    }
    takes_.push_back({static_cast<std::uint32_t>(slot), static_cast<std::uint32_t>(here),
                      static_cast<std::uint32_t>(length), static_cast<std::int32_t>(source),
                      static_cast<std::int32_t>(core)});
  }

  // `length` slots from `here` on take the constant numbered `value`.
  void fill(Int value, Int here, Int length) {
    const bool is_first = fills_.size() == groups_.back().first_fill;
    if (is_first || fills_.back().value != value || fills_.back().here + fills_.back().length != here)
      fills_.push_back({here, 0, value});
    fills_.back().length += length;
  }

 protected:
  // There may be one per element that moves: whoever counts has made sure that a core has less than 2^32 slots.
  struct Take {
    std::uint32_t slot, here, length;
    std::int32_t source, core;
  };

  struct Fill {
    Int here, length, value;
  };

  struct Group {
    std::size_t first_member, n_members, first_take, first_fill;
    Pairing pairing;
  };

  // Of where bytes lie on a core, the bits from here on number their variable.
  static constexpr int kVariableShift = 40;

  bool is_member(std::size_t group, Int core) const {
    return group_of_core_[static_cast<std::size_t>(core)] == static_cast<std::int32_t>(group);
  }

  template <class Use>
  void each_take(std::size_t group, Use &&use) const {
    const std::size_t end = group + 1 < groups_.size() ? groups_[group + 1].first_take : takes_.size();
    for (std::size_t i = groups_[group].first_take; i < end; ++i) use(takes_[i]);
  }

  template <class Use>
  void each_member(std::size_t group, Use &&use) const {
    const Group &own = groups_[group];
    for (std::size_t i = 0; i < own.n_members; ++i) use(static_cast<std::size_t>(members_[own.first_member + i]));
  }

  Int from_of(const Take &take) const { return (Int{take.source} << kVariableShift) + take.slot * item_bytes_; }

  // Numbers of slots, as bytes.
  Int bytes(std::uint32_t slots) const { return Int{slots} * item_bytes_; }

  bool is_words(Int from, std::uint32_t here, std::uint32_t length) const {
    return ((from | bytes(here) | bytes(length)) & (kWordBytes - 1)) == 0;
  }

  bool is_words(const Take &take) const { return is_words(from_of(take), take.here, take.length); }

  // What is taken of other cores, as it travels: whole words within a piece, and what is around them, each by itself.
  template <class Use>
  void each_piece(std::size_t group, Use &&use) const {
    const bool is_alone = groups_[group].n_members == 1;
    each_take(group, [&](Take take) {
      if (is_alone && is_member(group, take.core)) return use(take);
      for (const Int n : word_parts(from_of(take), bytes(take.here), bytes(take.length))) {
        take.length = static_cast<std::uint32_t>(n / item_bytes_);
        if (n > 0) use(take);
        take.slot += take.length;
        take.here += take.length;
      }
    });
  }

  Int item_bytes_;
  std::vector<std::int32_t> group_of_core_;
  std::vector<std::int32_t> members_;
  std::vector<Group> groups_;
  std::vector<Take> takes_;
  std::vector<Fill> fills_;
};

}  // namespace t10
