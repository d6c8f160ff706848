// Memory elements of a core: what is read and what is written at once must lie in different ones.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace t10 {

// Elements of so many bytes; pairs of them from `interleaved_offset` on. Offsets count from the begin of the memory.
struct MemoryElements {
  std::int64_t element_bytes = 0, interleaved_offset = 0;  // 0: no memory elements, nothing is serialised

  // Bit e stands for element e, modulo 64, that `n` bytes from `offset` on touch.
  std::uint64_t mask(std::int64_t offset, std::int64_t n) const {
    if (element_bytes == 0) return 0;
    std::uint64_t result = 0;
    for (std::int64_t e = number(offset); e <= number(offset + n - 1); ++e) result |= std::uint64_t(1) << (e & 63);
    return result;
  }

 private:
  std::int64_t number(std::int64_t at) const {
    return at < interleaved_offset
               ? at / element_bytes
               : interleaved_offset / element_bytes + (at - interleaved_offset) / (2 * element_bytes);
  }
};

// Where the target and the sources of a phase begin in the memories of cores; without sources all lie apart.
struct Places {
  MemoryElements elements;
  std::int64_t target = 0;
  std::vector<std::int64_t> sources;

  Places() = default;
  // Element bytes, the offset of the interleaved region, the target, the sources; or nothing.
  explicit Places(const std::vector<std::int64_t> &given) {
    if (given.empty()) return;
    if (given.size() < 4) throw std::invalid_argument("Places: a phase has a target and at least one source");
    elements = {given[0], given[1]};
    target = given[2];
    sources.assign(given.begin() + 3, given.end());
  }
};

}  // namespace t10
