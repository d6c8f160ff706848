// Chunks of slots that are dealt out in order, the same as t10.core.chunks.chunk_slots.
#pragma once

#include <cstdint>

namespace t10 {

inline std::int64_t chunk_slots(std::int64_t n_slots, std::int64_t n_parts) {
  const std::int64_t chunk = (n_slots + n_parts - 1) / n_parts;
  return n_parts == 1 || chunk == 1 ? chunk : chunk + chunk % 2;
}

}  // namespace t10
