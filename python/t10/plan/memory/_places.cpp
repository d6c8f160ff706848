// t10.plan.memory._places: the best free bytes for blocks, by the wishes that they break there (see _places.pyi).
//
// A block may begin where a gap between the blocks alive with it begins or ends, and where memory elements begin or end
// inside it. All is arithmetic of whole numbers: the same places on every machine.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace {

using Number = std::int64_t;
using Numbers = std::vector<Number>;
using Starts = nb::ndarray<Number, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Number rounded_down(Number value, Number step) {
  const Number rest = value % step;
  return value - (rest < 0 ? rest + step : rest);
}

// A core's memory: from `bottom` to `top` for blocks, interleaved from `plain` on.
struct Memory {
  Number bottom, top, plain, element, interleaved, alignment, overread;

  Number element_at(Number offset) const {
    return offset < plain ? offset / element : plain / element + (offset - plain) / interleaved;
  }

  // The first and the last element that reading `size` bytes from `begin` on touches.
  std::pair<Number, Number> elements(Number begin, Number size) const {
    return {element_at(begin), element_at(std::max(begin, begin + size + overread - 1))};
  }

  // Where elements begin.
  Numbers borders() const {
    Numbers result;
    for (Number at = 0; at < plain; at += element) result.push_back(at);
    for (Number at = plain; at <= std::max(top, plain); at += interleaved) result.push_back(at);
    return result;
  }
};

struct Gap {
  Number low, high;
};

struct Partner {
  std::size_t block;
  Number weight;
};

// What a candidate is compared by: less is better. Among the best, one in few elements leaves others more of them.
using Rank = std::tuple<Number, bool, Number, Number>;  // weight of broken wishes, not interleaved, elements, start

Memory memory_of(const Numbers &n) {
  if (n.size() != 7) throw std::invalid_argument("Blocks: a memory is seven numbers");
  for (std::size_t i = 3; i < 6; ++i)
    if (n[i] <= 0) throw std::invalid_argument("Blocks: elements and alignment take bytes");
  return {n[0], n[1], n[2], n[3], n[4], n[5], n[6]};
}

class Blocks {
 public:
  Blocks(Numbers first, Numbers last, Numbers size, Numbers alone, const std::vector<Numbers> &wishes,
         const Numbers &memory)
      : first_(std::move(first)), last_(std::move(last)), size_(std::move(size)), alone_(std::move(alone)),
        memory_(memory_of(memory)), borders_(memory_.borders()), partners_(size_.size()), place_(size_.size(), kNone) {
    const std::size_t n = size_.size();
    if (first_.size() != n || last_.size() != n || alone_.size() != n)
      throw std::invalid_argument("Blocks: every block has a life, a size and a wish");
    for (const Numbers &wish : wishes) {
      if (wish.size() != 3) throw std::invalid_argument("Blocks: a wish is two blocks and a weight");
      const auto one = checked(wish[0]), other = checked(wish[1]);
      pairs_.push_back({one, other, wish[2]});
      partners_[one].push_back({other, wish[2]});
      partners_[other].push_back({one, wish[2]});
    }
  }

  bool fill(Starts starts, const Numbers &order) {
    begin(starts);
    for (const Number each : order) {
      const std::size_t block = checked(each);
      if (place_[block] != kNone) continue;
      const auto found = best(block);
      if (!found) return false;
      put(block, std::get<3>(*found));
      starts.data()[block] = std::get<3>(*found);
    }
    return true;
  }

  void move(Starts starts, int rounds) {
    begin(starts);
    for (bool has_moved = true; has_moved && rounds > 0; --rounds) {
      has_moved = false;
      for (const std::size_t block : broken(starts)) {
        const Number now = price_of(block, place_[block]);
        if (!now) continue;
        const Number before = place_[block];
        take(block);
        const auto found = best(block);
        const bool is_better = found && std::get<0>(*found) < now;
        put(block, is_better ? std::get<3>(*found) : before);
        starts.data()[block] = place_[block];
        has_moved |= is_better;
      }
    }
  }

  void repack(Starts starts, Number most_tries) {
    begin(starts);
    std::vector<std::pair<Number, std::size_t>> order;
    for (const std::size_t block : broken(starts))
      if (life(block) <= kShortLife) order.emplace_back(-price_of(block, place_[block]), block);
    std::sort(order.begin(), order.end());
    for (const auto &[price, block] : order)
      if (price_of(block, place_[block]) >= kWorthRepacking) repack_around(block, most_tries);
    std::copy(place_.begin(), place_.end(), starts.data());
  }

  Number penalty(Starts starts) const {
    check(starts);
    Number total = 0;
    const Number *start = starts.data();
    for (const Pair &pair : pairs_)
      if (start[pair.one] >= 0 && start[pair.other] >= 0 && shares(pair, start)) total += pair.weight;
    for (std::size_t block = 0; block < size_.size(); ++block)
      if (start[block] >= 0 && start[block] < memory_.plain) total += alone_[block];
    return total;
  }

  std::vector<std::size_t> broken(Starts starts) const {
    check(starts);
    const Number *start = starts.data();
    std::vector<bool> is_broken(size_.size());
    for (const Pair &pair : pairs_)
      if (shares(pair, start)) is_broken[pair.one] = is_broken[pair.other] = true;
    std::vector<std::size_t> result;
    for (std::size_t block = 0; block < size_.size(); ++block)
      if (is_broken[block] || (alone_[block] > 0 && start[block] < memory_.plain)) result.push_back(block);
    return result;
  }

 private:
  static constexpr Number kNone = -1;
  // Blocks that live longer have too many others around them: each order of those leaves something else broken.
  static constexpr Number kShortLife = 64;
  static constexpr std::size_t kMostRepacked = 7;
  // Cycles; many wishes weigh one, for nothing is lost without them.
  static constexpr Number kWorthRepacking = 32;

  struct Pair {
    std::size_t one, other;
    Number weight;
  };

  std::size_t checked(Number block) const {
    if (block < 0 || static_cast<std::size_t>(block) >= size_.size()) throw std::out_of_range("Blocks: no such block");
    return static_cast<std::size_t>(block);
  }

  void check(const Starts &starts) const {
    if (starts.shape(0) != size_.size()) throw std::invalid_argument("Blocks: every block has a start, or -1");
  }

  // Takes the places of blocks that have some.
  void begin(const Starts &starts) {
    check(starts);
    by_place_.clear();
    for (std::size_t block = 0; block < size_.size(); ++block) {
      place_[block] = starts.data()[block];
      if (place_[block] >= 0) by_place_.emplace_back(place_[block], block);
    }
    std::sort(by_place_.begin(), by_place_.end());
  }

  void put(std::size_t block, Number start) {
    const std::pair<Number, std::size_t> placed{place_[block] = start, block};
    by_place_.insert(std::lower_bound(by_place_.begin(), by_place_.end(), placed), placed);
  }

  void take(std::size_t block) {
    const std::pair<Number, std::size_t> placed{place_[block], block};
    by_place_.erase(std::lower_bound(by_place_.begin(), by_place_.end(), placed));
    place_[block] = kNone;
  }

  bool shares(const Pair &pair, const Number *start) const {
    const auto [low, high] = memory_.elements(start[pair.one], size_[pair.one]);
    const auto [other_low, other_high] = memory_.elements(start[pair.other], size_[pair.other]);
    return low <= other_high && other_low <= high;
  }

  // The weight of a block's wishes that are broken where it begins at `start`.
  Number price_of(std::size_t block, Number start) const {
    const auto [low, high] = memory_.elements(start, size_[block]);
    Number total = start < memory_.plain ? alone_[block] : 0;
    for (const Partner &partner : partners_[block]) {
      if (place_[partner.block] == kNone) continue;
      const auto [other_low, other_high] = memory_.elements(place_[partner.block], size_[partner.block]);
      if (low <= other_high && other_low <= high) total += partner.weight;
    }
    return total;
  }

  Number life(std::size_t block) const { return last_[block] - first_[block]; }

  bool are_alive_together(std::size_t one, std::size_t other) const {
    return first_[other] <= last_[one] && last_[other] >= first_[one];
  }

  // A block, those with which its wishes are broken, and the most short-lived that are alive with any of these.
  std::vector<std::size_t> around(std::size_t block) const {
    std::vector<std::size_t> result{block};
    const auto has = [&](std::size_t other) { return std::find(result.begin(), result.end(), other) != result.end(); };
    for (const Partner &partner : partners_[block]) {
      const std::size_t other = partner.block;
      if (result.size() < kMostRepacked && place_[other] != kNone && life(other) <= kShortLife && !has(other) &&
          shares({block, other, partner.weight}, place_.data()))
        result.push_back(other);
    }
    std::vector<std::tuple<Number, Number, std::size_t>> others;
    for (const auto &[start, other] : by_place_)
      if (life(other) <= kShortLife && !has(other) &&
          std::any_of(result.begin(), result.end(), [&](std::size_t one) { return are_alive_together(one, other); }))
        others.emplace_back(life(other), -size_[other], other);
    std::sort(others.begin(), others.end());
    for (const auto &[life, size, other] : others)
      if (result.size() < kMostRepacked) result.push_back(other);
    // The largest first: they leave the fewest orders.
    std::sort(result.begin(), result.end(), [&](std::size_t one, std::size_t other) {
      return std::pair(-size_[one], one) < std::pair(-size_[other], other);
    });
    return result;
  }

  // Puts a block and those around it where they break least, in as many orders as may be tried.
  void repack_around(std::size_t block, Number most_tries) {
    Repacked repacked{around(block), {}, 0, most_tries};
    std::vector<Number> before;
    for (const std::size_t each : repacked.blocks) {
      before.push_back(place_[each]);
      take(each);
    }
    repacked.best = before;
    for (std::size_t i = 0; i < before.size(); ++i) {
      repacked.price += price_of(repacked.blocks[i], before[i]);
      place_[repacked.blocks[i]] = before[i];
    }
    for (const std::size_t each : repacked.blocks) place_[each] = kNone;
    std::vector<std::pair<Number, std::size_t>> rest;
    for (const auto &[start, other] : by_place_)
      if (std::any_of(repacked.blocks.begin(), repacked.blocks.end(),
                      [&](std::size_t one) { return are_alive_together(one, other); }))
        rest.emplace_back(start, other);
    rest.swap(by_place_);
    try_orders(repacked, 0);
    rest.swap(by_place_);
    for (std::size_t i = 0; i < before.size(); ++i) put(repacked.blocks[i], repacked.best[i]);
  }

  struct Repacked {
    std::vector<std::size_t> blocks;
    Numbers best;  // the starts of the blocks that break least
    Number price;  // the weight of what they break
    Number tries_left;
  };

  // Puts what is left of some blocks, each as low or as high as it can be; `price` is what the others break.
  void try_orders(Repacked &repacked, Number price) {
    bool is_full = true;
    for (const std::size_t block : repacked.blocks) {
      if (place_[block] != kNone) continue;
      is_full = false;
      find_gaps(block);
      if (gaps_.empty()) return;
      const Number low = gaps_.front().low;
      const Number high = rounded_down(gaps_.back().high - size_[block], memory_.alignment);
      for (const Number start : {low, high}) {
        const Number so_far = price + price_of(block, start);
        if (so_far >= repacked.price || repacked.tries_left-- <= 0) continue;
        put(block, start);
        try_orders(repacked, so_far);
        take(block);
        if (high == low) break;
      }
    }
    if (!is_full) return;
    repacked.price = price;
    for (std::size_t i = 0; i < repacked.blocks.size(); ++i) repacked.best[i] = place_[repacked.blocks[i]];
  }

  // The gaps that a block fits in, between blocks that are alive with it.
  void find_gaps(std::size_t block) {
    gaps_.clear();
    Number end = memory_.bottom;
    for (const auto &[start, other] : by_place_) {
      if (!are_alive_together(block, other)) continue;
      if (start - end >= size_[block]) gaps_.push_back({end, start});
      end = std::max(end, start + size_[other]);
    }
    if (memory_.top - end >= size_[block]) gaps_.push_back({end, memory_.top});
  }

  // Where a block may begin: at the ends of gaps, and where elements begin or end between.
  void find_candidates(Number size) {
    candidates_.clear();
    for (const Gap &gap : gaps_) {
      candidates_.push_back(gap.low);
      candidates_.push_back(rounded_down(gap.high - size, memory_.alignment));
    }
    for (const Number border : borders_)
      for (const Number start : {border, rounded_down(border - memory_.overread - size, memory_.alignment)}) {
        const auto behind = std::upper_bound(gaps_.begin(), gaps_.end(), start,
                                             [](Number at, const Gap &gap) { return at < gap.low; });
        if (behind != gaps_.begin() && start + size <= std::prev(behind)->high) candidates_.push_back(start);
      }
    std::sort(candidates_.begin(), candidates_.end());
    candidates_.erase(std::unique(candidates_.begin(), candidates_.end()), candidates_.end());
  }

  // The best free bytes for a block that has none.
  std::optional<Rank> best(std::size_t block) {
    find_gaps(block);
    if (gaps_.empty()) return std::nullopt;
    find_candidates(size_[block]);
    std::optional<Rank> found;
    std::pair<Number, Number> priced{kNone, kNone};
    Number price = 0;
    for (const Number start : candidates_) {
      const auto touched = memory_.elements(start, size_[block]);
      // The interleaved region begins with an element of its own.
      if (touched != priced) price = price_of(block, start);
      priced = touched;
      const Rank rank{price, start < memory_.plain, touched.second - touched.first, start};
      if (!found || rank < *found) found = rank;
    }
    return found;
  }

  Numbers first_, last_, size_, alone_;
  Memory memory_;
  Numbers borders_;
  std::vector<std::vector<Partner>> partners_;
  std::vector<Pair> pairs_;
  // Where blocks begin while they are placed, and those that have places by them.
  Numbers place_;
  std::vector<std::pair<Number, std::size_t>> by_place_;
  std::vector<Gap> gaps_;
  Numbers candidates_;
};

}  // namespace

NB_MODULE(_places, module) {
  module.doc() = "Native placing of blocks of bytes (see _places.pyi for meanings and units).";
  nb::class_<Blocks>(module, "Blocks")
      .def(nb::init<Numbers, Numbers, Numbers, Numbers, const std::vector<Numbers> &, const Numbers &>(),
           nb::arg("first"), nb::arg("last"), nb::arg("size"), nb::arg("alone"), nb::arg("wishes"), nb::arg("memory"))
      .def("fill", &Blocks::fill, nb::arg("starts"), nb::arg("order"))
      .def("move", &Blocks::move, nb::arg("starts"), nb::arg("rounds"))
      .def("repack", &Blocks::repack, nb::arg("starts"), nb::arg("most_tries"))
      .def("penalty", &Blocks::penalty, nb::arg("starts"))
      .def("broken", &Blocks::broken, nb::arg("starts"));
}
