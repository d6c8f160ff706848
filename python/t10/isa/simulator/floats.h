// Floating point: f16 as bits, f32 as the host's float, lanes of registers. Nearest even everywhere, denormals kept.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "integers.h"
#include "lanes.h"

namespace t10::isa {

constexpr Word kNan32 = 0x7fc00000;
constexpr Word kNan16 = 0x7e00;
constexpr Word kLargest16 = 0x7bff;

inline float number(Word bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

inline Word raw(float value) {
  Word bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

// Bits of a result: every NaN is the same one.
inline Word bits(float value) { return value == value ? raw(value) : kNan32; }

// Written without branches so that compilers make vectors of loops over lanes.
inline float half_number(Word h) {
  const Word shifted = (h & 0x7fff) << 13;
  const Word exponent = shifted & 0x0f800000;
  const Word rebias = exponent == 0x0f800000 ? 224u << 23 : 112u << 23;
  const float normal = number(shifted + rebias);
  const float denormal = number(shifted + (113u << 23)) - number(113u << 23);
  const Word magnitude = raw(exponent == 0 ? denormal : normal);
  return number(magnitude | (h & 0x8000) << 16);
}

// `overflow`: what becomes of finite numbers too large, 0x7bff or 0x7e00.
inline Word half_bits(float value, Word overflow) {
  const Word whole = raw(value);
  const Word magnitude = whole & 0x7fffffff;
  const Word normal = (magnitude + 0xC8000FFFu + (magnitude >> 13 & 1)) >> 13;
  const Word denormal = raw(number(magnitude) + 0.5f) - raw(0.5f);
  const Word finite = magnitude < 0x38800000 ? denormal : normal;
  const Word special = magnitude > 0x7f800000 ? kNan16 : 0x7c00;
  const Word large = magnitude < 0x7f800000 ? overflow : special;
  const Word result = magnitude < 0x477ff000 ? finite : large;
  const Word sign = result == kNan16 ? 0 : whole >> 16 & 0x8000;
  return result | sign;
}

// A double rounded once: to an odd float first, which no second rounding can spoil.
inline Word half_bits(double value, Word overflow) {
  if (std::isfinite(value) && std::fabs(value) > 1e30) value = std::copysign(1e30, value);
  float odd = float(value);
  if (double(odd) != value && std::isfinite(value)) {
    Word b = raw(odd);
    if (std::fabs(double(odd)) > std::fabs(value)) b -= 1;
    odd = number(b | 1);
  }
  return half_bits(odd, overflow);
}

template <class V>
constexpr int kHalves = int(sizeof(V)) / 2;
template <class V>
constexpr int kWords = int(sizeof(V)) / 4;

inline Word word(Word x, int) { return x; }
inline Word word(const Pair& x, int i) { return x.w[i]; }
inline Word word(const Quad& x, int i) { return x.w[i]; }
inline void set_word(Word& x, int, Word value) { x = value; }
inline void set_word(Pair& x, int i, Word value) { x.w[i] = value; }
inline void set_word(Quad& x, int i, Word value) { x.w[i] = value; }

template <class V>
float half(const V& x, int i) {
  return half_number(word(x, i / 2) >> (16 * (i % 2)) & 0xffff);
}

// The halves of a register group as floats, and back.
template <class V>
void widen(const V& x, float* out) {
  for (int i = 0; i < kHalves<V>; i++) out[i] = half(x, i);
}

inline void widen(const Pair& x, float* out) { store4(out, halves_to_floats(x)); }

template <class V>
V narrow(const float* x, Word overflow) {
  Word h[kHalves<V>];
  for (int i = 0; i < kHalves<V>; i++) h[i] = half_bits(x[i], overflow);
  V d{};
  for (int i = 0; i < kWords<V>; i++) set_word(d, i, h[2 * i] | h[2 * i + 1] << 16);
  return d;
}

template <>
inline Pair narrow<Pair>(const float* x, Word overflow) {
  return floats_to_halves(load4(x), overflow);
}

inline Pair widened(Word x) { return {{bits(half(x, 0)), bits(half(x, 1))}}; }

struct Add { float operator()(float x, float y) const { return x + y; } };
struct Sub { float operator()(float x, float y) const { return x - y; } };
struct Mul { float operator()(float x, float y) const { return x * y; } };
struct Div { float operator()(float x, float y) const { return x / y; } };
struct Max {
  float operator()(float x, float y) const {
    if (x != x) return y;
    if (x == y) return number(raw(x) & raw(y));  // +0 above -0
    return x < y ? y : x;
  }
};
struct Min {
  float operator()(float x, float y) const {
    if (x != x) return y;
    if (x == y) return number(raw(x) | raw(y));
    return y < x ? y : x;
  }
};
struct AbsAdd { float operator()(float x, float y) const { return std::fabs(x) + std::fabs(y); } };
struct AbsMax { float operator()(float x, float y) const { return Max()(std::fabs(x), std::fabs(y)); } };

struct Equal { bool operator()(float x, float y) const { return x == y; } };
struct NotEqual { bool operator()(float x, float y) const { return x != y; } };
struct Less { bool operator()(float x, float y) const { return x < y; } };
struct LessEqual { bool operator()(float x, float y) const { return x <= y; } };
struct Greater { bool operator()(float x, float y) const { return x > y; } };
struct GreaterEqual { bool operator()(float x, float y) const { return x >= y; } };

struct Same { float operator()(float x) const { return x; } };
struct Magnitude { float operator()(float x) const { return std::fabs(x); } };
struct Square { float operator()(float x) const { return x * x; } };

struct Exp { double operator()(double x) const { return std::exp(x); } };
struct Exp2 { double operator()(double x) const { return std::exp2(x); } };
struct Ln { double operator()(double x) const { return std::log(x); } };
struct Log2 { double operator()(double x) const { return std::log2(x); } };
struct Tanh { double operator()(double x) const { return std::tanh(x); } };
struct Sigmoid { double operator()(double x) const { return 1 / (1 + std::exp(-x)); } };
struct OneOver { double operator()(double x) const { return 1 / x; } };
struct Root { double operator()(double x) const { return std::sqrt(x); } };
struct OneOverRoot { double operator()(double x) const { return 1 / std::sqrt(x); } };

// f32 lanes.
template <class V, class F>
V words(const V& x, const V& y, F f) {
  V d{};
  for (int i = 0; i < kWords<V>; i++) set_word(d, i, bits(f(number(word(x, i)), number(word(y, i)))));
  return d;
}

template <class V, class F>
V word_masks(const V& x, const V& y, F f) {
  V d{};
  for (int i = 0; i < kWords<V>; i++) set_word(d, i, f(number(word(x, i)), number(word(y, i))) ? ~0u : 0u);
  return d;
}

template <class V>
V clamp_words(const V& x, Pair limits) {
  V d{};
  for (int i = 0; i < kWords<V>; i++)
    set_word(d, i, bits(Min()(Max()(number(word(x, i)), number(limits.w[0])), number(limits.w[1]))));
  return d;
}

template <class V>
V centred_words(const V& x) {
  V d{};
  for (int i = 0; i < kWords<V>; i++) set_word(d, i, raw(float((double(word(x, i)) + 0.5) / 4294967296.0 - 0.5)));
  return d;
}

template <class F>
Word word_function(Word x, F f) {
  return bits(float(f(double(number(x)))));
}

// f16 lanes.
template <class V, class F>
V half_lanes(const V& x, const V& y, F f, Word overflow) {
  float fx[kHalves<V>], fy[kHalves<V>];
  widen(x, fx);
  widen(y, fy);
  for (int i = 0; i < kHalves<V>; i++) fx[i] = f(fx[i], fy[i]);
  return narrow<V>(fx, overflow);
}

template <class V, class F>
V half_masks(const V& x, const V& y, F f) {
  V d{};
  for (int i = 0; i < kWords<V>; i++)
    set_word(d, i,
             (f(half(x, 2 * i), half(y, 2 * i)) ? 0xffffu : 0u) |
                 (f(half(x, 2 * i + 1), half(y, 2 * i + 1)) ? 0xffff0000u : 0u));
  return d;
}

}  // namespace t10::isa
