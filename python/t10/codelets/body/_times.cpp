// t10.codelets.body._times: bundles for instructions so that iterations overlap, and registers that suit (see _times.pyi).
//
// Many intervals are tried for every way to write a loop, so this is native. A file of registers is a row of arcs: one
// bit per bundle of the interval.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace {

using Ints = std::vector<int>;
using Row = std::tuple<bool, Ints, Ints, Ints>;  // is of the main pipe, cells read, cells written, streams
using Register = std::tuple<int, int, int>;      // file, width, number
using Fusions = std::vector<std::pair<int, int>>;
using Files = std::pair<Ints, Ints>;
using Found = std::tuple<int, Ints, Ints>;  // interval, times, physical registers

constexpr int kNone = std::numeric_limits<int>::min();
constexpr int kCellsPerRegister = 4;
constexpr int kMostTrials = 1000;
// Further on, intervals are tried in strides of a part in so many of what they are beyond the least.
constexpr int kGrowth = 8;

int modulo(int number, int interval) { return ((number % interval) + interval) % interval; }

struct Edge {
  int other;
  int delay;
};

// From the bundle that writes a register first to the one that reads it last.
struct Lifetime {
  int first = kNone;
  int last = kNone;

  void hold(int time) {
    first = first == kNone ? time : std::min(first, time);
    last = last == kNone ? time : std::max(last, time);
  }
};

// A value that wants a register: its bundles from `begin` on, around an interval.
struct Arc {
  int file;
  int width;
  int number;
  int first;
  int begin;
  int length;
  std::vector<std::uint64_t> bits;
};

// Depth-first search over placements in a fixed order of values, cut off after a number of trials.
class Search {
 public:
  Search(std::vector<const Arc *> order, const Ints &free, int trials)
      : order_(std::move(order)), free_(free), trials_(trials) {
    const int n_cells = free.empty() ? 0 : *std::max_element(free.begin(), free.end()) + 1 + kCellsPerRegister;
    is_free_.assign(static_cast<std::size_t>(n_cells), false);
    for (const int cell : free) is_free_[static_cast<std::size_t>(cell)] = true;
    n_words_ = order_.empty() ? 0 : order_.front()->bits.size();
    busy_.assign(is_free_.size() * n_words_, 0);
    at_.assign(order_.size(), kNone);
  }

  bool run() { return from(0); }
  int at(std::size_t position) const { return at_[position]; }
  const Arc &arc(std::size_t position) const { return *order_[position]; }

 private:
  bool from(std::size_t position) {
    if (position == order_.size()) return true;
    const Arc &arc = *order_[position];
    for (const int first : free_) {
      if (!fits(arc, first)) continue;
      if (--trials_ < 0) return false;
      flip(arc, first);
      at_[position] = first;
      if (from(position + 1)) return true;
      flip(arc, first);
    }
    return false;
  }

  bool fits(const Arc &arc, int first) const {
    if (first % arc.width != 0) return false;
    for (int cell = first; cell < first + arc.width; ++cell) {
      if (!is_free_[static_cast<std::size_t>(cell)]) return false;
      const std::uint64_t *busy = busy_.data() + static_cast<std::size_t>(cell) * n_words_;
      for (std::size_t word = 0; word < n_words_; ++word)
        if ((busy[word] & arc.bits[word]) != 0) return false;
    }
    return true;
  }

  void flip(const Arc &arc, int first) {
    for (int cell = first; cell < first + arc.width; ++cell)
      for (std::size_t word = 0; word < n_words_; ++word)
        busy_[static_cast<std::size_t>(cell) * n_words_ + word] ^= arc.bits[word];
  }

  std::vector<const Arc *> order_;
  const Ints &free_;
  int trials_;
  std::size_t n_words_ = 0;
  std::vector<bool> is_free_;
  std::vector<std::uint64_t> busy_;
  Ints at_;
};

// Returns how many single registers are occupied at once at most.
int most_alive(const std::vector<const Arc *> &arcs, int interval) {
  Ints change(static_cast<std::size_t>(interval) + 1, 0);
  for (const Arc *arc : arcs) {
    const int end = arc->begin + arc->length;
    change[static_cast<std::size_t>(arc->begin)] += arc->width;
    change[static_cast<std::size_t>(std::min(end, interval))] -= arc->width;
    if (end > interval) {
      change[0] += arc->width;
      change[static_cast<std::size_t>(end - interval)] -= arc->width;
    }
  }
  int alive = 0;
  int most = 0;
  for (int bundle = 0; bundle < interval; ++bundle) most = std::max(most, alive += change[static_cast<std::size_t>(bundle)]);
  return most;
}

// Places the values of one file: greedily in several orders, then by search. `result` is by the value's place in `arcs`.
bool place_file(const std::vector<const Arc *> &arcs, const Ints &free, const Arc *begin, Ints &result) {
  const auto sorted = [&](auto &&key) {
    std::vector<const Arc *> order = arcs;
    std::stable_sort(order.begin(), order.end(), [&](const Arc *one, const Arc *other) { return key(*one) < key(*other); });
    return order;
  };
  const auto widest = [](const Arc &arc) { return std::make_tuple(-arc.width, arc.first, arc.number); };
  const auto earliest = [](const Arc &arc) { return std::make_tuple(arc.first, -arc.width, arc.number); };
  const auto largest = [](const Arc &arc) { return std::make_tuple(-arc.width * arc.length, arc.number, 0); };
  const int n = static_cast<int>(arcs.size());
  const auto run = [&](std::vector<const Arc *> order, int trials) {
    Search search(std::move(order), free, trials);
    if (!search.run()) return false;
    for (std::size_t i = 0; i < arcs.size(); ++i) result[static_cast<std::size_t>(&search.arc(i) - begin)] = search.at(i);
    return true;
  };
  return run(sorted(widest), n) || run(sorted(earliest), n) || run(sorted(largest), n) || run(sorted(widest), kMostTrials);
}

// Instructions in an order in which they could run one by one, which must follow which, and by how many bundles.
class Body {
 public:
  Body(const std::vector<Row> &rows, std::vector<Register> registers, std::vector<bool> is_pinned)
      : n_(rows.size()), registers_(std::move(registers)), is_pinned_(std::move(is_pinned)), before_(n_), after_(n_) {
    const std::size_t n_cells = registers_.size() * kCellsPerRegister;
    std::vector<Ints> writers(n_cells);
    std::vector<Ints> readers(n_cells);
    for (std::size_t i = 0; i < n_; ++i) {
      const auto &[is_main, read, written, streams] = rows[i];
      const int here = static_cast<int>(i);
      is_main_.push_back(is_main);
      is_load_.push_back(is_main && read.empty() && !written.empty());
      for (const int cell : read) {
        add(writers[static_cast<std::size_t>(cell)], here, 1);
        readers[static_cast<std::size_t>(cell)].push_back(here);
      }
      for (const int cell : written) {
        add(readers[static_cast<std::size_t>(cell)], here, 0);
        add(writers[static_cast<std::size_t>(cell)], here, 1);
        writers[static_cast<std::size_t>(cell)].push_back(here);
      }
      for (const int stream : streams) {
        if (streams_.size() <= static_cast<std::size_t>(stream)) streams_.resize(static_cast<std::size_t>(stream) + 1);
        Ints &chain = streams_[static_cast<std::size_t>(stream)];
        if (!chain.empty()) add({chain.back()}, here, 1);
        chain.push_back(here);
      }
      reads_.push_back(registers_of(read));
      writes_.push_back(registers_of(written));
    }
  }

  std::optional<Found> pipelined(const Fusions &fusions, const std::vector<bool> &is_store, const Files &free, int least,
                                 int extra, int most_stages) const {
    const auto at = [&](int interval) { return pipeline(fusions, is_store, free, interval, most_stages); };
    int fails = least - 1;
    int interval = least;
    std::optional<Found> found = at(interval);
    while (!found && interval < least + extra) {
      fails = interval;
      interval = std::min(interval + 1 + (interval - least) / kGrowth, least + extra);
      found = at(interval);
    }
    while (found && std::get<0>(*found) - fails > 1) {
      const int middle = (std::get<0>(*found) + fails) / 2;
      if (std::optional<Found> shorter = at(middle))
        found = std::move(shorter);
      else
        fails = middle;
    }
    return found;
  }

  // As early as possible, then one by one.
  std::optional<Found> straight(const Files &free) const {
    const int interval = 2 * static_cast<int>(n_) + 2;
    Ints in_order(n_);
    std::iota(in_order.begin(), in_order.end(), 0);
    for (std::optional<Ints> times : {this->times({}, interval, true), std::optional<Ints>(in_order)}) {
      if (!times) continue;
      const int first = *std::min_element(times->begin(), times->end());
      for (int &time : *times) time -= first;
      if (std::optional<Ints> placed = place(lives(*times), interval, free)) return Found(interval, *times, *placed);
    }
    return std::nullopt;
  }

  // As early as possible but for a window, the first that registers allow, then one by one.
  std::optional<Found> ahead(const Ints &windows, const Files &free, const Ints &live) const {
    Ints in_order(n_);
    std::iota(in_order.begin(), in_order.end(), 0);
    for (std::size_t number = 0; number <= windows.size(); ++number) {
      const Ints times = number < windows.size() ? early(windows[number]) : in_order;
      const int last = times.empty() ? 0 : *std::max_element(times.begin(), times.end());
      std::vector<Lifetime> lives(registers_.size());
      for (std::size_t i = 0; i < n_; ++i)
        for (const Ints &users : {reads_[i], writes_[i]})
          for (const int user : users) lives[static_cast<std::size_t>(user)].hold(times[i]);
      for (const int each : live)
        if (Lifetime &life = lives[static_cast<std::size_t>(each)]; life.first != kNone) life.last = last + 1;
      if (std::optional<Ints> placed = place(lives, last + 2, free)) return Found(last + 2, times, *placed);
    }
    return std::nullopt;
  }

 private:
  static Ints registers_of(const Ints &cells) {
    Ints found;
    for (const int cell : cells) found.push_back(cell / kCellsPerRegister);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  void add(const Ints &sources, int target, int delay) {
    for (const int source : sources) {
      if (source == target) continue;
      before_[static_cast<std::size_t>(target)].push_back({source, delay});
      after_[static_cast<std::size_t>(source)].push_back({target, delay});
    }
  }

  std::optional<Found> pipeline(const Fusions &fusions, const std::vector<bool> &is_store, const Files &free, int interval,
                                int most_stages) const {
    for (const bool loads_late : {true, false}) {
      std::optional<Ints> found = times(fusions, interval, loads_late);
      if (!found || !hold(*found, interval) || !put_stores_last(*found, is_store, interval, most_stages)) continue;
      if (std::optional<Ints> placed = place(lives(*found), interval, free)) return Found(interval, *found, *placed);
    }
    return std::nullopt;
  }

  // Returns the earliest time of an instruction after those that have one, and the latest before those.
  int earliest(const Ints &times, int i) const {
    int found = kNone;
    for (const Edge &edge : before_[static_cast<std::size_t>(i)])
      if (const int time = times[static_cast<std::size_t>(edge.other)]; time != kNone) found = std::max(found, time + edge.delay);
    return found == kNone ? 0 : found;
  }
  int latest(const Ints &times, int i, int otherwise) const {
    int found = kNone;
    for (const Edge &edge : after_[static_cast<std::size_t>(i)])
      if (const int time = times[static_cast<std::size_t>(edge.other)]; time != kNone)
        found = found == kNone ? time - edge.delay : std::min(found, time - edge.delay);
    return found == kNone ? otherwise : found;
  }

  // Returns times in which no pipe is used twice: everything as early as it can, but loads, if late, just in time.
  std::optional<Ints> times(const Fusions &fusions, int interval, bool loads_late) const {
    Ints times(n_, kNone);
    std::vector<bool> taken[2] = {std::vector<bool>(static_cast<std::size_t>(interval), false),
                                  std::vector<bool>(static_cast<std::size_t>(interval), false)};
    std::vector<bool> is_fused(n_, false);
    std::vector<bool> waits(n_, false);
    for (const auto &[load, store] : fusions) is_fused[static_cast<std::size_t>(load)] = is_fused[static_cast<std::size_t>(store)] = true;
    const auto take = [&](std::size_t i, int first, int step) {
      std::vector<bool> &pipe = taken[is_main_[i] ? 1 : 0];
      for (int k = 0, time = first; k < interval; ++k, time += step) {
        const std::size_t bundle = static_cast<std::size_t>(modulo(time, interval));
        if (pipe[bundle]) continue;
        pipe[bundle] = true;
        times[i] = time;
        return true;
      }
      return false;
    };
    for (std::size_t i = 0; i < n_; ++i) {
      waits[i] = is_fused[i] || (loads_late && can_wait(i, waits));
      if (!waits[i] && !take(i, earliest(times, static_cast<int>(i)), 1)) return std::nullopt;
    }
    for (auto fusion = fusions.rbegin(); fusion != fusions.rend(); ++fusion)
      if (!place_fusion(times, taken[1], fusion->first, fusion->second, interval)) return std::nullopt;
    for (std::size_t i = n_; i-- > 0;)
      if (waits[i] && !is_fused[i] && !take(i, latest(times, static_cast<int>(i), 0), -1)) return std::nullopt;
    return times;
  }

  // Returns whether nothing that has a time already must come before an instruction.
  bool can_wait(std::size_t i, const std::vector<bool> &waits) const {
    const std::vector<Edge> &before = before_[i];
    return is_load_[i] && std::all_of(before.begin(), before.end(),
                                      [&](const Edge &edge) { return waits[static_cast<std::size_t>(edge.other)]; });
  }

  // Gives a load and a store times that are equal modulo the interval, close to what needs them.
  bool place_fusion(Ints &times, std::vector<bool> &taken, int load, int store, int interval) const {
    const int latest = this->latest(times, load, -1);
    const int earliest = this->earliest(times, store);
    const int following = this->latest(times, store, std::numeric_limits<int>::max());
    int best = kNone;
    int best_at = 0;
    int best_loaded = 0;
    for (int at = earliest; at < earliest + interval; ++at) {
      if (taken[static_cast<std::size_t>(modulo(at, interval))] || at > following) continue;
      const int loaded = latest - modulo(latest - at, interval);
      const int cost = (at - earliest) + (latest - loaded);
      if (best != kNone && cost >= best) continue;
      best = cost;
      best_at = at;
      best_loaded = loaded;
    }
    if (best == kNone) return false;
    taken[static_cast<std::size_t>(modulo(best_at, interval))] = true;
    times[static_cast<std::size_t>(load)] = best_loaded;
    times[static_cast<std::size_t>(store)] = best_at;
    return true;
  }

  // Returns whether times respect all dependences, also between iterations.
  bool hold(const Ints &times, int interval) const {
    for (std::size_t i = 0; i < n_; ++i)
      for (const Edge &edge : before_[i])
        if (times[i] < times[static_cast<std::size_t>(edge.other)] + edge.delay) return false;
    for (const Ints &chain : streams_)
      if (!chain.empty() &&
          times[static_cast<std::size_t>(chain.back())] - times[static_cast<std::size_t>(chain.front())] >= interval)
        return false;
    return true;
  }

  // Shifts times to begin at 0 or later, so that all stores lie in the last stage; returns whether they can.
  static bool put_stores_last(Ints &times, const std::vector<bool> &is_store, int interval, int most_stages) {
    const int first = *std::min_element(times.begin(), times.end());
    const int length = *std::max_element(times.begin(), times.end()) - first;
    int store = kNone;
    for (std::size_t i = 0; i < times.size(); ++i)
      if (is_store[i]) store = store == kNone ? times[i] - first : std::min(store, times[i] - first);
    if (store == kNone) return false;
    int n_before = most_stages;
    int shift = 0;
    for (int each = 0; each < interval; ++each) {
      const int last = (length + each) / interval;
      if ((store + each) / interval != last || last >= n_before) continue;
      n_before = last;
      shift = each;
    }
    if (n_before >= most_stages) return false;
    for (int &time : times) time += shift - first;
    return true;
  }

  // Returns when every register that is written is first written and last read.
  std::vector<Lifetime> lives(const Ints &times) const {
    std::vector<Lifetime> found(registers_.size());
    for (std::size_t i = 0; i < n_; ++i)
      for (const int each : writes_[i]) found[static_cast<std::size_t>(each)].hold(times[i]);
    for (std::size_t i = 0; i < n_; ++i)
      for (const int each : reads_[i])
        if (Lifetime &life = found[static_cast<std::size_t>(each)]; life.first != kNone) life.last = std::max(life.last, times[i]);
    return found;
  }

  // Returns the times of code that runs once: an instruction runs at most `window` bundles ahead of those before it.
  Ints early(int window) const {
    Ints times(n_, kNone);
    std::vector<bool> taken[2];
    int last = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      std::vector<bool> &pipe = taken[is_main_[i] ? 1 : 0];
      int time = std::max(earliest(times, static_cast<int>(i)), last - window);
      while (static_cast<std::size_t>(time) < pipe.size() && pipe[static_cast<std::size_t>(time)]) ++time;
      if (static_cast<std::size_t>(time) >= pipe.size()) pipe.resize(static_cast<std::size_t>(time) + 1, false);
      pipe[static_cast<std::size_t>(time)] = true;
      times[i] = time;
      last = std::max(last, time);
    }
    return times;
  }

  // Returns a register for every value so that no two share one while both live: a value occupies the bundles after its
  // first write up to its last read, modulo the interval. Pinned values, and those that do not live, have none.
  std::optional<Ints> place(const std::vector<Lifetime> &lives, int interval, const Files &free) const {
    const Ints *files[2] = {&free.first, &free.second};
    int room[2] = {interval * static_cast<int>(free.first.size()), interval * static_cast<int>(free.second.size())};
    std::vector<Arc> arcs;
    Ints whose;
    for (std::size_t each = 0; each < registers_.size(); ++each) {
      const Lifetime &life = lives[each];
      if (is_pinned_[each] || life.first == kNone) continue;
      const auto &[file, width, number] = registers_[each];
      const int length = std::max(life.last - life.first, 1);
      room[file] -= length * width;
      if (length > interval || room[file] < 0) return std::nullopt;
      arcs.push_back({file, width, number, life.first, modulo(life.first + 1, interval), length, {}});
      whose.push_back(static_cast<int>(each));
    }
    const std::size_t n_words = static_cast<std::size_t>(interval + 63) / 64;
    Ints placed(arcs.size(), kNone);
    for (int file = 0; file < 2; ++file) {
      std::vector<const Arc *> of_file;
      for (Arc &arc : arcs) {
        if (arc.file != file) continue;
        arc.bits.assign(n_words, 0);
        for (int k = 0, bundle = arc.begin; k < arc.length; ++k, bundle = bundle + 1 == interval ? 0 : bundle + 1)
          arc.bits[static_cast<std::size_t>(bundle) / 64] |= std::uint64_t{1} << (bundle % 64);
        of_file.push_back(&arc);
      }
      if (most_alive(of_file, interval) > static_cast<int>(files[file]->size()) ||
          !place_file(of_file, *files[file], arcs.data(), placed))
        return std::nullopt;
    }
    Ints result(registers_.size(), -1);
    for (std::size_t i = 0; i < arcs.size(); ++i) result[static_cast<std::size_t>(whose[i])] = placed[i];
    return result;
  }

  std::size_t n_;
  std::vector<Register> registers_;
  std::vector<bool> is_pinned_;
  std::vector<bool> is_main_;
  std::vector<bool> is_load_;
  std::vector<Ints> reads_;
  std::vector<Ints> writes_;
  std::vector<Ints> streams_;
  std::vector<std::vector<Edge>> before_;
  std::vector<std::vector<Edge>> after_;
};

}  // namespace

NB_MODULE(_times, module) {
  nb::class_<Body>(module, "Body")
      .def(nb::init<const std::vector<Row> &, std::vector<Register>, std::vector<bool>>(), nb::arg("rows"), nb::arg("registers"),
           nb::arg("is_pinned"))
      .def("pipelined", &Body::pipelined, nb::arg("fusions"), nb::arg("is_store"), nb::arg("free"), nb::arg("least"),
           nb::arg("extra"), nb::arg("most_stages"))
      .def("straight", &Body::straight, nb::arg("free"))
      .def("ahead", &Body::ahead, nb::arg("windows"), nb::arg("free"), nb::arg("live"));
}
