// Sorting by a small key first, in time proportional to the items and keys: what is left to compare is short.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace t10 {

// Puts items in the order of their keys (0 <= key < n_keys), those of one key as they were.
template <class Item, class Key>
void order_by_key(std::vector<Item> &items, std::size_t n_keys, Key &&key) {
  std::vector<std::size_t> next(n_keys + 1, 0);
  for (const Item &item : items) ++next[static_cast<std::size_t>(key(item)) + 1];
  for (std::size_t k = 0; k < n_keys; ++k) next[k + 1] += next[k];
  std::vector<Item> ordered(items.size());
  for (Item &item : items) ordered[next[static_cast<std::size_t>(key(item))]++] = std::move(item);
  items = std::move(ordered);
}

// Sorts every run of items that belong together.
template <class Item, class Together, class Less>
void sort_runs(std::vector<Item> &items, Together &&together, Less &&less) {
  for (auto first = items.begin(); first != items.end();) {
    const auto last = std::find_if(first, items.end(), [&](const Item &item) { return !together(*first, item); });
    if (!std::is_sorted(first, last, less)) std::sort(first, last, less);
    first = last;
  }
}

}  // namespace t10
