// What one tile sends to a set of tiles, and what of it goes in double words to both tiles of a pair.
//
// Tiles 2k and 2k + 1 share a bus: words on both its halves are for two tiles that take the same. Such a transfer keeps the
// send ports of the sender's whole pair busy, and its receivers for about half as long.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace t10 {

// What tile `source` sends to all `targets` (ascending) at once; bit e of a mask stands for memory element e.
// `paired_cycles` is what it takes where all targets are pairs, 0 where that is nothing to it; `is_paired`: that is so.
struct Transfer {
  std::int32_t source = 0;
  std::vector<std::int32_t> targets;
  std::int64_t n_bytes = 0, fragments = 0, cycles = 0, paired_cycles = 0;
  std::uint64_t reads = 0;
  std::vector<std::uint64_t> writes;
  bool is_paired = false;

  // Tiles that take the same share it: both of a pair, else each by itself.
  std::size_t n_together() const { return is_paired ? 2 : 1; }
};

// The other tile of a pair.
inline std::int32_t partner(std::int32_t tile) { return tile ^ 1; }

// A transfer to those of its targets that are pairs, or to the others.
inline Transfer part_of(const Transfer &whole, bool has_pairs) {
  Transfer part = whole;
  part.targets.clear();
  part.writes.clear();
  for (std::size_t i = 0; i < whole.targets.size(); ++i) {
    if (std::binary_search(whole.targets.begin(), whole.targets.end(), partner(whole.targets[i])) != has_pairs) continue;
    part.targets.push_back(whole.targets[i]);
    part.writes.push_back(whole.writes[i]);
  }
  part.is_paired = has_pairs;
  if (has_pairs) part.cycles = whole.paired_cycles;
  return part;
}

// Cycles of the busiest port.
inline std::int64_t busiest_port(const std::vector<Transfer> &transfers, std::int64_t n_tiles) {
  std::vector<std::int64_t> sent(static_cast<std::size_t>(n_tiles), 0), received(sent);
  std::int64_t most = 0;
  const auto add = [&](std::vector<std::int64_t> &ports, std::int32_t tile, std::int64_t cycles) {
    most = std::max(most, ports[static_cast<std::size_t>(tile)] += cycles);
  };
  for (const Transfer &each : transfers) {
    add(sent, each.source, each.cycles);
    if (each.is_paired && partner(each.source) < n_tiles) add(sent, partner(each.source), each.cycles);
    for (const std::int32_t tile : each.targets) add(received, tile, each.cycles);
  }
  return most;
}

// Transfers in which pairs take double words; none where that does not leave the busiest port less to do. What single tiles
// want, too, is either sent to them once more, or in single words to all.
inline std::vector<Transfer> with_pairs(const std::vector<Transfer> &transfers, std::int64_t n_tiles) {
  std::vector<Transfer> whole, split;
  if (std::none_of(transfers.begin(), transfers.end(), [](const Transfer &each) { return each.paired_cycles > 0; }))
    return whole;
  for (const Transfer &each : transfers) {
    Transfer pairs = part_of(each, true);
    if (each.paired_cycles == 0 || pairs.targets.empty()) {
      whole.push_back(each);
      split.push_back(each);
      continue;
    }
    whole.push_back(pairs.targets.size() == each.targets.size() ? pairs : each);
    if (pairs.targets.size() < each.targets.size()) split.push_back(part_of(each, false));
    split.push_back(std::move(pairs));
  }
  const std::int64_t single = busiest_port(transfers, n_tiles), of_whole = busiest_port(whole, n_tiles);
  const std::int64_t of_split = busiest_port(split, n_tiles);
  if (std::min(of_whole, of_split) >= single) return {};
  return of_split < of_whole ? split : whole;
}

}  // namespace t10
