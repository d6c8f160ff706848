// Pieces that a core copies or fills, joined to strided runs: equally long and evenly apart, here and there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace t10 {

// `length` slots from `here` on, from the slots of `core` from `slot` on, in its variable `source`.
struct Step {
  std::int64_t here, slot, length;
  std::int32_t core;
  std::int64_t source;
  bool is_like(const Step &other) const {
    return length == other.length && core == other.core && source == other.source;
  }
};

// Calls use(first, count, step here, step there) for every strided run of equal pieces, of those from
// `get(begin)` to `get(end - 1)`.
template <class Get, class Use>
void each_strided_run(std::size_t begin, std::size_t end, Get &&get, Use &&use) {
  if (begin == end) return;
  Step first = get(begin), last = first;
  std::int64_t count = 1, here_step = 0, slot_step = 0, row_here = 0, row_slot = 0;
  bool was_like = false;
  for (std::size_t i = begin + 1; i < end; ++i) {
    const Step next = get(i);
    const bool is_like = next.is_like(last);
    const std::int64_t here = next.here - last.here, slot = next.slot - last.slot;
    if (is_like && (!was_like || (here == here_step && slot == slot_step))) {
      if (++count == 2) {
        row_here = here;
        row_slot = slot;
      }
    } else {
      use(first, count, count > 1 ? row_here : 0, count > 1 ? row_slot : 0);
      first = next;
      count = 1;
    }
    was_like = is_like;
    here_step = here;
    slot_step = slot;
    last = next;
  }
  use(first, count, count > 1 ? row_here : 0, count > 1 ? row_slot : 0);
}

}  // namespace t10
