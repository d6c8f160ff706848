// Integer operations of instruction records: permutations of bytes and halves, bit counts, packed addresses.
#pragma once

#include "types.h"

namespace t10::isa {

inline Word halves_of(Word low, Word high) { return (low & 0xffff) | high << 16; }
inline Word both_halves(Word h) { return halves_of(h, h); }
inline Word all_bytes(Word b) { return (b & 0xff) * 0x01010101u; }
inline Word bytes_of(Word b0, Word b1, Word b2, Word b3) {
  return (b0 & 0xff) | (b1 & 0xff) << 8 | (b2 & 0xff) << 16 | b3 << 24;
}
inline Word sign8(Word x) { return Word(std::int32_t(std::int8_t(x))); }
inline Word sign16(Word x) { return Word(std::int32_t(std::int16_t(x))); }
inline Pair pair_of(std::uint64_t bits) { return {{Word(bits), Word(bits >> 32)}}; }
inline Quad joined(Pair low, Pair high) { return {{low.w[0], low.w[1], high.w[0], high.w[1]}}; }

inline Word leading_zeros(Word x) { return x == 0 ? 32 : Word(__builtin_clz(x)); }
inline Word population(Word x) { return Word(__builtin_popcount(x)); }

inline Word reversed_bytes(Word x) {
  x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
  x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
  return (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
}

// Three 21-bit addresses in a pair (ISA reference, section 7).
inline Pair packed(Word a0, Word a1, Word a2) {
  return {{(a0 & 0x1fffff) | a2 << 21, (a1 & 0x1fffff) | (a2 >> 11 & 0x3ff) << 21}};
}
inline Word address0(Pair tri) { return tri.w[0] & 0x1fffff; }
inline Word address1(Pair tri) { return tri.w[1] & 0x1fffff; }
inline Word address2(Pair tri) { return tri.w[0] >> 21 | (tri.w[1] >> 21 & 0x3ff) << 11; }

// Bytes a packed address moves by: 8, or 8 times one of three signed 10-bit fields.
inline Word pace(Word stride, Word selector) {
  selector &= 3;
  if (selector == 0) return 8;
  const Word field = stride >> (10 * (selector - 1)) & 0x3ff;
  return Word((std::int32_t(field << 22) >> 22) * 8);
}

}  // namespace t10::isa
