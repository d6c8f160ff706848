// Reads and writes uncompressed .npz archives (zip files of .npy members), as numpy.savez makes them.
#pragma once

#include "t10_files.hpp"

#include <algorithm>
#include <map>

namespace t10 {

// Elements in row-major order. `numpy_type` is the type as in .npy headers, e.g. "<f4".
struct Array {
  std::string numpy_type;
  std::vector<std::size_t> shape;
  std::vector<char> bytes;
};

using Arrays = std::map<std::string, Array>;

template <typename T> T read_number(const std::vector<char> &bytes, std::size_t at) {
  if (at + sizeof(T) > bytes.size())
    throw std::runtime_error("archive is cut off");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <typename T> void add_number(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

// The text between `open` and `close` after `key` in the header of a .npy member.
inline std::string header_entry(const std::string &header, const std::string &key, char open, char close) {
  const std::size_t begin = header.find(open, header.find("'" + key + "':") + key.size() + 3);
  const std::size_t end = header.find(close, begin + 1);
  if (begin == std::string::npos || end == std::string::npos)
    throw std::runtime_error("malformed .npy header: " + header);
  return header.substr(begin + 1, end - begin - 1);
}

inline Array parse_npy(const std::vector<char> &file, std::size_t begin, std::size_t size, const std::string &name) {
  const std::size_t wide = read_number<std::uint8_t>(file, begin + 6) >= 2 ? 4 : 2;
  const std::size_t length =
      wide == 2 ? read_number<std::uint16_t>(file, begin + 8) : read_number<std::uint32_t>(file, begin + 8);
  const std::size_t data = begin + 8 + wide + length;
  if (begin + size > file.size() || data > begin + size || std::memcmp(&file[begin + 1], "NUMPY", 5) != 0)
    throw std::runtime_error(name + " is no .npy array");
  const std::string header(&file[begin + 8 + wide], length);
  Array array;
  array.numpy_type = header_entry(header, "descr", '\'', '\'');
  if (header.find("'fortran_order': False") == std::string::npos)
    throw std::runtime_error(name + " is not in row-major order");
  const std::string shape = header_entry(header, "shape", '(', ')');
  for (std::size_t at = 0; at < shape.size();) {
    const std::size_t comma = std::min(shape.find(',', at), shape.size());
    const std::string number = shape.substr(at, comma - at);
    if (number.find_first_not_of(' ') != std::string::npos)
      array.shape.push_back(std::stoul(number));
    at = comma + 1;
  }
  array.bytes.assign(file.begin() + static_cast<std::ptrdiff_t>(data),
                     file.begin() + static_cast<std::ptrdiff_t>(begin + size));
  return array;
}

// A 64-bit size of a zip entry stands in its extra field where the 32-bit one is all ones.
inline std::uint64_t wide_size(const std::vector<char> &file, std::size_t extra, std::size_t length, unsigned skip) {
  for (std::size_t at = extra; at + 4 <= extra + length;) {
    const auto kind = read_number<std::uint16_t>(file, at), size = read_number<std::uint16_t>(file, at + 2);
    if (kind == 1)
      return read_number<std::uint64_t>(file, at + 4 + 8 * skip);
    at += 4u + size;
  }
  throw std::runtime_error("archive entry without its size");
}

inline Arrays read_npz(const std::string &path) {
  const std::vector<char> file = read_file(path);
  Arrays arrays;
  // The directory stands at the end, before a record that begins with these four bytes.
  std::size_t end = file.size() < 22 ? std::string::npos : file.size() - 22;
  while (end != std::string::npos && read_number<std::uint32_t>(file, end) != 0x06054b50)
    end = end == 0 ? std::string::npos : end - 1;
  if (end == std::string::npos)
    throw std::runtime_error(path + " is no .npz archive");
  std::uint64_t at = read_number<std::uint32_t>(file, end + 16), count = read_number<std::uint16_t>(file, end + 10);
  if (at == 0xffffffff || count == 0xffff) { // the 64-bit record lies before its locator
    const std::size_t record = read_number<std::uint64_t>(file, end - 20 + 8);
    count = read_number<std::uint64_t>(file, record + 32);
    at = read_number<std::uint64_t>(file, record + 48);
  }
  for (; count != 0; --count) {
    const auto method = read_number<std::uint16_t>(file, at + 10);
    const auto n_name = read_number<std::uint16_t>(file, at + 28), n_extra = read_number<std::uint16_t>(file, at + 30);
    const auto n_comment = read_number<std::uint16_t>(file, at + 32);
    std::string name(&file.at(at + 46), n_name);
    std::uint64_t size = read_number<std::uint32_t>(file, at + 24), local = read_number<std::uint32_t>(file, at + 42);
    const bool wide = size == 0xffffffff;
    if (local == 0xffffffff)
      local = wide_size(file, at + 46 + n_name, n_extra,
                        (wide ? 1 : 0) + (read_number<std::uint32_t>(file, at + 20) == 0xffffffff ? 1 : 0));
    if (wide)
      size = wide_size(file, at + 46 + n_name, n_extra, 0);
    if (method != 0)
      throw std::runtime_error(path + ": " + name + " is compressed (expected an archive made by numpy.savez)");
    const std::size_t data =
        local + 30 + read_number<std::uint16_t>(file, local + 26) + read_number<std::uint16_t>(file, local + 28);
    if (name.size() > 4 && name.compare(name.size() - 4, 4, ".npy") == 0)
      name.resize(name.size() - 4);
    arrays[name] = parse_npy(file, data, size, name);
    at += 46u + n_name + n_extra + n_comment;
  }
  return arrays;
}

inline std::uint32_t crc32(const std::string &bytes) {
  std::uint32_t table[256];
  for (std::uint32_t i = 0; i < 256; ++i) {
    table[i] = i;
    for (int bit = 0; bit < 8; ++bit)
      table[i] = (table[i] >> 1) ^ ((table[i] & 1) != 0 ? 0xedb88320u : 0u);
  }
  std::uint32_t crc = ~0u;
  for (const char byte : bytes)
    crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

inline std::string npy_bytes(const Array &array) {
  std::string shape;
  for (const std::size_t extent : array.shape)
    shape += std::to_string(extent) + ", ";
  std::string header = "{'descr': '" + array.numpy_type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  add_number<std::uint16_t>(bytes, static_cast<std::uint16_t>(header.size()));
  return bytes + header + std::string(array.bytes.begin(), array.bytes.end());
}

// Write arrays of less than four gigabytes together.
inline void write_npz(const std::string &path, const Arrays &arrays) {
  std::string file, directory;
  for (const auto &[name, array] : arrays) {
    const std::string bytes = npy_bytes(array), member = name + ".npy";
    std::string common; // what both the local header and the directory say
    add_number<std::uint16_t>(common, 20);
    add_number<std::uint32_t>(common, 0x0800); // names in UTF-8, not compressed
    add_number<std::uint32_t>(common, 0x00210000); // the first day a zip file can name
    add_number(common, crc32(bytes));
    add_number(common, static_cast<std::uint32_t>(bytes.size()));
    add_number(common, static_cast<std::uint32_t>(bytes.size()));
    add_number(common, static_cast<std::uint16_t>(member.size()));
    add_number<std::uint16_t>(common, 0);
    add_number<std::uint32_t>(directory, 0x02014b50);
    add_number<std::uint16_t>(directory, 20);
    directory += common + std::string(10, '\0');
    add_number(directory, static_cast<std::uint32_t>(file.size()));
    directory += member;
    add_number<std::uint32_t>(file, 0x04034b50);
    file += common + member + bytes;
  }
  const auto start = static_cast<std::uint32_t>(file.size());
  file += directory;
  add_number<std::uint32_t>(file, 0x06054b50);
  add_number<std::uint32_t>(file, 0);
  add_number(file, static_cast<std::uint16_t>(arrays.size()));
  add_number(file, static_cast<std::uint16_t>(arrays.size()));
  add_number(file, static_cast<std::uint32_t>(directory.size()));
  add_number(file, start);
  add_number<std::uint16_t>(file, 0);
  std::ofstream out(path, std::ios::binary);
  out.write(file.data(), static_cast<std::streamsize>(file.size()));
  if (!out)
    throw std::runtime_error("cannot write " + path);
}

} // namespace t10
