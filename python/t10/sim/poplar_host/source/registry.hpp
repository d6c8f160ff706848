// Vertex classes by name: what popc finds out about them, and how to run one. Filled by a generated file.
#pragma once

#include <poplar/Basics.hpp>
#include <poplar/Vertex.hpp>

#include <map>
#include <type_traits>

namespace poplar_host {

enum class Direction { in, out, inout, word };

template <typename T> constexpr poplar::Type type_of() {
  if constexpr (std::is_same_v<T, poplar::half>)
    return poplar::HALF;
  else if constexpr (std::is_same_v<T, float>)
    return poplar::FLOAT;
  else if constexpr (std::is_same_v<T, int>)
    return poplar::INT;
  else if constexpr (std::is_same_v<T, unsigned>)
    return poplar::UNSIGNED_INT;
  else if constexpr (std::is_same_v<T, short>)
    return poplar::SHORT;
  else if constexpr (std::is_same_v<T, unsigned short>)
    return poplar::UNSIGNED_SHORT;
  else if constexpr (std::is_same_v<T, signed char>)
    return poplar::SIGNED_CHAR;
  else if constexpr (std::is_same_v<T, unsigned char>)
    return poplar::UNSIGNED_CHAR;
  else
    static_assert(!sizeof(T), "no Poplar type");
}

// What a field is, from its C++ type.
template <typename F> struct FieldTraits {
  static constexpr Direction direction = Direction::word;
  static constexpr poplar::Type type = type_of<F>();
  static constexpr unsigned alignment = 4;
  static constexpr bool is_interleaved = false;
};
template <typename V, Direction D> struct EdgeTraits {
  static constexpr Direction direction = D;
  static constexpr poplar::Type type = type_of<typename V::Element>();
  static constexpr unsigned alignment = V::alignment;
  static constexpr bool is_interleaved = V::is_interleaved;
};
template <typename V> struct FieldTraits<poplar::Input<V>> : EdgeTraits<V, Direction::in> {};
template <typename V> struct FieldTraits<poplar::Output<V>> : EdgeTraits<V, Direction::out> {};
template <typename V> struct FieldTraits<poplar::InOut<V>> : EdgeTraits<V, Direction::inout> {};

struct Field {
  std::string name;
  Direction direction;
  poplar::Type type;
  unsigned alignment;
  bool is_interleaved;
  std::size_t offset; // bytes into the object
};

using Apart = std::vector<std::pair<std::string, std::string>>; // fields in different memory elements

struct VertexType {
  std::string name;
  bool is_supervisor; // where its code is assembly
  std::size_t size; // bytes of an object
  std::vector<Field> fields;
  Apart apart;
  void (*run)(void *object);
};

inline std::map<std::string, VertexType> &registry() {
  static std::map<std::string, VertexType> types;
  return types;
}

template <typename V, typename F> Field field(const char *name, F V::*member) {
  using Traits = FieldTraits<F>;
  alignas(V) static char space[sizeof(V)];
  const V *object = reinterpret_cast<const V *>(space);
  const auto offset = reinterpret_cast<const char *>(&(object->*member)) - space;
  return {name,           Traits::direction, Traits::type, Traits::alignment, Traits::is_interleaved,
          static_cast<std::size_t>(offset)};
}

template <typename V> void run_vertex(void *object) {
  V &vertex = *static_cast<V *>(object);
  if constexpr (std::is_base_of_v<poplar::MultiVertex, V>) {
    for (unsigned worker = V::numWorkers(); worker-- != 0;) // no order is promised
      vertex.compute(worker);
  } else {
    vertex.compute();
  }
}

template <typename V> bool add_type(const char *name, std::vector<Field> fields, Apart apart, bool is_supervisor) {
  static_assert(std::is_trivially_copyable_v<V>, "a vertex is words");
  return registry()
      .emplace(name, VertexType{name, is_supervisor, sizeof(V), std::move(fields), std::move(apart), run_vertex<V>})
      .second;
}

// What a piece of a variable demands of its place on a tile.
struct Demand {
  bool is_interleaved = false;
  std::vector<std::pair<const char *, std::size_t>> apart; // places it may not share a memory element with
};

// Another way to run vertices than their C++ bodies: tiles with a memory of their own.
class Tiles {
public:
  virtual ~Tiles() = default;
  // Make room for a program on `n_tiles` tiles; called once, before anything is placed.
  virtual void begin(unsigned n_tiles) = 0;
  // `n_bytes` of a tile's memory, aligned to 64 bytes.
  virtual char *take(unsigned tile, std::size_t n_bytes, const Demand &demand) = 0;
  // Set $FP_ICTL of all tiles.
  virtual void set_floating_point(unsigned fp_control) = 0;
  // Run a vertex on a tile and return its cycles: its words are in `object`, pointers as addresses of this machine.
  virtual std::uint64_t run(unsigned tile, const VertexType &type, const char *object) = 0;
};

// The tiles that a program was linked with, none for C++ bodies.
inline Tiles *&tiles() {
  static Tiles *linked = nullptr;
  return linked;
}

} // namespace poplar_host
