// What cores of a group scatter: packed bytes that are not whole words where they arrive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "move_rates.h"
#include "phase_pieces.h"

namespace t10 {

// Pieces in order of their places, of which none is empty and no two overlap, as all cores scatter them but those that sent some.
class Scattering {
 public:
  // `core_of` says which core sent a piece.
  template <class CoreOf>
  Scattering(const LoadRates &rates, const std::vector<Landing> &pieces, const CoreOf &core_of)
      : rates_(rates), pieces_(pieces), all_(units(rates, pieces)) {
    run_of_.resize(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (i == 0 || pieces[i].to != end_of(i - 1)) first_of_run_.push_back(i);
      run_of_[i] = first_of_run_.size() - 1;
      by_core_.emplace_back(core_of(pieces[i]), i);
    }
    first_of_run_.push_back(pieces.size());
    std::sort(by_core_.begin(), by_core_.end());
  }

  // Units of work of pieces that are in order: of all of them, and of ends of what is contiguous.
  static std::int64_t units(const LoadRates &rates, const std::vector<Landing> &pieces) {
    if (pieces.empty()) return 0;
    std::int64_t units = rates.row, begin = pieces[0].to, end = begin;
    for (const Landing &each : pieces) {
      units += rates.packed(each.to, each.n);
      if (each.to != end) {
        units += rates.ragged_ends(begin, end);
        begin = each.to;
      }
      end = each.to + each.n;
    }
    return units + rates.ragged_ends(begin, end);
  }

  // Units of a core that does not scatter what it sent, but does pieces of its own, in order: runs are cut where its pieces
  // are left out, and joined where some of its own lie between them.
  template <class Piece>
  std::int64_t units_of(std::int32_t core, Piece own, Piece last_own) {
    segments_.clear();
    cut_.clear();
    auto sent = std::lower_bound(by_core_.begin(), by_core_.end(), std::pair(core, std::size_t{0}));
    const auto last = std::find_if(sent, by_core_.end(), [&](const auto &each) { return each.first != core; });
    if (own == last_own && static_cast<std::size_t>(last - sent) == pieces_.size()) return 0;
    std::int64_t result = pieces_.empty() ? rates_.row : all_;
    while (sent != last) {
      const std::size_t run = run_of_[sent->second], end = first_of_run_[run + 1];
      std::size_t kept = first_of_run_[run];
      result -= rates_.ragged_ends(pieces_[kept].to, end_of(end - 1));
      cut_.push_back(run);
      for (; sent != last && run_of_[sent->second] == run; ++sent) {
        const Landing &piece = pieces_[sent->second];
        result -= rates_.packed(piece.to, piece.n);
        if (kept < sent->second) segments_.emplace_back(pieces_[kept].to, piece.to);
        kept = sent->second + 1;
      }
      if (kept < end) segments_.emplace_back(pieces_[kept].to, end_of(end - 1));
    }
    const std::size_t n_cut = cut_.size();
    for (; own != last_own; ++own) {
      result += rates_.packed(own->to, own->n);
      segments_.emplace_back(own->to, own->to + own->n);
      const auto behind = std::upper_bound(first_of_run_.begin(), first_of_run_.end() - 1, own->to,
                                           [&](std::int64_t to, std::size_t first) { return to < pieces_[first].to; });
      const auto run = static_cast<std::size_t>(behind - first_of_run_.begin());
      if (run > 0 && end_of(first_of_run_[run] - 1) == own->to) result -= joined(run - 1, n_cut);
      if (run + 1 < first_of_run_.size() && pieces_[*behind].to == own->to + own->n) result -= joined(run, n_cut);
    }
    std::sort(segments_.begin(), segments_.end());
    for (std::size_t i = 0; i < segments_.size();) {
      const std::int64_t begin = segments_[i].first;
      std::int64_t end = segments_[i].second;
      for (++i; i < segments_.size() && segments_[i].first == end; ++i) end = segments_[i].second;
      result += rates_.ragged_ends(begin, end);
    }
    return result;
  }

 private:
  // A run that a core's own pieces go on with, unless it was cut or joined before: its ends do not count, it is a segment.
  std::int64_t joined(std::size_t run, std::size_t n_cut) {
    if (std::binary_search(cut_.begin(), cut_.begin() + static_cast<std::ptrdiff_t>(n_cut), run) ||
        (cut_.size() > n_cut && cut_.back() >= run))
      return 0;  // They are asked for in order.
    cut_.push_back(run);
    const std::int64_t begin = pieces_[first_of_run_[run]].to, end = end_of(first_of_run_[run + 1] - 1);
    segments_.emplace_back(begin, end);
    return rates_.ragged_ends(begin, end);
  }

  std::int64_t end_of(std::size_t piece) const { return pieces_[piece].to + pieces_[piece].n; }

  const LoadRates &rates_;
  const std::vector<Landing> &pieces_;
  std::int64_t all_;
  std::vector<std::size_t> run_of_, first_of_run_;
  std::vector<std::pair<std::int32_t, std::size_t>> by_core_;
  std::vector<std::size_t> cut_;
  std::vector<std::pair<std::int64_t, std::int64_t>> segments_;
};

}  // namespace t10
