// From the runs of a copy to transfers: what one tile sends to a set of tiles, and the copies inside tiles around it.
//
// Bytes that several tiles want of one are sent once, to all of them: a tile's source bytes are cut wherever the set of
// tiles that want them changes. Pieces that are not whole words travel packed: gathered into words before,
// in the order of the receivers where that makes whole words there too, else scattered after.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "../../core/exchange_schedule.h"
#include "../../core/memory_elements.h"
#include "../../core/word_parts.h"
#include "device_memory.h"

namespace t10 {

// What a transfer and a copy cost; see docs/device-simulator.md for where the numbers come from.
struct ExchangeRates {
  std::int64_t exchange_bytes, exchange_cycles;  // a port passes so many bytes in so many cycles
  std::int64_t fragment_cycles, copy_bytes_per_cycle, largest_words;
  MemoryElements elements;
  std::int64_t paired_bytes_per_cycle, least_paired_words;  // 0: tiles of a pair take the same like any others
  std::int64_t launch_cycles;                               // before copies inside a tile begin
};

constexpr std::int64_t WORD = 4, EIGHTH = 8;  // copies are counted in eighths of a cycle
constexpr std::int64_t ROW_EIGHTHS = 4 * EIGHTH, RAGGED_EIGHTHS = 4 * EIGHTH;
constexpr std::int64_t MOST_PIECES = std::int64_t(1) << 24;  // half a gigabyte, two where one tile sends all; seconds

// Of where a piece comes from, the bits from here on number its variable: a piece lies in one.
constexpr int VARIABLE_SHIFT = 40;

// One contiguous piece that crosses tiles; `from` counts from the begin of its variable, `to` from that of the memory.
struct Piece {
  std::int32_t source, target;
  std::int64_t from, to, n;
  bool is_words() const { return ((from | to | n) & (WORD - 1)) == 0; }
};

// A transfer in the making. Of packed segments: how many ranges they are at the sender, where the last one ended, cycles of
// gathering, the most ranges at any receiver, and whether they are whole words at all of them.
struct Draft : Transfer {
  std::int64_t packed_ranges = 0, packed_end = -1, packed_eighths = 0, landing_ranges = 0;
  bool lands_as_words = true;
  bool is_wide = true;  // whole double words at all ends
};

struct Transfers {
  std::vector<Transfer> list;
  std::vector<std::int64_t> before, after;  // eighths of a cycle per tile: copies before and after the exchange
  std::int64_t crossing_bytes = 0;
};

// Eighths of a cycle per byte of a copy whose two sides differ by `distance` modulo eight.
inline std::int64_t eighths_per_byte(const ExchangeRates &rates, std::int64_t distance) {
  if (distance % 8 == 0) return std::max<std::int64_t>(EIGHTH / rates.copy_bytes_per_cycle, 1);
  if (distance % 4 == 0) return 4;
  return distance % 2 == 0 ? 6 : 12;
}

// A copy inside a tile of `count` pieces of `n` bytes each.
inline std::int64_t copy_eighths(const ExchangeRates &rates, std::int64_t from, std::int64_t to, std::int64_t n,
                                 std::int64_t count, std::int64_t source_step, std::int64_t target_step) {
  const std::int64_t distance = (from - to) | (count > 1 ? source_step - target_step : 0);
  if (n < WORD && count > 1 && target_step == n) {  // pieces are joined to whole words while they are copied
    return ROW_EIGHTHS + n * count * (n % 2 == 0 ? 8 : 16);
  }
  std::int64_t ragged = (to % WORD != 0) + ((to + n) % WORD != 0);
  if (n < WORD && ragged > 1) ragged = 1;
  return ROW_EIGHTHS + count * (n * eighths_per_byte(rates, distance) + ragged * RAGGED_EIGHTHS);
}

// Bytes that lie packed and belong at `to`; `transfer` brought them, -1 for those that were on the tile already.
struct Scattered {
  std::int64_t transfer, to, n;
};

// Call `use` with every longest range of pieces that follow each other.
template <typename Pieces, typename Use>
void each_range(const Pieces &pieces, Use use) {
  std::int64_t begin = 0, end = -1;
  for (const Scattered &piece : pieces) {
    if (piece.to == end) {
      end += piece.n;
      continue;
    }
    if (end >= 0) use(begin, end);
    begin = piece.to;
    end = piece.to + piece.n;
  }
  if (end >= 0) use(begin, end);
}

class TransferMaker {
 public:
  TransferMaker(const ExchangeRates &rates, std::int64_t n_tiles) : rates_(rates), n_tiles_(n_tiles), scattered_(n_tiles) {
    made_.before.assign(n_tiles, 0);
    made_.after.assign(n_tiles, 0);
  }

  Transfers make(const Run *runs, std::int64_t n_runs, const Fill *fills, std::int64_t n_fills,
                 const std::int64_t *source_offsets, std::int64_t target_offset) {
    sources_ = source_offsets;
    std::int64_t n_pieces = 0;
    for (std::int64_t i = 0; i < n_runs; ++i) n_pieces += runs[i].count;
    const bool is_cut = n_pieces <= MOST_PIECES;
    std::map<std::vector<std::int64_t>, std::vector<std::int32_t>> whole;
    std::vector<std::vector<std::int32_t>> by_source(n_tiles_);
    for (std::int64_t i = 0; i < n_runs; ++i) {
      const Run &run = runs[i];
      const std::int64_t from = source_offsets[run.source] + run.source_offset, to = target_offset + run.target_offset;
      if (run.source_tile == run.target_tile && is_cut && run.n_bytes < WORD) {
        auto &pieces = scattered_[run.target_tile];
        for (std::int64_t k = 0; k < run.count; ++k) pieces.push_back({-1, to + k * run.target_step, run.n_bytes});
        continue;
      }
      if (run.source_tile == run.target_tile) {
        made_.after[run.target_tile] +=
            copy_eighths(rates_, from, to, run.n_bytes, run.count, run.source_step, run.target_step);
        continue;
      }
      made_.crossing_bytes += std::int64_t(run.n_bytes) * run.count;
      if (is_cut) {
        by_source[run.source_tile].push_back(std::int32_t(i));
      } else {
        whole[{run.source_tile, from, run.n_bytes, run.count, run.source_step}].push_back(std::int32_t(i));
      }
    }
    for (std::int64_t i = 0; i < n_fills; ++i) {
      const Fill &fill = fills[i];
      const std::int64_t at = target_offset + fill.offset;  // A constant has no place: as if it came from such a one.
      made_.after[fill.tile] += copy_eighths(rates_, at, at, fill.n_bytes, fill.count, fill.step, fill.step);
    }
    for (const auto &numbers : by_source) cut(parts_of(pieces_of(runs, numbers, target_offset)));
    for (const auto &[key, rows] : whole) send_whole(runs, rows, source_offsets, target_offset);
    land();
    for (Draft &each : drafts_) finish(each);
    for (std::int64_t tile = 0; tile < n_tiles_; ++tile) scatter(tile);
    made_.list.assign(std::make_move_iterator(drafts_.begin()), std::make_move_iterator(drafts_.end()));
    return std::move(made_);
  }

 private:
  // Where a piece lies, counted from the begin of the memory.
  std::int64_t address(std::int64_t from) const {
    return sources_[from >> VARIABLE_SHIFT] + (from & ((std::int64_t{1} << VARIABLE_SHIFT) - 1));
  }

  // The pieces of one tile's runs; those that go on where the last one ended are one with it.
  static std::vector<Piece> pieces_of(const Run *runs, const std::vector<std::int32_t> &numbers,
                                      std::int64_t target_offset) {
    std::vector<Piece> pieces;
    for (const std::int32_t number : numbers) {
      const Run &run = runs[number];
      for (std::int64_t k = 0; k < run.count; ++k) {
        const std::int64_t at = run.source_offset + k * std::int64_t(run.source_step);
        const Piece piece{run.source_tile, run.target_tile, (std::int64_t(run.source) << VARIABLE_SHIFT) + at,
                          target_offset + run.target_offset + k * run.target_step, run.n_bytes};
        if (!pieces.empty() && continues(pieces.back(), piece)) {
          pieces.back().n += piece.n;
        } else {
          pieces.push_back(piece);
        }
      }
    }
    return pieces;
  }

  static bool continues(const Piece &last, const Piece &next) {
    return last.target == next.target && last.from + last.n == next.from && last.to + last.n == next.to;
  }

  // Take the whole words within pieces apart from what is around them.
  static std::vector<Piece> parts_of(const std::vector<Piece> &pieces) {
    std::vector<Piece> parts;
    for (Piece piece : pieces) {
      for (const std::int64_t n : word_parts(piece.from, piece.to, piece.n)) {
        piece.n = n;
        if (n > 0) parts.push_back(piece);
        piece.from += n;
        piece.to += n;
      }
    }
    return parts;
  }

  // Cut the pieces that one tile sends into segments that one set of tiles wants, and gather segments by that set.
  void cut(std::vector<Piece> pieces) {
    if (pieces.empty()) return;
    std::sort(pieces.begin(), pieces.end(), [](const Piece &a, const Piece &b) {
      return std::tie(a.from, a.target, a.to) < std::tie(b.from, b.target, b.to);
    });
    std::vector<std::int64_t> bounds;
    for (const Piece &piece : pieces) {
      bounds.push_back(piece.from);
      bounds.push_back(piece.from + piece.n);
    }
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    std::map<std::vector<std::int32_t>, std::size_t> numbers;
    std::vector<std::size_t> active;
    std::size_t next = 0;
    for (std::size_t b = 0; b + 1 < bounds.size(); ++b) {
      const std::int64_t begin = bounds[b], end = bounds[b + 1];
      active.erase(std::remove_if(active.begin(), active.end(),
                                  [&](std::size_t i) { return pieces[i].from + pieces[i].n <= begin; }),
                   active.end());
      while (next < pieces.size() && pieces[next].from <= begin) active.push_back(next++);
      for (const std::vector<std::size_t> &round : rounds_of(pieces, active)) add_segment(pieces, round, begin, end, numbers);
    }
  }

  // The pieces that want a segment, by target, in rounds: a tile that wants it at several places gets it as often.
  static std::vector<std::vector<std::size_t>> rounds_of(const std::vector<Piece> &pieces, std::vector<std::size_t> active) {
    std::stable_sort(active.begin(), active.end(),
                     [&](std::size_t a, std::size_t b) { return pieces[a].target < pieces[b].target; });
    std::vector<std::vector<std::size_t>> rounds;
    std::size_t round = 0;
    for (std::size_t i = 0; i < active.size(); ++i) {
      round = i > 0 && pieces[active[i]].target == pieces[active[i - 1]].target ? round + 1 : 0;
      if (round == rounds.size()) rounds.emplace_back();
      rounds[round].push_back(active[i]);
    }
    return rounds;
  }

  // Send a segment to the tiles of one round.
  void add_segment(const std::vector<Piece> &pieces, const std::vector<std::size_t> &active, std::int64_t begin,
                   std::int64_t end, std::map<std::vector<std::int32_t>, std::size_t> &numbers) {
    std::vector<std::int32_t> targets;
    bool is_words = true;
    for (const std::size_t i : active) {
      targets.push_back(pieces[i].target);
      is_words = is_words && pieces[i].is_words();
    }
    const auto [found, is_new] = numbers.try_emplace(targets, drafts_.size());
    if (is_new) {
      drafts_.emplace_back();
      drafts_.back().source = pieces[active[0]].source;
      drafts_.back().targets = targets;
      drafts_.back().writes.assign(targets.size(), 0);
    }
    Draft &transfer = drafts_[found->second];
    const std::int64_t n = end - begin;
    transfer.n_bytes += n;
    transfer.is_wide = transfer.is_wide && (address(begin) | n) % (2 * WORD) == 0;
    transfer.reads |= rates_.elements.mask(address(begin), n);
    for (const std::size_t i : active) {
      const Piece &piece = pieces[i];
      const std::int64_t to = piece.to + begin - piece.from;
      const auto at = std::lower_bound(targets.begin(), targets.end(), piece.target) - targets.begin();
      transfer.writes[at] |= rates_.elements.mask(to, n);
      transfer.is_wide = transfer.is_wide && to % (2 * WORD) == 0;
      if (!is_words) scattered_[piece.target].push_back({std::int64_t(found->second), to, n});
    }
    if (is_words) {
      ++transfer.fragments;
      return;
    }
    if (begin != transfer.packed_end) ++transfer.packed_ranges;
    transfer.packed_end = end;
    transfer.packed_eighths += fine_eighths(begin, n);
  }

  // Eighths of a cycle to gather or to scatter bytes that are not whole words.
  static std::int64_t fine_eighths(std::int64_t at, std::int64_t n) {
    const bool is_even = (at | n) % 2 == 0;
    return n * (n < 2 * WORD ? (is_even ? 8 : 16) : (is_even ? 6 : 12));
  }

  // Find out which packed transfers are whole words wherever they arrive.
  void land() {
    for (auto &pieces : scattered_) {
      std::sort(pieces.begin(), pieces.end(), [](const Scattered &a, const Scattered &b) {
        return std::tie(a.transfer, a.to) < std::tie(b.transfer, b.to);
      });
      for (std::size_t first = 0; first < pieces.size();) {
        std::size_t last = first;
        std::vector<Scattered> own;
        while (last < pieces.size() && pieces[last].transfer == pieces[first].transfer) own.push_back(pieces[last++]);
        const std::int64_t number = pieces[first].transfer;
        first = last;
        if (number < 0) continue;
        std::int64_t n_ranges = 0;
        bool are_words = true;
        each_range(own, [&](std::int64_t begin, std::int64_t end) {
          ++n_ranges;
          are_words = are_words && ((begin | end) & (WORD - 1)) == 0;
        });
        Draft &transfer = drafts_[number];
        transfer.landing_ranges = std::max(transfer.landing_ranges, n_ranges);
        transfer.lands_as_words = transfer.lands_as_words && are_words;
      }
    }
  }

  // Price what a tile scatters after the exchange: every range is written word by word, its ragged ends merged in.
  void scatter(std::int64_t tile) {
    std::vector<Scattered> rest;
    for (const Scattered &piece : scattered_[tile]) {
      if (piece.transfer < 0 || !drafts_[piece.transfer].lands_as_words) rest.push_back(piece);
    }
    std::sort(rest.begin(), rest.end(), [](const Scattered &a, const Scattered &b) { return a.to < b.to; });
    std::int64_t &eighths = made_.after[tile];
    for (const Scattered &piece : rest) eighths += fine_eighths(piece.to, piece.n);
    if (!rest.empty()) eighths += ROW_EIGHTHS;
    each_range(rest, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t ragged = (begin % WORD != 0) + (end % WORD != 0);
      eighths += (end - begin < WORD ? std::min<std::int64_t>(ragged, 1) : ragged) * RAGGED_EIGHTHS;
    });
  }

  // Runs of one source that are too many to cut: equal ones are sent once, each a transfer of its own.
  void send_whole(const Run *runs, const std::vector<std::int32_t> &rows, const std::int64_t *source_offsets,
                  std::int64_t target_offset) {
    const Run &first = runs[rows[0]];
    Draft transfer;
    transfer.is_wide = false;
    transfer.source = first.source_tile;
    const std::int64_t from = source_offsets[first.source] + first.source_offset;
    bool is_words = true;
    std::vector<std::pair<std::int32_t, std::uint64_t>> targets;
    for (const std::int32_t row : rows) {
      const Run &run = runs[row];
      const std::int64_t to = target_offset + run.target_offset, step = run.count > 1 ? run.target_step : 0;
      is_words = is_words && ((from | to | run.n_bytes | step | run.source_step) & (WORD - 1)) == 0;
      const std::int64_t low = std::min<std::int64_t>(to, to + (run.count - 1) * step);
      const std::int64_t span = (run.count - 1) * std::abs(step) + run.n_bytes;
      targets.emplace_back(run.target_tile, rates_.elements.mask(low, span));
    }
    std::sort(targets.begin(), targets.end());
    for (const auto &[tile, mask] : targets) {
      if (!transfer.targets.empty() && transfer.targets.back() == tile) {
        transfer.writes.back() |= mask;
        continue;
      }
      transfer.targets.push_back(tile);
      transfer.writes.push_back(mask);
    }
    transfer.n_bytes = std::int64_t(first.n_bytes) * first.count;
    transfer.reads = rates_.elements.mask(from, (first.count - 1) * std::abs(first.source_step) + first.n_bytes);
    if (is_words) {
      transfer.fragments = first.count;
    } else {
      transfer.packed_ranges = first.count;
      transfer.packed_eighths = first.count * fine_eighths(from, first.n_bytes);
      transfer.lands_as_words = false;
      for (const std::int32_t row : rows) {
        const Run &run = runs[row];
        made_.after[run.target_tile] +=
            copy_eighths(rates_, 0, target_offset + run.target_offset, run.n_bytes, run.count, run.n_bytes,
                         run.target_step);
      }
    }
    drafts_.push_back(std::move(transfer));
  }

  // Price a transfer. A single range that is scattered anyway needs no gathering: the words that cover it are sent.
  void finish(Draft &transfer) {
    const bool is_packed = transfer.packed_ranges > 0, is_direct = is_packed && transfer.lands_as_words;
    if (transfer.packed_ranges > 1 || is_direct) {
      made_.before[transfer.source] += ROW_EIGHTHS + transfer.packed_eighths;
    }
    const std::int64_t n_bytes = transfer.n_bytes + (is_packed && !is_direct ? WORD - 1 : 0);
    std::int64_t fragments = transfer.fragments + (is_direct ? transfer.landing_ranges : is_packed ? 1 : 0);
    fragments += ((n_bytes + WORD - 1) / WORD - 1) / rates_.largest_words;
    transfer.fragments = fragments;
    transfer.cycles = (n_bytes * rates_.exchange_cycles + rates_.exchange_bytes - 1) / rates_.exchange_bytes +
                      fragments * rates_.fragment_cycles;
    if (!transfer.is_wide || rates_.paired_bytes_per_cycle == 0 || n_bytes < rates_.least_paired_words * WORD) return;
    transfer.paired_cycles = (n_bytes + rates_.paired_bytes_per_cycle - 1) / rates_.paired_bytes_per_cycle +
                             fragments * rates_.fragment_cycles;
  }

  ExchangeRates rates_;
  std::int64_t n_tiles_;
  const std::int64_t *sources_ = nullptr;
  Transfers made_;
  std::vector<Draft> drafts_;
  std::vector<std::vector<Scattered>> scattered_;
};

}  // namespace t10
