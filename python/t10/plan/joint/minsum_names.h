// One name for equal numbers: bits of costs, or what a bucket adds up.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace t10::minsum {

// What numbers tell apart: bits of costs, or what a bucket adds up.
using Numbers = std::vector<std::uint64_t>;

struct NumbersHash {
  std::size_t operator()(const Numbers &numbers) const {
    std::uint64_t hash = numbers.size();
    for (const std::uint64_t number : numbers) {
      hash = (hash ^ number) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

// Gives equal numbers one name: that of those that came first.
using Names = std::unordered_map<Numbers, std::size_t, NumbersHash>;

inline void append_bits(Numbers &numbers, const double *costs, std::size_t n) {
  const std::size_t first = numbers.size();
  numbers.resize(first + n);
  std::memcpy(numbers.data() + first, costs, n * sizeof(double));
}

inline Numbers bits_of(const double *costs, std::size_t n) {
  Numbers result;
  append_bits(result, costs, n);
  return result;
}

}  // namespace t10::minsum
