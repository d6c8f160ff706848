// What the C++ bodies of vertices need besides the language.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace t10 {

// The same memory as elements of another type: 64-bit integers are pairs of words for Poplar.
template <typename To, typename From> inline To *view(From *pointer) {
  return reinterpret_cast<To *>(const_cast<std::remove_const_t<From> *>(pointer));
}

} // namespace t10
