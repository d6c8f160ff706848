// The list schedule of exchange_schedule.h, and the ways of cutting transfers that are tried with it.
#include "exchange_schedule.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace t10 {

namespace {

// Waiting transfers of one port that are looked at: fewer in phases of more receivers in all.
constexpr std::size_t LOOK_AHEAD = 96, LOOK_AHEAD_MANY = 8, MANY_RECEIVERS = std::size_t{1} << 19;

// A schedule at most this much longer than its busiest port needs is good enough.
constexpr std::int64_t GOOD_NUMERATOR = 102, GOOD_DENOMINATOR = 100;

// Parts of the busiest port's time that transfers are cut into, the fewest cycles of a part, and the most parts that are
// worth looking at.
constexpr std::int64_t CUTS[] = {16, 48}, LEAST_CUT = 8;
constexpr std::size_t MOST_CUT = std::size_t{1} << 17;

struct Port {
  std::int64_t until = 0, left = 0;
  std::uint64_t mask = 0;
  std::vector<std::int32_t> waiting;
  std::size_t n_done = 0;
};

// How transfers are cut that take more than `most` cycles: between their fragments, further cuts cost fragments.
//
// Ports that wait for each other's long transfers to end, wait less where these come in parts.
struct Cut {
  std::int64_t most = std::numeric_limits<std::int64_t>::max(), fragment_cycles = 0;

  // What pairs take stays whole: parts might be too short for double words.
  std::int64_t n_parts(const Transfer &transfer) const { return transfer.is_paired ? 1 : 1 + (transfer.cycles - 1) / most; }
  std::int64_t fragments(const Transfer &transfer) const { return std::max(transfer.fragments, n_parts(transfer)); }
  std::int64_t cycles(const Transfer &transfer) const {
    return transfer.cycles + (fragments(transfer) - transfer.fragments) * fragment_cycles;
  }

  // Part `i` of a whole that is shared between `n` as evenly as it goes.
  static std::int64_t share(std::int64_t whole, std::int64_t i, std::int64_t n) {
    return whole * (i + 1) / n - whole * i / n;
  }
};

constexpr std::int64_t NO_LIMIT = std::numeric_limits<std::int64_t>::max();

class Scheduler {
 public:
  Scheduler(const std::vector<Transfer> &transfers, std::int64_t n_tiles, const Cut &cut = {})
      : transfers_(transfers), n_tiles_(n_tiles), cut_(cut), send_(n_tiles), receive_(n_tiles),
        n_begun_(transfers.size(), 0), earliest_(transfers.size(), 0) {
    std::size_t n_receivers = 0;
    for (const Transfer &each : transfers) {
      ring_ = std::max({ring_, each.source + 1, each.targets.back() + 1});
      n_receivers += each.targets.size();
    }
    if (n_receivers > MANY_RECEIVERS) look_ahead_ = LOOK_AHEAD_MANY;
  }

  // Given up, with `limit` cycles, where it would take as many or more.
  Schedule run(std::int64_t limit = NO_LIMIT) {
    Schedule result;
    enter();
    for (std::int64_t tile = 0; tile < n_tiles_; ++tile) {
      result.bound = std::max({result.bound, send_[tile].left, receive_[tile].left});
      result.sent.push_back(send_[tile].left);
      result.received.push_back(receive_[tile].left);
    }
    std::vector<std::int32_t> all(static_cast<std::size_t>(n_tiles_));
    std::iota(all.begin(), all.end(), 0);
    std::vector<std::int32_t> fresh = all;
    std::int64_t now = 0;
    while (true) {
      if (is_late(now, fresh, limit)) {
        result.cycles = limit;
        break;
      }
      start(now, fresh, result);
      // What waited beyond the look-ahead of its ports: all of them are free now.
      if (ends_.empty() && n_done_ < transfers_.size()) start(++now, all, result);
      if (ends_.empty()) break;
      now = ends_.top().first;
      fresh.clear();
      while (!ends_.empty() && ends_.top().first == now) {
        const Transfer &done = transfers_[ends_.top().second];
        fresh.push_back(done.source);
        if (has_other(done)) fresh.push_back(partner(done.source));
        fresh.insert(fresh.end(), done.targets.begin(), done.targets.end());
        ends_.pop();
      }
      std::sort(fresh.begin(), fresh.end());
      fresh.erase(std::unique(fresh.begin(), fresh.end()), fresh.end());
      result.cycles = now;
    }
    return result;
  }

 private:
  struct Candidate {
    std::int64_t left, cycles, distance;
    std::int32_t number;
    bool operator<(const Candidate &other) const {
      return std::tie(other.left, other.cycles, distance, number) <
             std::tie(left, cycles, other.distance, other.number);
    }
  };

  static constexpr std::int64_t STARTED = NO_LIMIT;

  std::int64_t distance(const Transfer &transfer) const {
    return (transfer.targets[0] - transfer.source + ring_) % ring_;
  }

  // Whether a port that is free now has so much left that the schedule will not end before `limit`.
  bool is_late(std::int64_t now, const std::vector<std::int32_t> &fresh, std::int64_t limit) const {
    return limit < NO_LIMIT && std::any_of(fresh.begin(), fresh.end(), [&](std::int32_t tile) {
             return now + std::max(send_[tile].left, receive_[tile].left) >= limit;
           });
  }

  // Queue every transfer at its ports, near targets first: tiles that all send to all then take turns.
  void enter() {
    std::vector<std::pair<std::int64_t, std::int32_t>> order;
    for (std::size_t i = 0; i < transfers_.size(); ++i) order.emplace_back(distance(transfers_[i]), std::int32_t(i));
    std::sort(order.begin(), order.end());
    for (const auto &[_, i] : order) {
      const Transfer &transfer = transfers_[i];
      const std::int64_t cycles = cut_.cycles(transfer);
      add(send_[transfer.source], i, cycles);
      if (has_other(transfer)) add(send_[partner(transfer.source)], i, cycles);
      for (const std::int32_t tile : transfer.targets) add(receive_[tile], i, cycles);
    }
  }

  // Whether a transfer needs the send port of its sender's partner.
  bool has_other(const Transfer &transfer) const {
    return transfer.is_paired && partner(transfer.source) < n_tiles_;
  }

  static void add(Port &port, std::int32_t number, std::int64_t cycles) {
    port.waiting.push_back(number);
    port.left += cycles;
  }

  // Until when one of its ports is busy or reads or writes what it needs, `now` or before if none.
  std::int64_t busy_until(const Transfer &transfer, std::int64_t now) const {
    const Port &own = send_[transfer.source], &back = receive_[transfer.source];
    if (own.until > now) return own.until;
    if (has_other(transfer) && send_[partner(transfer.source)].until > now) return send_[partner(transfer.source)].until;
    if ((back.mask & transfer.reads) != 0 && back.until > now) return back.until;
    for (std::size_t i = 0; i < transfer.targets.size(); ++i) {
      const Port &port = receive_[transfer.targets[i]];
      if (port.until > now) return port.until;
      if (transfer.writes[i] == 0) continue;
      const Port &other = send_[transfer.targets[i]];
      if ((other.mask & transfer.writes[i]) != 0 && other.until > now) return other.until;
    }
    return now;
  }

  void look(Port &port, std::int64_t now, std::vector<Candidate> &found) {
    if (port.n_done * 2 > port.waiting.size()) {
      port.waiting.erase(std::remove_if(port.waiting.begin(), port.waiting.end(),
                                        [&](std::int32_t i) { return earliest_[i] == STARTED; }),
                         port.waiting.end());
      port.n_done = 0;
    }
    std::size_t n = 0;
    for (const std::int32_t i : port.waiting) {
      std::int64_t &earliest = earliest_[i];
      if (earliest == STARTED) continue;
      if (++n > look_ahead_) return;
      if (earliest > now) continue;
      const Transfer &transfer = transfers_[i];
      const std::int64_t until = busy_until(transfer, now);
      // What is found now is not looked at again before something else begins or time goes on.
      earliest = std::max(until, now + 1);
      if (until > now) continue;
      std::int64_t left = send_[transfer.source].left;
      if (has_other(transfer)) left = std::max(left, send_[partner(transfer.source)].left);
      for (const std::int32_t tile : transfer.targets) left = std::max(left, receive_[tile].left);
      found.push_back({left, next_cycles(i), distance(transfer), i});
    }
  }

  void start(std::int64_t now, const std::vector<std::int32_t> &fresh, Schedule &result) {
    found_.clear();
    for (const std::int32_t tile : fresh) {
      // A port that became free also lets the other port of its tile go on where both need one memory element.
      if (send_[tile].until <= now) look(send_[tile], now, found_);
      if (receive_[tile].until <= now) look(receive_[tile], now, found_);
    }
    std::sort(found_.begin(), found_.end());
    for (const Candidate &candidate : found_) {
      const Transfer &transfer = transfers_[candidate.number];
      if (const std::int64_t until = busy_until(transfer, now); until > now) {
        earliest_[candidate.number] = until;
        continue;
      }
      const std::int64_t n = cut_.n_parts(transfer), cycles = candidate.cycles, end = now + cycles;
      std::int64_t &number = n_begun_[candidate.number];
      result.parts.push_back({candidate.number, now, cycles, Cut::share(cut_.fragments(transfer), number, n)});
      const bool is_last = ++number == n;
      earliest_[candidate.number] = is_last ? STARTED : end;
      n_done_ += is_last ? 1 : 0;
      occupy(send_[transfer.source], end, cycles, transfer.reads, is_last);
      if (has_other(transfer)) occupy(send_[partner(transfer.source)], end, cycles, 0, is_last);
      for (std::size_t i = 0; i < transfer.targets.size(); ++i) {
        occupy(receive_[transfer.targets[i]], end, cycles, transfer.writes[i], is_last);
      }
      ends_.push({end, candidate.number});
    }
  }

  static void occupy(Port &port, std::int64_t end, std::int64_t cycles, std::uint64_t mask, bool is_last) {
    port.until = end;
    port.left -= cycles;
    port.mask = mask;
    port.n_done += is_last ? 1 : 0;
  }

  // Cycles of a transfer's next part.
  std::int64_t next_cycles(std::int32_t i) const {
    return Cut::share(cut_.cycles(transfers_[i]), n_begun_[i], cut_.n_parts(transfers_[i]));
  }

  using End = std::pair<std::int64_t, std::int32_t>;

  const std::vector<Transfer> &transfers_;
  std::int64_t n_tiles_;
  Cut cut_;
  std::size_t look_ahead_ = LOOK_AHEAD;
  std::int32_t ring_ = 1;  // tiles up to the last one that takes part: how many a chip has beyond decides nothing
  std::vector<Port> send_, receive_;
  std::vector<std::int64_t> n_begun_;   // parts of every transfer
  std::vector<std::int64_t> earliest_;  // when to look at a transfer again
  std::vector<Candidate> found_;
  std::size_t n_done_ = 0;
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends_;
};

// Return transfers in which tiles that have the time send one by one what they would send to several at once.
//
// A multicast needs all its receivers free together and its sender then receives nothing: among n tiles that all send to
// all, multicasts keep every receiver busy (n - 1) / n of the time, transfers one by one always.
std::vector<Transfer> taken_apart(const std::vector<Transfer> &transfers, std::int64_t n_tiles,
                                         std::int64_t bound) {
  std::vector<std::int64_t> alone(n_tiles, 0);
  for (const Transfer &each : transfers)
    alone[each.source] += each.cycles * std::int64_t(each.targets.size() / each.n_together());
  std::vector<Transfer> result;
  for (const Transfer &each : transfers) {
    const std::size_t n = each.n_together();
    if (each.targets.size() <= n || alone[each.source] > bound) {
      result.push_back(each);
      continue;
    }
    for (std::size_t i = 0; i < each.targets.size(); i += n) {
      Transfer one = each;
      one.targets.assign(each.targets.begin() + std::ptrdiff_t(i), each.targets.begin() + std::ptrdiff_t(i + n));
      one.writes.assign(each.writes.begin() + std::ptrdiff_t(i), each.writes.begin() + std::ptrdiff_t(i + n));
      result.push_back(std::move(one));
    }
  }
  return result;
}

bool is_good(const Schedule &schedule, std::int64_t bound) {
  return schedule.cycles * GOOD_DENOMINATOR <= bound * GOOD_NUMERATOR;
}

// Schedule transfers as they are, cut, or taken apart; `transfers` become those that were scheduled.
Schedule best_variant(std::vector<Transfer> &transfers, std::int64_t n_tiles, std::int64_t fragment_cycles) {
  Schedule best = Scheduler(transfers, n_tiles).run();
  const std::int64_t bound = best.bound;
  const auto attempt = [&](const std::vector<Transfer> &others, const Cut &cut) {
    std::size_t n_parts = 0;
    for (const Transfer &each : others) n_parts += static_cast<std::size_t>(cut.n_parts(each));
    if (n_parts == transfers.size() || n_parts > MOST_CUT) return false;
    Schedule found = Scheduler(others, n_tiles, cut).run(best.cycles);
    if (found.cycles >= best.cycles) return false;
    best = std::move(found);
    return true;
  };
  if (!is_good(best, bound)) {
    std::vector<Transfer> apart = taken_apart(transfers, n_tiles, bound);
    if (attempt(apart, {})) transfers = std::move(apart);
  }
  for (const std::int64_t cuts : CUTS)
    if (!is_good(best, bound)) attempt(transfers, {std::max<std::int64_t>(bound / cuts, LEAST_CUT), fragment_cycles});
  best.bound = bound;
  return best;
}

}  // namespace

Schedule best_schedule(std::vector<Transfer> &transfers, std::int64_t n_tiles, std::int64_t fragment_cycles) {
  std::vector<Transfer> paired = with_pairs(transfers, n_tiles);
  if (paired.empty()) return best_variant(transfers, n_tiles, fragment_cycles);
  Schedule best = best_variant(paired, n_tiles, fragment_cycles);
  if (best.cycles > busiest_port(transfers, n_tiles)) {
    Schedule found = best_variant(transfers, n_tiles, fragment_cycles);
    if (found.cycles < best.cycles) return found;
  }
  transfers = std::move(paired);
  return best;
}

}  // namespace t10
