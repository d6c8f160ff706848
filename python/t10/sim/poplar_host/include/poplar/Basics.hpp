// Host implementation of exactly the Poplar API subset that programs written by T10 use. This is not Poplar.
//
// Small types that the whole interface uses: text and list arguments, element types, errors, options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace poplar {

class StringRef {
public:
  StringRef(const char *text) : value(text) {}
  StringRef(std::string text) : value(std::move(text)) {}
  operator std::string() const { return value; }
  const std::string &str() const { return value; }

private:
  std::string value;
};

template <typename T> class ArrayRef {
public:
  ArrayRef(std::initializer_list<T> items) : items(items) {}
  ArrayRef(const std::vector<T> &items) : items(items) {}
  auto begin() const { return items.begin(); }
  auto end() const { return items.end(); }
  std::size_t size() const { return items.size(); }
  const T &operator[](std::size_t i) const { return items[i]; }
  const std::vector<T> &vector() const { return items; }

private:
  std::vector<T> items;
};

class DebugContext {
public:
  DebugContext() = default;
  DebugContext(const char *name) : name(name) {}
  DebugContext(std::string name) : name(std::move(name)) {}
  const std::string &path() const { return name; }

private:
  std::string name;
};

struct poplar_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct graph_connection_error : poplar_error {
  using poplar_error::poplar_error;
};
struct invalid_tile_mapping : poplar_error {
  using poplar_error::poplar_error;
};
struct unknown_vertex_type : poplar_error {
  using poplar_error::poplar_error;
};
struct unknown_field : poplar_error {
  using poplar_error::poplar_error;
};
struct control_program_error : poplar_error {
  using poplar_error::poplar_error;
};
struct memory_elem_constraints_error : poplar_error {
  using poplar_error::poplar_error;
};
struct missing_perf_estimate : poplar_error {
  using poplar_error::poplar_error;
};
struct application_runtime_error : poplar_error {
  using poplar_error::poplar_error;
};

// An element type. Two types of one size are still two types.
class Type {
public:
  constexpr Type(const char *name = "none", unsigned size_bytes = 0) : name(name), size_bytes(size_bytes) {}
  bool operator==(const Type &other) const { return std::string(name) == other.name; }
  bool operator!=(const Type &other) const { return !(*this == other); }
  std::string toString() const { return name; }
  unsigned size() const { return size_bytes; }

private:
  const char *name;
  unsigned size_bytes;
};

constexpr Type BOOL("bool", 1), CHAR("char", 1), SIGNED_CHAR("signed char", 1), UNSIGNED_CHAR("unsigned char", 1),
    SHORT("short", 2), UNSIGNED_SHORT("unsigned short", 2), INT("int", 4), UNSIGNED_INT("unsigned int", 4),
    HALF("half", 2), FLOAT("float", 4);

class OptionFlags {
public:
  OptionFlags() = default;
  OptionFlags(std::initializer_list<std::pair<const std::string, std::string>> flags) : flags(flags) {}
  void set(StringRef name, StringRef value) { flags[name.str()] = value.str(); }

private:
  std::map<std::string, std::string> flags;
};

} // namespace poplar
