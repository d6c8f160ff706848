// Files of a program: whole ones, and tables of 32-bit integers. Knows nothing of Poplar.
#pragma once

#include "t10_tables.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>

namespace t10 {

// A file is missing or does not hold what it should.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline std::vector<char> read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file)
    throw FileError("cannot read " + path);
  std::vector<char> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file)
    throw FileError("cannot read all of " + path);
  return bytes;
}

// The tables of one file: "T10TABLE", their number as 64 bits, where each begins and the last ends (64 bits each, in
// integers after this directory), then the integers.
class Tables {
public:
  explicit Tables(const std::string &path) : bytes(read_file(path)) {
    if (bytes.size() < 24 || std::memcmp(bytes.data(), "T10TABLE", 8) != 0 || word(1) > bytes.size() / 8 - 3)
      throw FileError(path + " holds no tables");
    directory.resize(1 + word(1));
    for (std::size_t i = 0; i < directory.size(); ++i)
      directory[i] = word(2 + i);
    const std::size_t data = 8 * (2 + directory.size());
    if (!std::is_sorted(directory.begin(), directory.end()) || directory.back() != (bytes.size() - data) / 4)
      throw FileError(path + " is damaged: its tables do not fill it");
    first = reinterpret_cast<const std::int32_t *>(bytes.data() + data);
  }

  Span operator[](unsigned number) const {
    if (number >= directory.size() - 1)
      throw FileError("table " + std::to_string(number) + " is missing in tables.bin");
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
