// How a piece travels that does not consist of whole words: the words within it as they are, what is around them packed.
#pragma once

#include <array>
#include <cstdint>

#include "move_rates.h"

namespace t10 {

// Fewer bytes of whole words are not sent apart: a fragment costs as much as two words.
constexpr std::int64_t kLeastWithin = 2 * kWordBytes;

// Of a piece of `n` bytes that begins at address `from` on one core and goes to `to` on another: the bytes before its first
// whole word, those of whole words, and those behind them. The first and the last are 0 where the piece is whole words, has
// too few of them, or begins elsewhere within a word at `to`: such a piece is packed as a whole.
inline std::array<std::int64_t, 3> word_parts(std::int64_t from, std::int64_t to, std::int64_t n) {
  const std::int64_t before = -from & (kWordBytes - 1), behind = (from + n) & (kWordBytes - 1);
  if (((from - to) & (kWordBytes - 1)) != 0 || n - before - behind < kLeastWithin) return {0, n, 0};
  return {before, n - before - behind, behind};
}

}  // namespace t10
