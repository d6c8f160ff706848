// What an exchange phase moves, on the way to its loads: pieces that are wanted, transfers, and what becomes of packed bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace t10 {

// What a group wants in its slots from `here` on: bytes of a core from `from` on (the upper bits number its variable).
struct Wanted {
  std::int64_t from;
  std::uint32_t here, length;
  std::int32_t core, group;
};

struct Draft {
  std::int32_t core;
  std::size_t first_target, n_targets;
  std::int64_t n_bytes = 0, fragments = 0, cycles = 0, paired_cycles = 0;
  std::int64_t packed_ranges = 0, packed_end = -1, packed_units = 0, landing_ranges = 0;
  bool lands_as_words = true, is_wide = true;
  std::uint64_t reads = 0;
};

// What one group takes of a sender.
struct Sender {
  std::int64_t packed = 0, n_packed = 0, end = 0, n_ends = 0, n_bytes = 0, saved = 0;
  bool is_packing = false, is_ragged = false, is_wide = true;

  // Takes `n` bytes more, whole double words at both ends or not.
  void note(std::int64_t n, bool are_double_words) {
    n_bytes += n;
    is_wide = is_wide && are_double_words;
  }
};

// Packed bytes that belong at `to` on a group's cores but `owner`; `transfer` brought them.
struct Landing {
  std::int32_t group;
  std::int32_t transfer;
  std::int64_t to, n;
};

}  // namespace t10
