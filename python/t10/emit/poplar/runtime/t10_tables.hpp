// Numbers that may differ from tile to tile, and lists of tiles. Knows nothing of Poplar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

namespace t10 {

// The value whose lowest bytes are those of `bits` (little endian, as on the device).
template <typename T> T from_bits(std::uint64_t bits) {
  static_assert(sizeof(T) <= sizeof bits, "at most eight bytes");
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Integers that belong to somebody else.
class Span {
public:
  Span() = default;
  Span(const std::int32_t *first, std::size_t count) : first(first), count(count) {}
  const std::int32_t *begin() const { return first; }
  const std::int32_t *end() const { return first + count; }
  std::size_t size() const { return count; }
  std::int32_t operator[](std::size_t i) const { return first[i]; }

private:
  const std::int32_t *first = nullptr;
  std::size_t count = 0;
};

// A number per tile of a list: one for all, first + i * step, or one each.
class PerTile {
public:
  PerTile(long long same) : first(same) {}
  PerTile(int same) : first(same) {}
  PerTile(unsigned same) : first(same) {}
  PerTile(Span each) : each(each) {}
  PerTile(std::initializer_list<long long> values) : own(values) {}
  static PerTile steps(long long first, long long step) {
    PerTile result(first);
    result.step = step;
    return result;
  }
  long long operator[](std::size_t i) const {
    if (!own.empty())
      return own.at(i);
    return each.size() != 0 ? each[i] : first + static_cast<long long>(i) * step;
  }

private:
  long long first = 0, step = 0;
  Span each;
  std::vector<long long> own;
};

inline PerTile steps(long long first, long long step) { return PerTile::steps(first, step); }

// A list of tiles, ascending.
class Tiles {
public:
  Tiles(unsigned first, std::size_t count, unsigned step = 1) : numbers(steps(first, step)), count(count) {}
  Tiles(Span each) : numbers(each), count(each.size()) {}
  Tiles(std::initializer_list<long long> each) : numbers(each), count(each.size()) {}
  unsigned operator[](std::size_t i) const { return static_cast<unsigned>(numbers[i]); }
  std::size_t size() const { return count; }

private:
  PerTile numbers;
  std::size_t count;
};

inline Tiles tiles(unsigned first, std::size_t count, unsigned step = 1) { return Tiles(first, count, step); }
inline Tiles tiles(Span each) { return Tiles(each); }
inline Tiles tiles(std::initializer_list<long long> each) { return Tiles(each); }

} // namespace t10
