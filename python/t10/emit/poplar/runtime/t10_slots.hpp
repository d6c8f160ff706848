// Where the elements of a host tensor lie in a variable, from a table; see SLOT TABLES in the README.
#pragma once

#include "t10_files.hpp"

namespace t10 {

inline void check_slot(std::int64_t slot, std::size_t n_slots, std::int64_t element, std::size_t n_elements) {
  if (slot < 0 || static_cast<std::size_t>(slot) >= n_slots || element < 0 ||
      static_cast<std::size_t>(element) >= n_elements)
    throw FileError("tables.bin: a slot table gives slot " + std::to_string(slot) + " of " + std::to_string(n_slots) +
                    " element " + std::to_string(element) + " of " + std::to_string(n_elements));
}

// Call visit(slot, element) for every slot that holds an element; throws where one of them does not exist.
//
// A table is {0, element of slot 0, element of slot 1, ...} with -1 for none, or {1, slot steps of three nested loops,
// element steps of the same, rows of (slot, element, three loop counts)}, innermost loop first.
template <typename Visit>
void for_each_slot(Span table, std::size_t n_slots, std::size_t n_elements, const Visit &visit) {
  if (table.size() == 0)
    return;
  if (table[0] == 0) {
    for (std::size_t i = 1; i < table.size(); ++i) {
      if (table[i] == -1)
        continue;
      check_slot(static_cast<std::int64_t>(i - 1), n_slots, table[i], n_elements);
      visit(static_cast<std::int64_t>(i - 1), static_cast<std::int64_t>(table[i]));
    }
    return;
  }
  if (table[0] != 1 || table.size() < 7 || (table.size() - 7) % 5 != 0)
    throw FileError("tables.bin: a slot table has no rows of five numbers");
  const std::int32_t *slot_step = table.begin() + 1, *element_step = table.begin() + 4;
  std::size_t n_left = n_slots; // a slot is named once
  for (const std::int32_t *row = table.begin() + 7; row != table.end(); row += 5) {
    if (row[2] < 1 || row[3] < 1 || row[4] < 1)
      throw FileError("tables.bin: a row of a slot table names no slots");
    for (std::int64_t k = 0; k < row[4]; ++k) {
      for (std::int64_t j = 0; j < row[3]; ++j) {
        std::int64_t slot = row[0] + k * slot_step[2] + j * slot_step[1];
        std::int64_t element = row[1] + k * element_step[2] + j * element_step[1];
        const auto length = static_cast<std::size_t>(row[2]);
        if (length > n_left)
          throw FileError("tables.bin: a slot table names more slots than there are: " + std::to_string(n_slots));
        n_left -= length;
        check_slot(slot, n_slots, element, n_elements);
        check_slot(slot + (row[2] - 1) * static_cast<std::int64_t>(slot_step[0]), n_slots,
                   element + (row[2] - 1) * static_cast<std::int64_t>(element_step[0]), n_elements);
        for (std::int64_t i = 0; i < row[2]; ++i, slot += slot_step[0], element += element_step[0])
          visit(slot, element);
      }
    }
  }
}

template <typename Element>
void to_slots(Span table, const std::vector<char> &elements, std::vector<char> &slots, std::uint64_t fill) {
  const auto *from = reinterpret_cast<const Element *>(elements.data());
  auto *to = reinterpret_cast<Element *>(slots.data());
  const std::size_t n_slots = slots.size() / sizeof(Element);
  const Element nothing = from_bits<Element>(fill);
  for (std::size_t i = 0; i < n_slots; ++i)
    to[i] = nothing;
  for_each_slot(table, n_slots, elements.size() / sizeof(Element),
                [&](std::int64_t slot, std::int64_t element) { to[slot] = from[element]; });
}

template <typename Element> void from_slots(Span table, const std::vector<char> &slots, std::vector<char> &elements) {
  const auto *from = reinterpret_cast<const Element *>(slots.data());
  auto *to = reinterpret_cast<Element *>(elements.data());
  for_each_slot(table, slots.size() / sizeof(Element), elements.size() / sizeof(Element),
                [&](std::int64_t slot, std::int64_t element) { to[element] = from[slot]; });
}

// Fill a variable's image from elements of `size` bytes in row-major order.
inline void to_slots(std::size_t size, Span table, const std::vector<char> &elements, std::vector<char> &slots,
                     std::uint64_t fill) {
  switch (size) {
  case 1: return to_slots<std::uint8_t>(table, elements, slots, fill);
  case 2: return to_slots<std::uint16_t>(table, elements, slots, fill);
  case 4: return to_slots<std::uint32_t>(table, elements, slots, fill);
  default: return to_slots<std::uint64_t>(table, elements, slots, fill);
  }
}

// The other way round: no element may be in two slots of the table.
inline void from_slots(std::size_t size, Span table, const std::vector<char> &slots, std::vector<char> &elements) {
  switch (size) {
  case 1: return from_slots<std::uint8_t>(table, slots, elements);
  case 2: return from_slots<std::uint16_t>(table, slots, elements);
  case 4: return from_slots<std::uint32_t>(table, slots, elements);
  default: return from_slots<std::uint64_t>(table, slots, elements);
  }
}

// Give the elements that a table names one value.
inline void fill_elements(std::size_t size, Span table, std::uint64_t bits, std::vector<char> &elements) {
  const std::size_t n_elements = elements.size() / size;
  for_each_slot(table, n_elements, n_elements, [&](std::int64_t, std::int64_t element) {
    std::memcpy(elements.data() + element * static_cast<std::int64_t>(size), &bits, size);
  });
}

} // namespace t10
