// Counting what moves when every core fetches the elements it wants from where they lie, run by run.
//
// What a core takes from itself is not counted; a fragment ends where the sender, its copy of the value or the order
// of slots changes; an element that several cores take is sent once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../../core/phase_loads.h"
#include "partition_cells.h"
#include "element_locator.h"

namespace t10 {

// A value read through views: element e is element `ids[e]` of all sources laid end to end, constant -1 - `ids[e]` if
// negative, of which 0 is what lies outside tensors. Kept as runs of one constant or in which ids count up in one source,
// so that views that keep rows together take next to no memory.
class ViewRuns {
 public:
  ViewRuns(const std::int32_t *ids, std::size_t n_elements, const Ints &sizes) : size_(static_cast<Int>(n_elements)) {
    Ints first{0};
    for (const Int size : sizes) first.push_back(first.back() + size);
    if (first.back() > std::numeric_limits<std::int32_t>::max() || size_ > std::numeric_limits<std::int32_t>::max())
      throw std::invalid_argument("ViewRuns: 2^31 elements and more are not supported");
    Int end = 0;
    for (Int e = 0; e < size_; ++e) {
      const Int id = ids[e];
      if (id >= first.back()) throw std::invalid_argument("ViewRuns: an element is none of any source");
      const Int before = e > 0 ? ids[e - 1] : 0;
      // Constants go on with the same, elements with the next one of the same source.
      if (e > 0 && (id < 0 ? before == id : before >= 0 && id == before + 1 && id < end)) continue;
      starts_.push_back(static_cast<std::int32_t>(e));
      ids_.push_back(static_cast<std::int32_t>(id));
      if (id >= 0) end = *std::upper_bound(first.begin(), first.end(), id);
    }
    starts_.push_back(static_cast<std::int32_t>(size_));
    index_runs();
    note_repeats();
  }

  Int size() const { return size_; }

  // Whether some element of a source is read twice.
  bool repeats() const { return repeats_; }

  // The id of an element, and how many elements from it on have ids that count up in one source.
  std::pair<Int, Int> find(Int element) const {
    auto run = static_cast<std::size_t>(run_of_block_[static_cast<std::size_t>(element >> shift_)]);
    while (starts_[run + 1] <= element) ++run;
    const Int id = ids_[run];
    return {id < 0 ? id : id + element - starts_[run], starts_[run + 1] - element};
  }

 private:
  // Blocks of elements of a power of two, about as many as runs: the run of an element is a few runs behind its block's.
  void index_runs() {
    const auto n_runs = static_cast<Int>(ids_.size());
    while ((size_ >> shift_) > n_runs) ++shift_;
    run_of_block_.resize(static_cast<std::size_t>((size_ >> shift_) + 1));
    std::size_t run = 0;
    for (std::size_t block = 0; block < run_of_block_.size(); ++block) {
      const Int element = static_cast<Int>(block) << shift_;
      while (run + 2 < starts_.size() && starts_[run + 1] <= element) ++run;
      run_of_block_[block] = static_cast<std::int32_t>(run);
    }
  }

  void note_repeats() {
    std::vector<std::pair<Int, Int>> read;
    for (std::size_t run = 0; run < ids_.size(); ++run)
      if (ids_[run] >= 0) read.emplace_back(ids_[run], Int{ids_[run]} + starts_[run + 1] - starts_[run]);
    std::sort(read.begin(), read.end());
    for (std::size_t i = 1; i < read.size(); ++i) repeats_ |= read[i].first < read[i - 1].second;
  }

  Int size_;
  int shift_ = 0;
  bool repeats_ = false;
  std::vector<std::int32_t> starts_;
  std::vector<std::int32_t> ids_;
  std::vector<std::int32_t> run_of_block_;
};

struct Counts {
  Int received = 0;
  Int sent = 0;
  Int fragments = 0;
  Int total = 0;
  Int copied = 0;
  Loads loads;
};

// How elements become bytes: what moving them costs, their size, whether slots outside the tensor are filled, and where all lies.
struct Pricing {
  LoadRates rates;
  Int item_bytes;
  bool is_padded;
  Places places;
};

// Which slots of a home have been sent, one row of bits per core; rows nobody took from cost nothing.
class SentSlots {
 public:
  explicit SentSlots(const ElementLocator &home)
      : words_(static_cast<std::size_t>((home.n_slots + 63) / 64)),
        is_taken_(static_cast<std::size_t>(home.n_cores()), 0),
        bits_(new std::uint64_t[words_ * static_cast<std::size_t>(home.n_cores())]) {}

  void mark(Int core, Int slot, Int length) {
    std::uint64_t *row = bits_.get() + static_cast<std::size_t>(core) * words_;
    if (is_taken_[static_cast<std::size_t>(core)] == 0) {
      is_taken_[static_cast<std::size_t>(core)] = 1;
      std::fill_n(row, words_, std::uint64_t{0});
    }
    auto word = static_cast<std::size_t>(slot >> 6);
    const auto offset = static_cast<unsigned>(slot & 63);
    const Int here = std::min<Int>(length, 64 - static_cast<Int>(offset));
    row[word] |= ones(here) << offset;
    for (length -= here; length > 0; length -= 64) row[++word] |= ones(std::min<Int>(length, 64));
  }

  void add_to(Ints &sent) const {
    for (std::size_t core = 0; core < is_taken_.size(); ++core) {
      if (is_taken_[core] == 0) continue;
      for (std::size_t word = 0; word < words_; ++word)
        sent[core] += __builtin_popcountll(bits_[core * words_ + word]);
    }
  }

 private:
  static std::uint64_t ones(Int count) { return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1; }

  std::size_t words_;
  std::vector<std::uint8_t> is_taken_;
  std::unique_ptr<std::uint64_t[]> bits_;
};

class MoveCounter {
 public:
  // Without `pricing`, loads are not counted.
  MoveCounter(const PartitionCells &wanted, std::vector<std::shared_ptr<const ElementLocator>> homes, const ViewRuns *view,
              const std::optional<Pricing> &pricing)
      : wanted_(wanted), homes_(std::move(homes)), view_(view), is_padded_(pricing && pricing->is_padded) {
    Int n_elements = 0;
    Int n_rows = wanted.n_cores;
    for (const auto &home : homes_) {
      first_.push_back(n_elements);
      n_elements += home->cells().n_elements;
      n_rows = std::max(n_rows, home->n_cores());
      sent_.emplace_back(*home);
    }
    first_.push_back(n_elements);
    if (homes_.empty() || (view_ == nullptr ? n_elements : view_->size()) < wanted.n_elements)
      throw std::invalid_argument("count: a slot wants an element that no home has");
    own_.resize(static_cast<std::size_t>(n_rows));
    if (wanted.n_slots >= (Int{1} << 32))
      throw std::invalid_argument("count: operands of 2^32 slots and more are not supported");
    if (pricing) {
      item_bytes_ = pricing->item_bytes;
      loads_.emplace(pricing->rates, pricing->item_bytes, n_rows, pricing->places);
    }
  }

  // What all cores fetch, their transfers scheduled. With a budget, transfers are not, and once more pieces were looked at,
  // this is what some of the cores fetch, of each up to about `most_pieces` or the budget, if that is more: no number is
  // above what it is without.
  Counts count(const std::optional<Int> &budget, Int most_pieces = 0) {
    const Groups groups = all_groups();
    const std::size_t n = groups.size();
    const std::size_t stride = spread(n);
    std::size_t n_counted = 0;
    bool is_cut = false;
    // Far apart from each other, so that those counted first stand for all.
    for (std::size_t group = n - 1; n_counted < n; ++n_counted, group = (group + stride) % n) {
      if (n_counted >= kLeastGroups && budget && n_pieces_ > *budget) break;
      const Int most = budget ? std::max(*budget, most_pieces) : std::numeric_limits<Int>::max() - n_pieces_;
      is_cut |= !count_group(groups.begin(group), groups.size(group), n_pieces_ + most);
    }
    Ints sent(own_.size(), 0);
    for (const SentSlots &slots : sent_) slots.add_to(sent);
    counts_.sent = *std::max_element(sent.begin(), sent.end());
    sent_.clear();
    if (loads_) counts_.loads = n_counted == n && !is_cut ? loads_->finish(!budget) : loads_->finish_some(sent);
    return counts_;
  }

 private:
  static constexpr std::size_t kLeastGroups = 8;
  static constexpr Int kWholeBytes = 8;
  static constexpr Int kOutside = 0;

  struct Last {
    std::size_t source = 0;
    Int core = -1;
    Int slot = -1;
    Int here = -1;
  };

  // What is taken from a core: what it has itself, if it is one of those that take. Counts of others are never read.
  struct Own {
    Int elements = 0;
    Int fragments = 0;
  };

  // Cores that want the same elements and read the same copies.
  Groups all_groups() const {
    const auto n = static_cast<std::size_t>(wanted_.n_cores);
    std::size_t n_groups = wanted_.groups.size();
    std::vector<std::int32_t> group;
    Ints keys;
    for (const auto &home : homes_) {
      if (home->n_copies == 1) continue;
      if (group.empty()) group = wanted_.group_of_core;
      keys.resize(n);
      for (std::size_t core = 0; core < n; ++core)
        keys[core] = group[core] * home->n_copies + home->choice(static_cast<Int>(core));
      n_groups = number_keys(keys, static_cast<Int>(n_groups) * home->n_copies, group);
    }
    return group.empty() ? wanted_.groups : Groups(group, n_groups);
  }

  // A stride that visits all of `n` and keeps every prefix of the visit spread out: near the golden section.
  static std::size_t spread(std::size_t n) {
    std::size_t stride = std::max<std::size_t>(1, n * 618 / 1000);
    while (std::gcd(stride, n) != 1) ++stride;
    return stride;
  }

  // What is known of whether these cores and their partners take the same.
  Pairing pairing(const std::int32_t *cores, std::size_t n_members) const {
    const bool is_exclusive = wanted_.is_exclusive && (view_ == nullptr || !view_->repeats());
    const auto is_paired = [&](std::int32_t core) {
      const std::int32_t other = partner(core);
      if (other >= wanted_.n_cores) return false;
      return is_exclusive ? std::binary_search(cores, cores + n_members, other)
                          : (view_ != nullptr && view_->repeats()) || wanted_.overlap(core, other);
    };
    if (std::none_of(cores, cores + n_members, is_paired)) return Pairing::never;
    return is_exclusive ? Pairing::within : Pairing::perhaps;
  }

  // Counts what some cores fetch that fetch the same. Returns whether all of it, up to a number of pieces.
  bool count_group(const std::int32_t *cores, std::size_t n_members, Int most_pieces) {
    // What several cores take is sent in any case: whoever has it, another one wants it.
    const Int self = n_members == 1 ? cores[0] : -1;
    Ints copies;
    for (const auto &home : homes_) copies.push_back(home->choice(cores[0]));
    if (n_members > 1) {
      for (std::size_t i = 0; i < n_members; ++i) own_[static_cast<std::size_t>(cores[i])] = {};
    }
    Int n_received = 0;
    Int n_fragments = 0;
    Last last;
    Int next = 0;
    bool is_cut = false;
    if (loads_) loads_->begin_group(cores, n_members, pairing(cores, n_members));
    wanted_.walk(cores[0], [&](Int here, Int element, Int length) {
      // Not inside a word, of which what is left out may be the rest.
      is_cut |= n_pieces_ >= most_pieces && next * item_bytes_ % kWholeBytes == 0;
      if (is_cut) return;
      if (is_padded_ && next < here) loads_->fill(kOutside, next, here - next);
      next = here + length;
      while (length > 0) {
        Int id = element;
        Int n = length;
        if (view_ != nullptr) {
          const auto [found, left] = view_->find(element);
          id = found;
          n = std::min(n, left);
        }
        if (id >= 0) {
          std::size_t source = 0;
          while (id >= first_[source + 1]) ++source;
          const SlotRun place = homes_[source]->find(copies[source], id - first_[source]);
          n = std::min(n, place.length);
          if (loads_ && place.core >= 0) loads_->take(static_cast<Int>(source), place.core, place.slot, here, n);
          if (place.core >= 0 && place.core != self) {
            const bool is_joined = last.core == place.core && last.slot == place.slot && last.here == here &&
                                   last.source == source;
            last = {source, place.core, place.slot + n, here + n};
            sent_[source].mark(place.core, place.slot, n);
            n_received += n;
            n_fragments += is_joined ? 0 : 1;
            if (n_members > 1) {
              Own &own = own_[static_cast<std::size_t>(place.core)];
              own.elements += n;
              own.fragments += is_joined ? 0 : 1;
            }
          }
        } else if (loads_) {
          loads_->fill(-1 - id, here, n);
        }
        ++n_pieces_;
        here += n;
        element += n;
        length -= n;
      }
    });
    if (is_cut && loads_) loads_->cut_group();
    if (!is_cut && is_padded_ && next < wanted_.n_slots) loads_->fill(kOutside, next, wanted_.n_slots - next);
    for (std::size_t i = 0; i < n_members; ++i) {
      const auto core = static_cast<std::size_t>(cores[i]);
      const Int received = n_members > 1 ? n_received - own_[core].elements : n_received;
      const Int fragments = n_members > 1 ? n_fragments - own_[core].fragments : n_fragments;
      counts_.received = std::max(counts_.received, received);
      counts_.fragments = std::max(counts_.fragments, fragments);
      counts_.total += received;
      if (!is_cut) counts_.copied = std::max(counts_.copied, wanted_.n_taken - received);
    }
    return !is_cut;
  }

  const PartitionCells &wanted_;
  std::vector<std::shared_ptr<const ElementLocator>> homes_;
  const ViewRuns *view_;
  bool is_padded_;
  Int item_bytes_ = 0;
  std::optional<PhaseLoads> loads_;
  Ints first_;
  std::vector<SentSlots> sent_;
  std::vector<Own> own_;
  Int n_pieces_ = 0;
  Counts counts_;
};

// Whether every core wants exactly the slots it has, slot by slot; `home` holds the elements that are wanted.
inline bool lies_in_place(const PartitionCells &wanted, const ElementLocator &home) {
  const PartitionCells &lies = home.cells();
  if (wanted.n_cores != lies.n_cores || wanted.n_slots != home.n_slots) return false;
  struct Run {
    Int slot;
    Int element;
    Int length;
    bool operator==(const Run &other) const {
      return slot == other.slot && element == other.element && length == other.length;
    }
  };
  const auto append = [](std::vector<Run> &runs, Int slot, Int element, Int length) {
    if (!runs.empty() && runs.back().slot + runs.back().length == slot &&
        runs.back().element + runs.back().length == element)
      runs.back().length += length;
    else
      runs.push_back({slot, element, length});
  };
  std::vector<Run> wanted_runs;
  std::vector<Run> lies_runs;
  for (Int core = 0; core < wanted.n_cores; ++core) {
    wanted_runs.clear();
    lies_runs.clear();
    wanted.walk(core, [&](Int slot, Int element, Int length) { append(wanted_runs, slot, element, length); });
    const Int first = home.chunk_of(core) * home.n_slots;
    lies.walk(core, [&](Int slot, Int element, Int length) {
      const Int from = std::max(slot, first);
      const Int to = std::min(slot + length, first + home.n_slots);
      if (from < to) append(lies_runs, from - first, element + from - slot, to - from);
    });
    if (wanted_runs != lies_runs) return false;
  }
  return true;
}

}  // namespace t10
