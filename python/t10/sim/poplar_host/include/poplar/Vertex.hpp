// Vertex classes on a host: a field is one pointer, and says of itself what may be connected to it.
#pragma once

#include "HalfFloat.hpp"

#include <cstddef>

namespace poplar {

enum class VectorLayout { SPAN, ONE_PTR };

template <typename T, VectorLayout Layout = VectorLayout::SPAN, unsigned MinAlign = alignof(T), bool Interleaved = false>
struct Vector {
  static_assert(Layout == VectorLayout::ONE_PTR, "emitted vertices use pointers only");
  using Element = T;
  static constexpr unsigned alignment = MinAlign;
  static constexpr bool is_interleaved = Interleaved;
};

template <typename V> struct Input {
  const typename V::Element *pointer;
  const typename V::Element &operator[](std::size_t i) const { return pointer[i]; }
};

template <typename V> struct Output {
  typename V::Element *pointer;
  typename V::Element &operator[](std::size_t i) const { return pointer[i]; }
};

template <typename V> struct InOut {
  typename V::Element *pointer;
  typename V::Element &operator[](std::size_t i) const { return pointer[i]; }
};

class Vertex {};

class SupervisorVertex {};

class MultiVertex {
public:
  static constexpr unsigned numWorkers() { return T10_WORKERS; }
};

} // namespace poplar
