// Where the elements of a host tensor lie in a variable, from a table; see SLOT TABLES in the README.
#pragma once

#include "t10_tables.hpp"

namespace t10 {

// Call visit(slot, element) for every slot that holds an element.
//
// A table is {0, element of slot 0, element of slot 1, ...} with -1 for none, or {1, slot steps of three nested loops,
// element steps of the same, rows of (slot, element, three loop counts)}, innermost loop first.
template <typename Visit> void for_each_slot(Span table, const Visit &visit) {
  if (table.size() == 0)
    return;
  if (table[0] == 0) {
    for (std::size_t slot = 1; slot < table.size(); ++slot)
      if (table[slot] >= 0)
        visit(static_cast<std::int64_t>(slot - 1), static_cast<std::int64_t>(table[slot]));
    return;
  }
  const std::int32_t *slot_step = table.begin() + 1, *element_step = table.begin() + 4;
  for (const std::int32_t *row = table.begin() + 7; row != table.end(); row += 5) {
    for (std::int64_t k = 0; k < row[4]; ++k) {
      for (std::int64_t j = 0; j < row[3]; ++j) {
        std::int64_t slot = row[0] + k * slot_step[2] + j * slot_step[1];
        std::int64_t element = row[1] + k * element_step[2] + j * element_step[1];
        for (std::int64_t i = 0; i < row[2]; ++i, slot += slot_step[0], element += element_step[0])
          visit(slot, element);
      }
    }
  }
}

template <typename Element>
void to_slots(Span table, const char *elements, std::vector<char> &slots, std::uint64_t fill) {
  const auto *from = reinterpret_cast<const Element *>(elements);
  auto *to = reinterpret_cast<Element *>(slots.data());
  const Element nothing = from_bits<Element>(fill);
  for (std::size_t i = 0; i < slots.size() / sizeof(Element); ++i)
    to[i] = nothing;
  for_each_slot(table, [&](std::int64_t slot, std::int64_t element) { to[slot] = from[element]; });
}

template <typename Element> void from_slots(Span table, const std::vector<char> &slots, char *elements) {
  const auto *from = reinterpret_cast<const Element *>(slots.data());
  auto *to = reinterpret_cast<Element *>(elements);
  for_each_slot(table, [&](std::int64_t slot, std::int64_t element) { to[element] = from[slot]; });
}

// Fill a variable's image from elements of `size` bytes in row-major order.
inline void to_slots(std::size_t size, Span table, const char *elements, std::vector<char> &slots, std::uint64_t fill) {
  switch (size) {
  case 1: return to_slots<std::uint8_t>(table, elements, slots, fill);
  case 2: return to_slots<std::uint16_t>(table, elements, slots, fill);
  case 4: return to_slots<std::uint32_t>(table, elements, slots, fill);
  default: return to_slots<std::uint64_t>(table, elements, slots, fill);
  }
}

// The other way round: no element may be in two slots of the table.
inline void from_slots(std::size_t size, Span table, const std::vector<char> &slots, char *elements) {
  switch (size) {
  case 1: return from_slots<std::uint8_t>(table, slots, elements);
  case 2: return from_slots<std::uint16_t>(table, slots, elements);
  case 4: return from_slots<std::uint32_t>(table, slots, elements);
  default: return from_slots<std::uint64_t>(table, slots, elements);
  }
}

// Give the elements that a table names one value.
inline void fill_elements(std::size_t size, Span table, std::uint64_t bits, char *elements) {
  for_each_slot(table, [&](std::int64_t, std::int64_t element) {
    std::memcpy(elements + element * static_cast<std::int64_t>(size), &bits, size);
  });
}

} // namespace t10
