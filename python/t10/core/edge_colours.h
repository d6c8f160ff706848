// Rounds in which all of many transfers between two tiles each can happen: as few as the busiest port has transfers.
//
// König's theorem: the edges of a bipartite graph have as many colours as its largest degree. An edge whose ends have no
// colour free together takes one that is free at its sender, once the path of edges from its receiver that have by turns
// this colour and one that is free there has swapped the two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "paired_transfers.h"

namespace t10 {

class EdgeColours {
 public:
  // The round of every transfer, of long ones the earlier; none unless each goes to one tile, or each to one pair, and
  // tables of rounds by port have room.
  static std::vector<std::int32_t> of(const std::vector<Transfer> &transfers, std::int64_t n_tiles) {
    const bool are_paired = !transfers.empty() && transfers.front().is_paired;
    for (const Transfer &each : transfers)
      if (each.is_paired != are_paired || each.targets.size() != each.n_together()) return {};
    EdgeColours found(transfers, are_paired ? (n_tiles + 1) / 2 : n_tiles, are_paired ? 1 : 0);
    return found.colours_;
  }

 private:
  static constexpr std::size_t MOST_EDGES = std::size_t{1} << 18, MOST_ENTRIES = std::size_t{1} << 25, WORD = 64;
  static constexpr std::int32_t NONE = -1;

  EdgeColours(const std::vector<Transfer> &transfers, std::int64_t n_nodes, int shift)
      : n_(static_cast<std::size_t>(n_nodes)) {
    if (transfers.size() > MOST_EDGES) return;
    std::vector<std::size_t> degrees(2 * n_, 0);
    for (const Transfer &each : transfers) {
      ends_.push_back({static_cast<std::size_t>(each.source >> shift), n_ + static_cast<std::size_t>(each.targets[0] >> shift)});
      for (const std::size_t node : {ends_.back().from, ends_.back().to}) most_ = std::max(most_, ++degrees[node]);
    }
    if (2 * n_ * most_ > MOST_ENTRIES) return;
    n_words_ = (most_ + WORD - 1) / WORD;
    edges_.assign(2 * n_ * most_, NONE);
    is_free_.assign(2 * n_ * n_words_, ~std::uint64_t{0});
    colours_.assign(transfers.size(), NONE);
    std::vector<std::size_t> order(transfers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return transfers[a].cycles > transfers[b].cycles; });
    for (const std::size_t edge : order) colour(edge);
  }

  struct Ends {
    std::size_t from, to;
  };

  // The first colour that is free at both nodes; `most_` and more if none is.
  std::size_t first_free(std::size_t one, std::size_t other) const {
    for (std::size_t word = 0; word < n_words_; ++word) {
      const std::uint64_t both = is_free_[one * n_words_ + word] & is_free_[other * n_words_ + word];
      if (both != 0) return word * WORD + static_cast<std::size_t>(__builtin_ctzll(both));
    }
    return n_words_ * WORD;
  }

  void colour(std::size_t edge) {
    const auto [from, to] = ends_[edge];
    std::size_t found = first_free(from, to);
    if (found >= most_) {
      found = first_free(from, from);
      swap_from(to, found, first_free(to, to));
    }
    set(edge, found);
  }

  // Swaps two colours along the path from a node whose edges have them by turns, the first one first.
  void swap_from(std::size_t node, std::size_t first, std::size_t second) {
    path_.clear();
    for (std::size_t colour = first; entry(node, colour) != NONE; colour = first + second - colour) {
      const auto edge = static_cast<std::size_t>(entry(node, colour));
      path_.push_back(edge);
      node = ends_[edge].from + ends_[edge].to - node;
    }
    for (const std::size_t edge : path_) clear(edge);
    for (const std::size_t edge : path_) set(edge, first + second - static_cast<std::size_t>(colours_[edge]));
  }

  std::int32_t &entry(std::size_t node, std::size_t colour) { return edges_[node * most_ + colour]; }

  void clear(std::size_t edge) {
    const auto colour = static_cast<std::size_t>(colours_[edge]);
    for (const std::size_t node : {ends_[edge].from, ends_[edge].to}) {
      entry(node, colour) = NONE;
      is_free_[node * n_words_ + colour / WORD] |= std::uint64_t{1} << (colour % WORD);
    }
  }

  void set(std::size_t edge, std::size_t colour) {
    colours_[edge] = static_cast<std::int32_t>(colour);
    for (const std::size_t node : {ends_[edge].from, ends_[edge].to}) {
      entry(node, colour) = static_cast<std::int32_t>(edge);
      is_free_[node * n_words_ + colour / WORD] &= ~(std::uint64_t{1} << (colour % WORD));
    }
  }

  std::size_t n_, most_ = 0, n_words_ = 0;
  std::vector<Ends> ends_;
  std::vector<std::int32_t> colours_, edges_;
  std::vector<std::uint64_t> is_free_;
  std::vector<std::size_t> path_;
};

}  // namespace t10
