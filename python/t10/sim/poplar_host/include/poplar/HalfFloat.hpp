// 16-bit floats on a host: stored as their bits, computed with as 32-bit floats, rounded to nearest even. As on a tile
// that makes no NaN of overflow, finite numbers out of range become the largest; infinities stay.
#pragma once

#include <cstdint>
#include <cstring>

namespace poplar {

class half {
public:
  half() = default;
  half(float value) : bits(to_bits(value)) {}
  half(double value) : half(static_cast<float>(value)) {}
  half(int value) : half(static_cast<float>(value)) {}
  half(unsigned value) : half(static_cast<float>(value)) {}
  operator float() const { return from_bits(bits); }
  half &operator+=(float other) { return *this = half(float(*this) + other); }
  half &operator-=(float other) { return *this = half(float(*this) - other); }
  half &operator*=(float other) { return *this = half(float(*this) * other); }
  half &operator/=(float other) { return *this = half(float(*this) / other); }

private:
  std::uint16_t bits;

  static std::uint16_t to_bits(float value) {
    std::uint32_t word;
    std::memcpy(&word, &value, sizeof word);
    const std::uint32_t sign = word >> 16 & 0x8000, magnitude = word & 0x7fffffff;
    if (magnitude > 0x7f800000)
      return static_cast<std::uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000) // rounds to more than the largest half
      return static_cast<std::uint16_t>(sign | (magnitude < 0x7f800000 ? 0x7bff : 0x7c00));
    if (magnitude < 0x38800000) { // a denormal half: let the addition of 0.5 round it to a multiple of 2^-24
      float shifted;
      std::memcpy(&shifted, &magnitude, sizeof shifted);
      shifted += 0.5f;
      std::memcpy(&word, &shifted, sizeof word);
      return static_cast<std::uint16_t>(sign | (word - 0x3f000000));
    }
    const std::uint32_t rounded = magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1);
    return static_cast<std::uint16_t>(sign | rounded >> 13);
  }

  static float from_bits(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits & 0x7c00u, rest = bits & 0x7fffu;
    std::uint32_t word = rest << 13;
    if (exponent == 0x7c00u)
      word |= 0x7f800000u;
    else if (exponent != 0)
      word += 0x38000000u;
    float value;
    if (exponent == 0) { // denormal or zero: exact in 32 bits
      value = static_cast<float>(rest) * 5.9604644775390625e-8f;
      std::memcpy(&word, &value, sizeof word);
    }
    word |= sign;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }
};

} // namespace poplar
