// Four lanes at once: conversions between f16 and f32 in vector registers, as half_number and half_bits do for one.
#pragma once

#include <cstring>

#include "types.h"

namespace t10::isa {

typedef Word Word4 __attribute__((vector_size(16)));
typedef std::int32_t Int4 __attribute__((vector_size(16)));
typedef float Float4 __attribute__((vector_size(16)));

inline Float4 load4(const float* from) {
  Float4 value;
  std::memcpy(&value, from, 16);
  return value;
}
inline void store4(float* to, Float4 value) { std::memcpy(to, &value, 16); }
inline Word4 select(Int4 condition, Word4 yes, Word4 no) { return (Word4(condition) & yes) | (~Word4(condition) & no); }

inline Float4 halves_to_floats(Pair x) {
  const Word4 both = {x.w[0] & 0xffff, x.w[0] >> 16, x.w[1] & 0xffff, x.w[1] >> 16};
  const Word4 shifted = (both & 0x7fff) << 13;
  const Word4 exponent = shifted & 0x0f800000;
  const Word4 rebias = select(exponent == 0x0f800000, Word4{} + (224u << 23), Word4{} + (112u << 23));
  const Word4 normal = shifted + rebias;
  const Word4 magic = Word4{} + (113u << 23);
  const Word4 denormal = Word4(Float4(shifted + magic) - Float4(magic));
  return Float4(select(exponent == 0, denormal, normal) | (both & 0x8000) << 16);
}

// All magnitudes are below 2^31, so that comparisons of signed integers are those of unsigned ones, and cheaper.
inline Pair floats_to_halves(Float4 value, Word overflow) {
  const Word4 whole = Word4(value);
  const Word4 magnitude = whole & 0x7fffffff;
  const Int4 size = Int4(magnitude);
  const Word4 normal = (magnitude + 0xC8000FFFu + (magnitude >> 13 & 1)) >> 13;
  const Word4 denormal = Word4(Float4(magnitude) + 0.5f) - 0x3f000000u;
  const Word4 finite = select(size < 0x38800000, denormal, normal);
  const Word4 special = select(size > 0x7f800000, Word4{} + 0x7e00u, Word4{} + 0x7c00u);
  const Word4 large = select(size < 0x7f800000, Word4{} + overflow, special);
  const Word4 result = select(size < 0x477ff000, finite, large);
  const Word4 sign = select(Int4(result == 0x7e00u), Word4{}, whole >> 16 & 0x8000);
  const Word4 h = result | sign;
  return {{h[0] | h[1] << 16, h[2] | h[3] << 16}};
}

}  // namespace t10::isa
