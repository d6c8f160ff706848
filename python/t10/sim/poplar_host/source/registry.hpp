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
};
template <typename V, Direction D> struct EdgeTraits {
  static constexpr Direction direction = D;
  static constexpr poplar::Type type = type_of<typename V::Element>();
  static constexpr unsigned alignment = V::alignment;
};
template <typename V> struct FieldTraits<poplar::Input<V>> : EdgeTraits<V, Direction::in> {};
template <typename V> struct FieldTraits<poplar::Output<V>> : EdgeTraits<V, Direction::out> {};
template <typename V> struct FieldTraits<poplar::InOut<V>> : EdgeTraits<V, Direction::inout> {};

struct Field {
  std::string name;
  Direction direction;
  poplar::Type type;
  unsigned alignment;
  std::size_t offset; // bytes into the object
};

struct VertexType {
  std::string name;
  bool is_multi;
  std::size_t size; // bytes of an object
  std::vector<Field> fields;
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
  return {name, Traits::direction, Traits::type, Traits::alignment, static_cast<std::size_t>(offset)};
}

template <typename V> void run_vertex(void *object) {
  V &vertex = *static_cast<V *>(object);
  if constexpr (std::is_base_of_v<poplar::MultiVertex, V>) {
    for (unsigned worker = 0; worker < V::numWorkers(); ++worker)
      vertex.compute(worker);
  } else {
    vertex.compute();
  }
}

template <typename V> bool add_type(const char *name, std::vector<Field> fields) {
  static_assert(std::is_trivially_copyable_v<V>, "a vertex is words");
  const bool is_multi = std::is_base_of_v<poplar::MultiVertex, V>;
  return registry().emplace(name, VertexType{name, is_multi, sizeof(V), std::move(fields), run_vertex<V>}).second;
}

} // namespace poplar_host
