// Tables of 32-bit integers in a side file, and numbers that may differ from tile to tile. Knows nothing of Poplar.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <string>
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

inline std::vector<char> read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file)
    throw std::runtime_error("cannot read " + path);
  std::vector<char> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file)
    throw std::runtime_error("cannot read all of " + path);
  return bytes;
}

// The tables of one file: "T10TABLE", their number as 64 bits, where each begins and the last ends (64 bits each, in
// integers after this directory), then the integers.
class Tables {
public:
  explicit Tables(const std::string &path) : bytes(read_file(path)) {
    if (bytes.size() < 24 || std::memcmp(bytes.data(), "T10TABLE", 8) != 0)
      throw std::runtime_error(path + " holds no tables");
    directory.resize(1 + word(1));
    for (std::size_t i = 0; i < directory.size(); ++i)
      directory[i] = word(2 + i);
    const std::size_t data = 8 * (2 + directory.size());
    if (bytes.size() < data + 4 * directory.back())
      throw std::runtime_error(path + " is too short");
    first = reinterpret_cast<const std::int32_t *>(bytes.data() + data);
  }

  Span operator[](unsigned number) const {
    if (number + 1 >= directory.size())
      throw std::runtime_error("table " + std::to_string(number) + " is missing");
    return {first + directory[number], directory[number + 1] - directory[number]};
  }

private:
  std::vector<char> bytes;
  std::vector<std::size_t> directory;
  const std::int32_t *first = nullptr;

  std::uint64_t word(std::size_t i) const {
    std::uint64_t value = 0;
    if (8 * (i + 1) <= bytes.size())
      std::memcpy(&value, bytes.data() + 8 * i, sizeof value);
    return value;
  }
};

} // namespace t10
