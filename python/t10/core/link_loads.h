// What passes over the links between groups of cores in an exchange phase (t10.core.links.Links).
//
// A transfer uses the links of the outermost level on which its ends lie in different groups, and no others. What several
// cores want of one passes a link once where the level multicasts, else once for each of them. Groups of a mesh or torus
// stand at its positions in order, but for those that are missing: these have links like others, and no group.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace t10 {

constexpr std::int64_t kRateCycles = 1024;  // rates of links are bytes in so many cycles
constexpr std::size_t kLevelNumbers = 8;  // the last says how many numbers follow: positions that are missing

enum class Topology : std::int64_t { kExchange, kAllToAll, kSwitch, kMesh, kTorus, kTree };

class LinkLoads {
 public:
  using Int = std::int64_t;

  // `numbers` are those of t10.core.links.Links, innermost level first.
  LinkLoads(const std::vector<Int> &numbers, Int n_cores) {
    for (std::size_t i = 0; i < numbers.size();) {
      if (numbers.size() - i < kLevelNumbers) throw std::invalid_argument("LinkLoads: eight numbers for each level");
      const Int n_missing = numbers[i + 7];
      if (n_missing < 0 || n_missing > static_cast<Int>(numbers.size() - i - kLevelNumbers))
        throw std::invalid_argument("LinkLoads: fewer missing positions than are said to follow");
      Level level{numbers[i],     numbers[i + 1], static_cast<Topology>(numbers[i + 2]), numbers[i + 3],
                  numbers[i + 4], numbers[i + 5], numbers[i + 6] != 0,                   static_cast<Int>(bytes_.size()),
                  0,              numbers[i + 1] + n_missing};
      if (level.stride < 1 || level.count < 1 || level.width < 1 || level.rate < 1)
        throw std::invalid_argument("LinkLoads: a level without groups or bandwidth");
      if (level.topology == Topology::kTree && level.width < 2)
        throw std::invalid_argument("LinkLoads: a tree whose switches have one child");
      i += kLevelNumbers;
      level.places = places_of(level, numbers.begin() + static_cast<std::ptrdiff_t>(i), n_missing);
      i += static_cast<std::size_t>(n_missing);
      level.n_links = n_links_of(level);
      const Int whole = level.stride * level.count, n_parents = (n_cores + whole - 1) / whole;
      bytes_.resize(bytes_.size() + static_cast<std::size_t>(n_parents * level.n_links), 0);
      levels_.push_back(level);
    }
    touched_by_.assign(bytes_.size(), 0);
  }

  // Begins what one core sends to others at once.
  void begin(Int source, Int n_bytes) {
    source_ = source;
    n_bytes_ = n_bytes;
    ++number_;
  }

  void to(Int target) {
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
      const Int here = source_ / level->stride, there = target / level->stride;
      if (here == there) continue;
      if (level->topology == Topology::kExchange) return;
      const Int first = level->first + here / level->count * level->n_links;
      const Int n_hops = route(*level, here % level->count, there % level->count, [&](Int link) {
        const auto at = static_cast<std::size_t>(first + link);
        if (level->is_multicast && touched_by_[at] == number_) return;
        touched_by_[at] = number_;
        bytes_[at] += n_bytes_;
      });
      latency_ = std::max(latency_, n_hops * level->latency);
      return;
    }
  }

  // Until the busiest link has passed all bytes.
  Int cycles() const {
    Int most = 0;
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      const std::size_t end = l + 1 < levels_.size() ? static_cast<std::size_t>(levels_[l + 1].first) : bytes_.size();
      for (auto i = static_cast<std::size_t>(levels_[l].first); i < end; ++i)
        most = std::max(most, (bytes_[i] * kRateCycles + levels_[l].rate - 1) / levels_[l].rate);
    }
    return most;
  }

  // Of the longest way.
  Int latency() const { return latency_; }

  const std::vector<Int> &bytes() const { return bytes_; }

 private:
  struct Level {
    Int stride, count;
    Topology topology;
    Int width, rate, latency;
    bool is_multicast;
    Int first, n_links;
    Int n_positions;                 // of a mesh or torus, missing ones included
    std::vector<Int> places = {};    // by group its position; empty where none is missing

    Int place(Int group) const { return places.empty() ? group : places[static_cast<std::size_t>(group)]; }
  };

  // By group its position, where so many are missing: those from `missing` on, ascending.
  static std::vector<Int> places_of(const Level &level, std::vector<Int>::const_iterator missing, Int n_missing) {
    std::vector<Int> places;
    if (n_missing == 0) return places;
    const auto end = missing + n_missing;
    for (Int at = 0; at < level.n_positions; ++at) {
      if (missing != end && *missing == at)
        ++missing;
      else
        places.push_back(at);
    }
    if (missing != end || static_cast<Int>(places.size()) != level.count)
      throw std::invalid_argument("LinkLoads: missing positions that are not there, or not ascending");
    return places;
  }

  static Int n_links_of(const Level &level) {
    switch (level.topology) {
      case Topology::kAllToAll: return level.count * level.count;
      case Topology::kSwitch: return 2 * level.count;
      case Topology::kMesh:
      case Topology::kTorus: return 4 * level.n_positions;
      case Topology::kTree: {
        Int n = 0;
        for (Int nodes = level.count; nodes > 1; nodes = above(level, nodes)) n += 2 * nodes;
        return n;
      }
      default: return 0;
    }
  }

  // Switches that so many nodes of a tree have above them.
  static Int above(const Level &level, Int nodes) { return (nodes + level.width - 1) / level.width; }

  // Up to the first common switch and down from it; each node has a link up and one down, those of groups first.
  template <class Use>
  static Int climb(const Level &level, Int from, Int to, Use &&use) {
    Int first = 0, n_switches = -1;
    for (Int nodes = level.count; from != to; nodes = above(level, nodes)) {
      use(first + 2 * from);
      use(first + 2 * to + 1);
      from /= level.width;
      to /= level.width;
      first += 2 * nodes;
      n_switches += 2;
    }
    return n_switches;
  }

  // Gives every link on the way between two groups, and returns how many hops that are.
  template <class Use>
  static Int route(const Level &level, Int from, Int to, Use &&use) {
    if (level.topology == Topology::kAllToAll) {
      use(from * level.count + to);
      return 1;
    }
    if (level.topology == Topology::kSwitch) {
      use(2 * from);
      use(2 * to + 1);
      return 1;
    }
    if (level.topology == Topology::kTree) return climb(level, from, to, use);
    // First along the row, then along the column.
    from = level.place(from);
    to = level.place(to);
    const Int width = level.width, height = level.n_positions / width, row = from / width, column = to % width;
    return walk(level, from % width, column, width, [&](Int at, Int way) { use(4 * (row * width + at) + way); }) +
           walk(level, row, to / width, height, [&](Int at, Int way) { use(4 * (at * width + column) + 2 + way); });
  }

  template <class Use>
  static Int walk(const Level &level, Int from, Int to, Int n, Use &&use) {
    const bool is_torus = level.topology == Topology::kTorus;
    const Int ahead = to >= from ? to - from : to - from + n;
    const bool is_forward = is_torus ? 2 * ahead <= n : to >= from;
    const Int n_hops = is_torus ? std::min(ahead, n - ahead) : is_forward ? to - from : from - to;
    for (Int hop = 0, at = from; hop < n_hops; ++hop) {
      use(at, is_forward ? 0 : 1);
      at = is_forward ? (at + 1 == n ? 0 : at + 1) : (at == 0 ? n - 1 : at - 1);
    }
    return n_hops;
  }

  std::vector<Level> levels_;
  std::vector<Int> bytes_, touched_by_;
  Int source_ = 0, n_bytes_ = 0, number_ = 0, latency_ = 0;
};

}  // namespace t10
