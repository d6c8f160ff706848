// The list schedule of exchange_schedule.h, and the ways of cutting transfers that are tried with it.
#include "exchange_schedule.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "edge_colours.h"

namespace t10 {

namespace {

// Waiting transfers of one port that are looked at: fewer in phases of more receivers in all.
constexpr std::size_t LOOK_AHEAD = 96, LOOK_AHEAD_MANY = 8, MANY_RECEIVERS = std::size_t{1} << 19;

// A schedule is good enough that is done at most this part of its busiest port's time later than any can be.
constexpr std::int64_t GOOD_NUMERATOR = 2, GOOD_DENOMINATOR = 100;

// How urgent transfers are made by what their tiles do behind them: quarters of what that takes. No one share is best.
constexpr std::int64_t URGENCIES[] = {0, 2, 8}, WHOLE = 4;

// Parts of the busiest port's time that transfers are cut into, the fewest cycles of a part, and the most parts that are
// worth looking at.
constexpr std::int64_t CUTS[] = {16, 48}, LEAST_CUT = 8;
constexpr std::size_t MOST_CUT = std::size_t{1} << 17;

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

const std::vector<std::int32_t> NO_ROUNDS;
constexpr std::int64_t NO_LIMIT = std::numeric_limits<std::int64_t>::max();

// Sorts numbers of `n_bits` bits; `spare` is room for as many.
void sort_numbers(std::vector<std::uint64_t> &numbers, std::vector<std::uint64_t> &spare, int n_bits) {
  constexpr std::size_t FEW = 256;
  constexpr int DIGIT = 10;
  if (numbers.size() < FEW) {
    std::sort(numbers.begin(), numbers.end());
    return;
  }
  spare.resize(numbers.size());
  for (int shift = 0; shift < n_bits; shift += DIGIT) {
    const auto digit = [&](std::uint64_t number) { return (number >> shift) & ((1U << DIGIT) - 1); };
    std::array<std::uint32_t, (1U << DIGIT) + 1> next{};
    for (const std::uint64_t number : numbers) ++next[digit(number) + 1];
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (const std::uint64_t number : numbers) spare[next[digit(number)]++] = number;
    numbers.swap(spare);
  }
}

int n_bits_of(std::int64_t largest) {
  int n = 0;
  for (; largest > 0; largest >>= 1) ++n;
  return n;
}

// Which ports a transfer needs, and cycles of its next part. Millions are read in no order: with the targets of most
// transfers, one fits half a cache line.
struct alignas(32) Route {
  std::int32_t source;
  std::uint32_t first_target, end_target;
  std::array<std::int32_t, 2> few_targets;
  bool has_other;  // whether it needs the send port of its sender's partner
  std::int64_t next_cycles;
};

// What a transfer takes, in parts.
struct Work {
  std::int32_t transfer;
  std::uint64_t reads;
  std::int64_t cycles, n_parts, n_begun;
};

// Ports are numbered: the send port of a tile is 2 * tile, its receive port 2 * tile + 1. Transfers are jobs here, near
// targets first: tiles that all send to all then take turns.
class Scheduler {
 public:
  // Where transfers have `rounds`, those of earlier ones begin first. `urgency`: quarters of tails that count as left to do.
  Scheduler(const std::vector<Transfer> &transfers, const std::vector<std::int64_t> &tails, const Cut &cut = {},
            const std::vector<std::int32_t> &rounds = NO_ROUNDS, std::int64_t urgency = WHOLE)
      : transfers_(transfers), tails_(tails), n_tiles_(static_cast<std::int64_t>(tails.size())), cut_(cut),
        rounds_(rounds), urgency_(urgency), until_(ports(n_tiles_)), left_(ports(n_tiles_)), mask_(ports(n_tiles_)) {
    order();
    enter();
    for (const Work &job : work_) longest_ = std::max(longest_, job.cycles);
    for (const std::int64_t left : left_) bound_ = std::max(bound_, left);
    for (std::size_t port = 0; port < left_.size(); ++port) most_due_ = std::max(most_due_, due(port));
    job_bits_ = n_bits_of(static_cast<std::int64_t>(routes_.size()));
    cycle_bits_ = n_bits_of(longest_);
    // Jobs are numbered by their rounds: numbers alone decide.
    key_bits_ = job_bits_ + (rounds_.empty() ? cycle_bits_ + n_bits_of(most_due_) : 0);
  }

  // No schedule is done sooner.
  std::int64_t most_due() const { return most_due_; }

  // Given up, done at `limit`, where it would be done no sooner.
  Schedule run(std::int64_t limit = NO_LIMIT) {
    Schedule result;
    result.bound = bound_;
    result.done = *std::max_element(tails_.begin(), tails_.end());
    std::vector<std::int32_t> all(static_cast<std::size_t>(n_tiles_));
    std::iota(all.begin(), all.end(), 0);
    for (const std::int32_t tile : all) {
      result.sent.push_back(left_[send(tile)]);
      result.received.push_back(left_[receive(tile)]);
    }
    std::vector<std::int32_t> fresh = all;
    std::vector<std::uint8_t> is_fresh(all.size());
    std::int64_t now = 0;
    while (true) {
      if (result.done >= limit || is_late(now, fresh, limit)) {
        result.done = limit;
        break;
      }
      start(now, fresh, result);
      // What waited beyond the look-ahead of its ports: all of them are free now.
      if (ends_.empty() && n_done_ < routes_.size()) start(++now, all, result);
      if (ends_.empty()) break;
      now = ends_.top().first;
      fresh.clear();
      const auto note = [&](std::int32_t tile) {
        if (is_fresh[static_cast<std::size_t>(tile)] == 0) fresh.push_back(tile);
        is_fresh[static_cast<std::size_t>(tile)] = 1;
      };
      while (!ends_.empty() && ends_.top().first == now) {
        const Route &done = routes_[ends_.top().second];
        note(done.source);
        if (done.has_other) note(partner(done.source));
        each_target(done, note);
        ends_.pop();
      }
      for (const std::int32_t tile : fresh) is_fresh[static_cast<std::size_t>(tile)] = 0;
      result.cycles = now;
    }
    return result;
  }

 private:
  static constexpr std::int64_t STARTED = NO_LIMIT;
  static constexpr std::size_t DROPPED_PART = 4;

  static std::size_t ports(std::int64_t n_tiles) { return 2 * static_cast<std::size_t>(n_tiles); }
  static std::size_t send(std::int32_t tile) { return 2 * static_cast<std::size_t>(tile); }
  static std::size_t receive(std::int32_t tile) { return 2 * static_cast<std::size_t>(tile) + 1; }

  void order() {
    std::int32_t ring = 1;  // tiles up to the last one that takes part: how many a chip has beyond decides nothing
    std::size_t n_receivers = 0;
    bool has_writes = false;
    for (const Transfer &each : transfers_) {
      ring = std::max({ring, each.source + 1, each.targets.back() + 1});
      n_receivers += each.targets.size();
      has_writes |= std::any_of(each.writes.begin(), each.writes.end(), [](std::uint64_t mask) { return mask != 0; });
    }
    if (n_receivers > MANY_RECEIVERS) look_ahead_ = LOOK_AHEAD_MANY;
    std::vector<std::pair<std::int32_t, std::int32_t>> order;
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      const std::int32_t away = (transfers_[i].targets[0] - transfers_[i].source + ring) % ring;
      order.emplace_back(rounds_.empty() ? away : rounds_[i], std::int32_t(i));
    }
    std::sort(order.begin(), order.end());
    targets_.reserve(n_receivers);
    routes_.reserve(order.size());
    work_.reserve(order.size());
    earliest_.assign(order.size(), 0);
    for (const auto &[_, number] : order) {
      const Transfer &each = transfers_[static_cast<std::size_t>(number)];
      const auto first_target = static_cast<std::uint32_t>(targets_.size());
      targets_.insert(targets_.end(), each.targets.begin(), each.targets.end());
      if (has_writes) writes_.insert(writes_.end(), each.writes.begin(), each.writes.end());
      const std::int64_t cycles = cut_.cycles(each), n_parts = cut_.n_parts(each);
      routes_.push_back({each.source, first_target, static_cast<std::uint32_t>(targets_.size()),
                         {each.targets.front(), each.targets.back()},
                         each.is_paired && partner(each.source) < n_tiles_, Cut::share(cycles, 0, n_parts)});
      work_.push_back({number, each.reads, cycles, n_parts, 0});
    }
  }

  // Queues every job at its ports.
  void enter() {
    std::vector<std::size_t> first(left_.size() + 1, 0);
    for (std::size_t i = 0; i < routes_.size(); ++i)
      each_port(routes_[i], [&](std::size_t port) {
        ++first[port + 1];
        left_[port] += work_[i].cycles;
      });
    std::partial_sum(first.begin(), first.end(), first.begin());
    waiting_.resize(first.back());
    first_waiting_ = end_waiting_ = std::move(first);
    for (std::size_t i = 0; i < routes_.size(); ++i)
      each_port(routes_[i], [&](std::size_t port) { waiting_[end_waiting_[port]++] = static_cast<std::int32_t>(i); });
  }

  std::int64_t &earliest_of(std::int32_t job) { return earliest_[static_cast<std::size_t>(job)]; }

  template <class Use>
  void each_target(const Route &route, Use &&use) const {
    const std::int32_t *targets = targets_of(route);
    for (std::size_t t = 0; t < route.end_target - route.first_target; ++t) use(targets[t]);
  }

  const std::int32_t *targets_of(const Route &route) const {
    const bool are_few = route.end_target - route.first_target <= route.few_targets.size();
    return are_few ? route.few_targets.data() : targets_.data() + route.first_target;
  }

  // The ports that a transfer keeps busy.
  template <class Use>
  void each_port(const Route &route, Use &&use) const {
    use(send(route.source));
    if (route.has_other) use(send(partner(route.source)));
    each_target(route, [&](std::int32_t tile) { use(receive(tile)); });
  }

  // Whether a port that is free now has so much left that the schedule will not end before `limit`.
  bool is_late(std::int64_t now, const std::vector<std::int32_t> &fresh, std::int64_t limit) const {
    return limit < NO_LIMIT && std::any_of(fresh.begin(), fresh.end(), [&](std::int32_t tile) {
             const std::int64_t left = std::max(left_[send(tile)], left_[receive(tile)]);
             return now + left + (left > 0 ? tails_[static_cast<std::size_t>(tile)] : 0) >= limit;
           });
  }

  // Until when one of its ports is busy or reads or writes what it needs, `now` or before if none.
  std::int64_t busy_until(std::size_t job, std::int64_t now) const {
    const Route &route = routes_[job];
    const std::size_t own = send(route.source), back = receive(route.source);
    if (until_[own] > now) return until_[own];
    if (route.has_other && until_[send(partner(route.source))] > now) return until_[send(partner(route.source))];
    if (until_[back] > now && mask_[back] != 0 && (mask_[back] & work_[job].reads) != 0) return until_[back];
    const std::int32_t *targets = targets_of(route);
    for (std::size_t t = 0; t < route.end_target - route.first_target; ++t) {
      const std::size_t to = receive(targets[t]), other = send(targets[t]);
      if (until_[to] > now) return until_[to];
      if (!writes_.empty() && (mask_[other] & writes_[route.first_target + t]) != 0 && until_[other] > now)
        return until_[other];
    }
    return now;
  }

  // Finds what waits for a port and can begin; drops what has begun from its list where much of what was seen has.
  void look(std::size_t port, std::int64_t now) {
    std::size_t n = 0, n_begun = 0, w = first_waiting_[port];
    for (; w < end_waiting_[port] && n < look_ahead_; ++w) {
      std::int64_t &earliest = earliest_of(waiting_[w]);
      if (earliest == STARTED) {
        ++n_begun;
        continue;
      }
      ++n;
      if (earliest > now) continue;
      const auto job = static_cast<std::size_t>(waiting_[w]);
      const std::int64_t until = busy_until(job, now);
      // What is found now is not looked at again before something else begins or time goes on.
      earliest = std::max(until, now + 1);
      if (until <= now) found_.push_back(rounds_.empty() && key_bits_ <= KEY_BITS ? key(job) | job : job);
    }
    if (n_begun * DROPPED_PART > n) drop(port, w);
  }

  // Drops what has begun from the list of a port, up to entry `end`.
  void drop(std::size_t port, std::size_t end) {
    std::size_t first = end;
    for (std::size_t w = end; w-- > first_waiting_[port];)
      if (earliest_of(waiting_[w]) != STARTED) waiting_[--first] = waiting_[w];
    first_waiting_[port] = first;
  }

  // What a port has left to do, and its tile behind that.
  std::int64_t due(std::size_t port) const { return left_[port] + tails_[port / 2] * urgency_ / WHOLE; }

  // Most that is due of any port of a job.
  std::int64_t most_due_of(std::size_t job) const {
    std::int64_t most = 0;
    each_port(routes_[job], [&](std::size_t port) { most = std::max(most, due(port)); });
    return most;
  }

  // Smaller for what begins first: of whose ports most is due, then the longest; its number goes behind.
  std::uint64_t key(std::size_t job) const {
    const auto less = static_cast<std::uint64_t>(most_due_ - most_due_of(job));
    const auto shorter = static_cast<std::uint64_t>(longest_ - routes_[job].next_cycles);
    return ((less << cycle_bits_) | shorter) << job_bits_;
  }

  // Puts what was found in order; only numbers are left of keys.
  void order_found() {
    if (key_bits_ <= KEY_BITS) {
      sort_numbers(found_, spare_, key_bits_);
      for (std::uint64_t &each : found_) each &= (std::uint64_t{1} << job_bits_) - 1;
      return;
    }
    std::vector<std::tuple<std::int64_t, std::int64_t, std::uint64_t>> order;
    for (const std::uint64_t i : found_) order.emplace_back(-most_due_of(i), -routes_[i].next_cycles, i);
    std::sort(order.begin(), order.end());
    std::transform(order.begin(), order.end(), found_.begin(), [](const auto &each) { return std::get<2>(each); });
  }

  void start(std::int64_t now, const std::vector<std::int32_t> &fresh, Schedule &result) {
    found_.clear();
    for (const std::int32_t tile : fresh) {
      // A port that became free also lets the other port of its tile go on where both need one memory element.
      if (until_[send(tile)] <= now) look(send(tile), now);
      if (until_[receive(tile)] <= now) look(receive(tile), now);
    }
    order_found();
    for (const std::uint64_t i : found_) {
      if (const std::int64_t until = busy_until(i, now); until > now)
        earliest_[i] = until;
      else
        begin(i, now, result);
    }
  }

  void begin(std::size_t job, std::int64_t now, Schedule &result) {
    Route &route = routes_[job];
    Work &work = work_[job];
    const std::int64_t cycles = route.next_cycles, end = now + cycles;
    const std::int64_t fragments = cut_.fragments(transfers_[static_cast<std::size_t>(work.transfer)]);
    result.parts.push_back({work.transfer, now, cycles, Cut::share(fragments, work.n_begun, work.n_parts)});
    const bool is_last = ++work.n_begun == work.n_parts;
    route.next_cycles = Cut::share(work.cycles, work.n_begun, work.n_parts);
    earliest_[job] = is_last ? STARTED : end;
    n_done_ += is_last ? 1 : 0;
    each_port(route, [&](std::size_t port) {
      until_[port] = end;
      left_[port] -= cycles;
      mask_[port] = 0;
    });
    const auto note = [&](std::int32_t tile) {
      result.done = std::max(result.done, end + tails_[static_cast<std::size_t>(tile)]);
    };
    note(route.source);
    each_target(route, note);
    mask_[send(route.source)] = work.reads;
    for (std::size_t t = route.first_target; !writes_.empty() && t < route.end_target; ++t)
      mask_[receive(targets_[t])] = writes_[t];
    ends_.push({end, job});
  }

  using End = std::pair<std::int64_t, std::size_t>;
  static constexpr int KEY_BITS = 64;

  const std::vector<Transfer> &transfers_;
  const std::vector<std::int64_t> &tails_;
  std::int64_t n_tiles_;
  Cut cut_;
  const std::vector<std::int32_t> &rounds_;
  std::int64_t urgency_;
  std::size_t look_ahead_ = LOOK_AHEAD;
  std::vector<Route> routes_;
  std::vector<Work> work_;
  std::vector<std::int64_t> earliest_;  // when to look at each again
  std::vector<std::int32_t> targets_;
  std::vector<std::uint64_t> writes_;  // beside its targets; none if nobody's memory elements are known
  // Of ports; what waits for one is in `waiting_` from its first to its end.
  std::vector<std::int64_t> until_, left_;
  std::vector<std::uint64_t> mask_;
  std::vector<std::size_t> first_waiting_, end_waiting_;
  std::vector<std::int32_t> waiting_;
  // What can begin: keys, or numbers of jobs where those do not fit.
  std::vector<std::uint64_t> found_, spare_;
  std::int64_t longest_ = 0, bound_ = 0, most_due_ = 0;
  int job_bits_ = 0, cycle_bits_ = 0, key_bits_ = 0;
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

bool is_good(const Schedule &schedule, std::int64_t due, std::int64_t bound) {
  return (schedule.done - due) * GOOD_DENOMINATOR <= bound * GOOD_NUMERATOR;
}

// Schedule transfers as they are, cut, or taken apart; `transfers` become those that were scheduled.
Schedule best_variant(std::vector<Transfer> &transfers, const std::vector<std::int64_t> &tails,
                      std::int64_t fragment_cycles) {
  Scheduler first(transfers, tails);
  Schedule best = first.run();
  const std::int64_t bound = best.bound, due = first.most_due(), n_tiles = static_cast<std::int64_t>(tails.size());
  const auto is_better = [&](Schedule found) {
    if (found.done >= best.done) return false;
    best = std::move(found);
    return true;
  };
  const auto attempt = [&](const std::vector<Transfer> &others, const Cut &cut) {
    std::size_t n_parts = 0;
    for (const Transfer &each : others) n_parts += static_cast<std::size_t>(cut.n_parts(each));
    if (n_parts == transfers.size() || n_parts > MOST_CUT) return false;
    return is_better(Scheduler(others, tails, cut).run(best.done));
  };
  const auto in_rounds = [&](const std::vector<Transfer> &others) {
    if (is_good(best, due, bound)) return false;
    const std::vector<std::int32_t> rounds = EdgeColours::of(others, n_tiles);
    return !rounds.empty() && is_better(Scheduler(others, tails, {}, rounds).run(best.done));
  };
  if (std::any_of(tails.begin(), tails.end(), [](std::int64_t tail) { return tail > 0; }))
    for (const std::int64_t urgency : URGENCIES)
      if (!is_good(best, due, bound)) is_better(Scheduler(transfers, tails, {}, NO_ROUNDS, urgency).run(best.done));
  in_rounds(transfers);
  if (!is_good(best, due, bound)) {
    std::vector<Transfer> apart = taken_apart(transfers, n_tiles, bound);
    if (apart.size() > transfers.size()) {
      bool is_apart = attempt(apart, {});
      is_apart |= in_rounds(apart);
      if (is_apart) transfers = std::move(apart);
    }
  }
  for (const std::int64_t cuts : CUTS)
    if (!is_good(best, due, bound)) attempt(transfers, {std::max<std::int64_t>(bound / cuts, LEAST_CUT), fragment_cycles});
  best.bound = bound;
  return best;
}

}  // namespace

Schedule best_schedule(std::vector<Transfer> &transfers, const std::vector<std::int64_t> &tails,
                       std::int64_t fragment_cycles) {
  std::vector<Transfer> paired = with_pairs(transfers, static_cast<std::int64_t>(tails.size()));
  if (paired.empty()) return best_variant(transfers, tails, fragment_cycles);
  Schedule best = best_variant(paired, tails, fragment_cycles);
  if (best.done > Scheduler(transfers, tails).most_due()) {
    Schedule found = best_variant(transfers, tails, fragment_cycles);
    if (found.done < best.done) return found;
  }
  transfers = std::move(paired);
  return best;
}

}  // namespace t10
