// When every transfer of an exchange phase happens: a greedy list schedule on the tiles' send and receive ports.
//
// A transfer keeps its sender's send port and all its receivers' receive ports busy from begin to end. A tile may send and
// receive at the same time unless what it reads and what it writes then share a memory element. Whenever ports become
// free, the transfers that can begin are started, the one first whose busiest port has most left to do.
//
// Planner, plan simulator and device simulator schedule with this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace t10 {

// What tile `source` sends to all `targets` (ascending) at once; bit e of a mask stands for memory element e.
struct Transfer {
  std::int32_t source = 0;
  std::vector<std::int32_t> targets;
  std::int64_t n_bytes = 0, fragments = 0, cycles = 0;
  std::uint64_t reads = 0;
  std::vector<std::uint64_t> writes;
};

constexpr std::size_t LOOK_AHEAD = 96;  // waiting transfers of one port that are looked at

// A schedule at most this much longer than its busiest port needs is good enough.
constexpr std::int64_t GOOD_NUMERATOR = 102, GOOD_DENOMINATOR = 100;

// Parts of the busiest port's time that transfers are cut into, the fewest cycles of a part, and the most parts that are
// worth looking at.
constexpr std::int64_t CUTS[] = {16, 48}, LEAST_CUT = 8;
constexpr std::size_t MOST_CUT = std::size_t{1} << 17;

struct Port {
  std::int64_t until = 0, left = 0, load = 0;
  std::uint64_t mask = 0;
  std::vector<std::int32_t> waiting;
  std::size_t n_done = 0;
};

struct Schedule {
  std::int64_t cycles = 0;  // end of the last transfer
  std::int64_t bound = 0;   // most that any port has to do
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> sent, received;
};

class Scheduler {
 public:
  Scheduler(const std::vector<Transfer> &transfers, std::int64_t n_tiles)
      : transfers_(transfers), n_tiles_(n_tiles), send_(n_tiles), receive_(n_tiles), started_(transfers.size(), 0),
        seen_(transfers.size(), -1) {
    for (const Transfer &each : transfers) ring_ = std::max({ring_, each.source + 1, each.targets.back() + 1});
  }

  Schedule run() {
    Schedule result;
    result.begin.assign(transfers_.size(), 0);
    enter();
    for (std::int64_t tile = 0; tile < n_tiles_; ++tile) {
      result.bound = std::max({result.bound, send_[tile].load, receive_[tile].load});
      result.sent.push_back(send_[tile].load);
      result.received.push_back(receive_[tile].load);
    }
    std::vector<std::int32_t> fresh;
    for (std::int32_t tile = 0; tile < n_tiles_; ++tile) fresh.push_back(tile);
    std::int64_t now = 0;
    while (true) {
      start(now, fresh, result);
      if (ends_.empty() && n_started_ < transfers_.size()) {
        // What waited beyond the look-ahead of its ports: all of them are free now.
        fresh.clear();
        for (std::int32_t tile = 0; tile < n_tiles_; ++tile) fresh.push_back(tile);
        start(++now, fresh, result);
      }
      if (ends_.empty()) break;
      now = ends_.top().first;
      fresh.clear();
      while (!ends_.empty() && ends_.top().first == now) {
        const Transfer &done = transfers_[ends_.top().second];
        fresh.push_back(done.source);
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

  std::int64_t distance(const Transfer &transfer) const {
    return (transfer.targets[0] - transfer.source + ring_) % ring_;
  }

  // Queue every transfer at its ports, near targets first: tiles that all send to all then take turns.
  void enter() {
    std::vector<std::int32_t> order(transfers_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = std::int32_t(i);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return distance(transfers_[a]) < distance(transfers_[b]);
    });
    for (const std::int32_t i : order) {
      const Transfer &transfer = transfers_[i];
      add(send_[transfer.source], i, transfer.cycles);
      for (const std::int32_t tile : transfer.targets) add(receive_[tile], i, transfer.cycles);
    }
  }

  static void add(Port &port, std::int32_t number, std::int64_t cycles) {
    port.waiting.push_back(number);
    port.load += cycles;
    port.left += cycles;
  }

  bool can_start(const Transfer &transfer, std::int64_t now) const {
    const Port &own = send_[transfer.source], &back = receive_[transfer.source];
    if (own.until > now || (back.until > now && (back.mask & transfer.reads) != 0)) return false;
    for (std::size_t i = 0; i < transfer.targets.size(); ++i) {
      const Port &port = receive_[transfer.targets[i]], &other = send_[transfer.targets[i]];
      if (port.until > now || (other.until > now && (other.mask & transfer.writes[i]) != 0)) return false;
    }
    return true;
  }

  void look(Port &port, std::int64_t now, std::vector<Candidate> &found) {
    if (port.n_done * 2 > port.waiting.size()) {
      port.waiting.erase(std::remove_if(port.waiting.begin(), port.waiting.end(),
                                        [&](std::int32_t i) { return started_[i] != 0; }),
                         port.waiting.end());
      port.n_done = 0;
    }
    std::size_t n = 0;
    for (const std::int32_t i : port.waiting) {
      if (started_[i] != 0) continue;
      if (++n > LOOK_AHEAD) return;
      if (seen_[i] == now || !can_start(transfers_[i], now)) continue;
      seen_[i] = now;
      const Transfer &transfer = transfers_[i];
      std::int64_t left = send_[transfer.source].left;
      for (const std::int32_t tile : transfer.targets) left = std::max(left, receive_[tile].left);
      found.push_back({left, transfer.cycles, distance(transfer), i});
    }
  }

  void start(std::int64_t now, const std::vector<std::int32_t> &fresh, Schedule &result) {
    std::vector<Candidate> found;
    for (const std::int32_t tile : fresh) {
      // A port that became free also lets the other port of its tile go on where both need one memory element.
      if (send_[tile].until <= now) look(send_[tile], now, found);
      if (receive_[tile].until <= now) look(receive_[tile], now, found);
    }
    std::sort(found.begin(), found.end());
    for (const Candidate &candidate : found) {
      const Transfer &transfer = transfers_[candidate.number];
      if (started_[candidate.number] != 0 || !can_start(transfer, now)) continue;
      started_[candidate.number] = 1;
      ++n_started_;
      result.begin[candidate.number] = now;
      const std::int64_t end = now + transfer.cycles;
      occupy(send_[transfer.source], end, transfer.cycles, transfer.reads);
      for (std::size_t i = 0; i < transfer.targets.size(); ++i) {
        occupy(receive_[transfer.targets[i]], end, transfer.cycles, transfer.writes[i]);
      }
      ends_.push({end, candidate.number});
    }
  }

  static void occupy(Port &port, std::int64_t end, std::int64_t cycles, std::uint64_t mask) {
    port.until = end;
    port.left -= cycles;
    port.mask = mask;
    ++port.n_done;
  }

  using End = std::pair<std::int64_t, std::int32_t>;

  const std::vector<Transfer> &transfers_;
  std::int64_t n_tiles_;
  std::int32_t ring_ = 1;  // tiles up to the last one that takes part: how many a chip has beyond decides nothing
  std::vector<Port> send_, receive_;
  std::vector<std::uint8_t> started_;
  std::vector<std::int64_t> seen_;
  std::size_t n_started_ = 0;
  std::priority_queue<End, std::vector<End>, std::greater<End>> ends_;
};

// Return transfers in which tiles that have the time send one by one what they would send to several at once.
//
// A multicast needs all its receivers free together and its sender then receives nothing: among n tiles that all send to
// all, multicasts keep every receiver busy (n - 1) / n of the time, transfers one by one always.
inline std::vector<Transfer> taken_apart(const std::vector<Transfer> &transfers, std::int64_t n_tiles,
                                         std::int64_t bound) {
  std::vector<std::int64_t> alone(n_tiles, 0);
  for (const Transfer &each : transfers) alone[each.source] += each.cycles * std::int64_t(each.targets.size());
  std::vector<Transfer> result;
  for (const Transfer &each : transfers) {
    if (each.targets.size() < 2 || alone[each.source] > bound) {
      result.push_back(each);
      continue;
    }
    for (std::size_t i = 0; i < each.targets.size(); ++i) {
      Transfer one = each;
      one.targets = {each.targets[i]};
      one.writes = {each.writes[i]};
      result.push_back(std::move(one));
    }
  }
  return result;
}

// Return transfers of at most `most` cycles: longer ones are cut between their fragments, further cuts cost fragments.
//
// Ports that wait for each other's long transfers to end, wait less where these come in parts.
inline std::vector<Transfer> cut_up(const std::vector<Transfer> &transfers, std::int64_t most,
                                    std::int64_t fragment_cycles) {
  std::vector<Transfer> result;
  for (const Transfer &each : transfers) {
    const std::int64_t n = (each.cycles + most - 1) / most;
    const std::int64_t fragments = std::max(each.fragments, n);
    const std::int64_t cycles = each.cycles + (fragments - each.fragments) * fragment_cycles;
    const auto share = [n](std::int64_t whole, std::int64_t i) { return whole * (i + 1) / n - whole * i / n; };
    for (std::int64_t i = 0; i < n; ++i) {
      result.push_back(each);
      result.back().n_bytes = share(each.n_bytes, i);
      result.back().fragments = share(fragments, i);
      result.back().cycles = share(cycles, i);
    }
  }
  return result;
}

inline bool is_good(const Schedule &schedule, std::int64_t bound) {
  return schedule.cycles * GOOD_DENOMINATOR <= bound * GOOD_NUMERATOR;
}

// Schedule transfers; `transfers` become those that were scheduled. What the busiest port needs is said of them uncut.
inline Schedule best_schedule(std::vector<Transfer> &transfers, std::int64_t n_tiles, std::int64_t fragment_cycles) {
  Schedule best = Scheduler(transfers, n_tiles).run();
  const std::int64_t bound = best.bound;
  const auto attempt = [&](std::vector<Transfer> others) {
    if (others.size() == transfers.size() || others.size() > MOST_CUT) return;
    Schedule found = Scheduler(others, n_tiles).run();
    if (found.cycles >= best.cycles) return;
    best = std::move(found);
    transfers = std::move(others);
  };
  if (!is_good(best, bound)) attempt(taken_apart(transfers, n_tiles, bound));
  for (const std::int64_t cuts : CUTS)
    if (!is_good(best, bound)) attempt(cut_up(transfers, std::max<std::int64_t>(bound / cuts, LEAST_CUT), fragment_cycles));
  best.bound = bound;
  return best;
}

}  // namespace t10
