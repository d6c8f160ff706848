// Chunks of slots that are dealt out in order, as in t10.core.chunks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace t10 {

inline std::int64_t chunk_slots(std::int64_t n_slots, std::int64_t n_parts) {
  const std::int64_t chunk = (n_slots + n_parts - 1) / n_parts;
  return n_parts == 1 || chunk == 1 ? chunk : chunk + chunk % 2;
}

// Those of a window that several cores have: up to an eighth longer, if they then have more in common with it.
inline std::int64_t window_chunk(std::int64_t n_slots, std::int64_t n_parts) {
  const std::int64_t least = chunk_slots(n_slots, n_parts);
  if (n_parts == 1 || least <= 1) return least;
  const std::int64_t longest = least + least / 8;
  const auto rounded_up = [least](std::int64_t step) { return (least + step - 1) / step * step; };
  std::int64_t step = std::max<std::int64_t>(n_slots & -n_slots, 2);
  while (rounded_up(step) > longest) step /= 2;
  if (step < 4 * std::min(least & -least, n_slots & -n_slots)) return least;
  std::int64_t best = rounded_up(step);
  std::int64_t most = 0;
  for (std::int64_t chunk = best; chunk <= longest; chunk += step) {
    const std::int64_t common = std::gcd(chunk, n_slots);
    if (4 * common >= chunk && common > most) best = chunk, most = common;
  }
  return best;
}

}  // namespace t10
