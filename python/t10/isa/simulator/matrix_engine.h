// Steps of the matrix engine (ISA reference, section 10) and of the sliding window (section 12).
//
// E[m] is even[8 * set + m], Q[m] is odd[8 * set + m]. Products are added one after another, lane 0 first.
#pragma once

#include <algorithm>

#include "context.h"

namespace t10::isa {

[[noreturn]] void bad_flags(Word flags);

// Units of a set and phase from flags of the f16 engine: 16 * row + phase, rows E4, E2, E1.
struct Phase16 {
  int units;
  int phase;

  explicit Phase16(Word flags) : units(8 >> (flags >> 4)), phase(int(flags & 15)) {
    if (flags >= 48 || phase >= units / 2) bad_flags(flags);
  }
};

// The same of the f32 engine: 64 + 16 * row + phase; twice as many phases.
struct Phase32 {
  int units;
  int phase;

  explicit Phase32(Word flags) : units(8 >> (flags >> 4 & 3)), phase(int(flags & 15)) {
    if (flags < 64 || flags >= 112 || phase >= units) bad_flags(flags);
  }
};

// E and Q change places; Q in order.
inline void swap_sums(Context& c, int set, int units) {
  if (c.head[set] != 0) c.settle();
  std::swap_ranges(c.even + 8 * set, c.even + 8 * set + units, c.odd + 8 * set);
}

// Moves the queue of a set of 8 units down by two; returns what leaves, takes the partials at its top.
inline void move_queue(Context& c, int set, const float* partials, float* left) {
  float* first = c.odd + 8 * set + 2 * c.head[set];
  std::memcpy(left, first, 8);
  std::memcpy(first, partials, 8);
  c.head[set] = (c.head[set] + 1) & 3;
}

// The same for a set of 4 or 2 units.
inline void move_queue(Context& c, int set, int units, const float* partials, float* left) {
  if (units == 8) return move_queue(c, set, partials, left);
  c.settle();
  float* queue = c.odd + 8 * set;
  std::memcpy(left, queue, 8);
  for (int i = 0; i + 2 < units; i++) queue[i] = queue[i + 2];
  std::memcpy(queue + units - 2, partials, 8);
}

template <int kUnits>
inline void add_dots16(float* sums, const float (*weights)[16], Float4 x) {
  for (int m = 0; m < kUnits; m += 4) {
    Float4 total = load4(sums + m);
    for (int lane = 0; lane < 4; lane++) total += x[lane] * load4(weights[lane] + m);
    store4(sums + m, total);
  }
}

inline void add_dots16(float* sums, const float (*weights)[16], Float4 x, int units, int first) {
  for (int lane = 0; lane < 4; lane++)
    for (int m = 0; m < units; m++) sums[first + m] += x[lane] * weights[lane][first + m];
}

inline Pair Context::amp16(Pair x, Pair partials, Word flags) {
  const Phase16 at(flags);
  float left[2];
  const float pushed[2] = {number(partials.w[0]), number(partials.w[1])};
  const Float4 in = halves_to_floats(x);
  if (at.phase == 0) swap_sums(*this, 0, at.units);
  if (at.units == 8) {
    move_queue(*this, 0, pushed, left);
    add_dots16<8>(even, weights->halves[at.phase], in);
  } else {
    move_queue(*this, 0, at.units, pushed, left);
    add_dots16(even, weights->halves[at.phase], in, at.units, 0);
  }
  return {{bits(left[0]), bits(left[1])}};
}

inline Pair Context::amp16v4(Pair x, Pair partials, Word flags) {
  const Phase16 at(flags);
  float pushed[4], left[4];
  const Float4 in = halves_to_floats(x);
  widen(partials, pushed);
  if (at.phase == 0) {
    swap_sums(*this, 0, at.units);
    swap_sums(*this, 1, at.units);
  }
  if (at.units == 8) {
    move_queue(*this, 0, pushed, left);
    move_queue(*this, 1, pushed + 2, left + 2);
    add_dots16<16>(even, weights->halves[at.phase], in);
  } else {
    for (int set = 0; set < 2; set++) {
      move_queue(*this, set, at.units, pushed + 2 * set, left + 2 * set);
      add_dots16(even, weights->halves[at.phase], in, at.units, 8 * set);
    }
  }
  return narrow<Pair>(left, overflow16);
}

inline Pair Context::amp32(Word x, Pair partials, Word flags) {
  const Phase32 at(flags);
  float left[2] = {0, 0};
  const float pushed[2] = {number(partials.w[0]), number(partials.w[1])};
  if (at.phase == 0) swap_sums(*this, 0, at.units);
  if (at.phase % 2 == 0) move_queue(*this, 0, at.units, pushed, left);
  const float in = number(x);
  for (int m = 0; m < at.units; m++) even[m] += in * weights->words[at.phase][m];
  tas = kNan32;
  return {{bits(left[0]), bits(left[1])}};
}

inline Pair Context::amp32v2(Word x, Pair partials, Word flags) {
  const Phase32 at(flags);
  float left[2];
  const float pushed[2] = {number(partials.w[0]), number(partials.w[1])};
  if (at.phase == 0) {
    swap_sums(*this, 0, at.units);
    swap_sums(*this, 1, at.units);
  }
  move_queue(*this, at.phase % 2, at.units, pushed, left);
  const float in = number(x);
  const float* w = weights->words[at.phase];
  if (at.units == 8) {
    for (int m = 0; m < 16; m++) even[m] += in * w[m];
  } else {
    for (int set = 0; set < 16; set += 8)
      for (int m = set; m < set + at.units; m++) even[m] += in * w[m];
  }
  tas = kNan32;
  return {{bits(left[0]), bits(left[1])}};
}

// Flags: 128 + 16 * row + bank, rows for windows of 4 and of 3. Stage j is even[2j], even[2j + 1].
inline Pair Context::slic16(Pair x, Pair partials, Word flags, int set) {
  if (flags < 128 || flags >= 160 || (flags & 15) > 1) bad_flags(flags);
  const int window = flags < 144 ? 4 : 3;
  const float(*w)[16] = weights->halves[flags & 15];
  float in[4];
  widen(x, in);
  float* stage = even + 8 * set;
  const Pair left = {{bits(stage[0]), bits(stage[1])}};
  for (int i = 0; i < 2 * window - 2; i++) stage[i] = stage[i + 2];
  for (int i = 0; i < 2; i++) stage[2 * window - 2 + i] = number(partials.w[i]);
  for (int lane = 0; lane < 4; lane++)
    for (int i = 0; i < 2 * window; i++) stage[i] += in[lane] * w[lane][8 * set + i];
  return left;
}

}  // namespace t10::isa
