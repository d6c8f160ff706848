// t10.plan.joint._minsum: the least sum of tables over shared variables, by eliminating one variable after the other.
//
// A problem has variables with a few states each and tables ("factors") over small sets of them. Which variables meet in
// which table never changes, so the order, the scopes of all messages and every stride are worked out once; only the
// costs of single states change from call to call. Work per call: sum over variables of the product of the numbers of
// states it meets when it goes (K^(treewidth + 1) each). Variables that meet equal tables and have equal costs, as those
// of equal layers do, are eliminated once. States that another one beats, whatever all other variables are, are left out
// (dead-end elimination): what remains are a few of many.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "minsum_factors.h"
#include "minsum_messages.h"
#include "minsum_names.h"
#include "minsum_rows.h"

namespace nb = nanobind;

namespace {

using namespace t10::minsum;

constexpr std::size_t kMaxScope = 12;
constexpr std::size_t kMaxCells = std::size_t{1} << 24;
// Larger tables are not looked at for which of their states beat others: that takes a sum per cell and state.
constexpr std::size_t kMaxCompared = std::size_t{1} << 20;
// By what part of its costs a state must be beaten at least, so that rounding decides nothing.
constexpr double kRounding = 1e-12;
// States of a variable are looked at one by one where they are less than this part of all, which vectors are faster at.
constexpr std::size_t kSparse = 4;

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Column = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

// One addend of a bucket: which table, and its stride along every variable of the bucket's scope. Along the eliminated
// variable it is 1.
struct Addend {
  bool is_message;
  std::size_t number;
  std::vector<std::size_t> strides;
};

// The elimination of `variable`: the minimum over its states as a table over `scope`. Buckets of one `shape` add up
// alike: they have as many states everywhere, and tables with the same strides.
struct Bucket {
  std::size_t variable;
  std::vector<std::size_t> scope;
  std::vector<Addend> addends;
  std::size_t n_cells;
  std::size_t shape = 0;
};

std::size_t product(const std::vector<std::size_t> &scope, const std::vector<std::size_t> &n_states) {
  std::size_t cells = 1;
  for (std::size_t v : scope) {
    cells *= n_states[v];
    if (cells > kMaxCells) return kMaxCells + 1;
  }
  return cells;
}

// Of every bucket the table that results; equal ones share it.
using Messages = std::vector<std::shared_ptr<const std::vector<double>>>;

class Elimination {
 public:
  Elimination(std::vector<std::size_t> n_states, const nb::sequence &factors) : n_states_(std::move(n_states)) {
    first_.assign(n_states_.size() + 1, 0);
    for (std::size_t v = 0; v < n_states_.size(); ++v) {
      if (n_states_[v] == 0) throw std::invalid_argument("Elimination: variable " + std::to_string(v) + " has no state");
      first_[v + 1] = first_[v] + n_states_[v];
    }
    for (nb::handle item : factors) add(nb::cast<nb::tuple>(item));
    plan();
  }

  // Returns (least sum, state of every variable, sums formed); infinity where no assignment has finite cost.
  nb::tuple minimise(const Doubles &state_costs) const {
    check(state_costs);
    std::vector<std::int64_t> chosen(n_states_.size(), 0);
    double least = 0.0;
    std::size_t n_sums = 0;
    {
      const nb::gil_scoped_release unlocked;
      least = solve(state_costs.data(), chosen, n_sums);
    }
    return nb::make_tuple(least, chosen, n_sums);
  }

  // Returns (least sum with every state, sums formed).
  nb::tuple least_by_state(const Doubles &state_costs) const {
    check(state_costs);
    auto least = std::make_unique<double[]>(first_.back());
    std::size_t n_sums = 0;
    {
      const nb::gil_scoped_release unlocked;
      find_least(state_costs.data(), least.get(), n_sums);
    }
    double *data = least.release();
    const nb::capsule owner(data, [](void *p) noexcept { delete[] static_cast<double *>(p); });
    return nb::make_tuple(Column(data, {first_.back()}, owner), n_sums);
  }

 private:
  using States = std::vector<std::vector<std::size_t>>;

  void check(const Doubles &state_costs) const {
    if (state_costs.shape(0) != first_.back())
      throw std::invalid_argument("Elimination: expected " + std::to_string(first_.back()) + " state costs, found " +
                                  std::to_string(state_costs.shape(0)));
  }

  void add(const nb::tuple &item) {
    Factor factor;
    factor.scope = nb::cast<std::vector<std::size_t>>(item[0]);
    const auto cost = nb::cast<Doubles>(item[1]);
    for (std::size_t v : factor.scope) {
      if (v >= n_states_.size()) throw std::invalid_argument("Elimination: a factor names variable " + std::to_string(v));
      if (std::count(factor.scope.begin(), factor.scope.end(), v) > 1)
        throw std::invalid_argument("Elimination: a factor names variable " + std::to_string(v) + " twice");
    }
    if (cost.shape(0) != product(factor.scope, n_states_))
      throw std::invalid_argument("Elimination: a factor has " + std::to_string(cost.shape(0)) + " costs, expected " +
                                  std::to_string(product(factor.scope, n_states_)));
    if (factor.scope.empty()) {
      constant_ += cost.data()[0];
      return;
    }
    factor.given = cost.data();
    factors_.push_back(std::move(factor));
  }

  // Chooses the order (least cells of the message that results; ties by number) and lays out every bucket.
  void plan() {
    const std::size_t n = n_states_.size();
    std::vector<std::set<std::size_t>> near(n);
    for (const Factor &factor : factors_)
      for (std::size_t a : factor.scope)
        for (std::size_t b : factor.scope)
          if (a != b) near[a].insert(b);
    std::vector<std::set<std::pair<bool, std::size_t>>> tables(n);
    for (std::size_t f = 0; f < factors_.size(); ++f)
      for (std::size_t v : factors_[f].scope) tables[v].insert({false, f});
    auto weight = [&](std::size_t v) {
      std::size_t cells = 1;
      for (std::size_t u : near[v]) cells = std::min(cells * n_states_[u], kMaxCells + 1);
      return cells;
    };
    std::set<std::pair<std::size_t, std::size_t>> queue;
    std::vector<std::size_t> weights(n);
    for (std::size_t v = 0; v < n; ++v) queue.insert({weights[v] = weight(v), v});
    std::vector<std::size_t> rank(n, 0);
    while (!queue.empty()) {
      const std::size_t v = queue.begin()->second;
      queue.erase(queue.begin());
      Bucket bucket{v, {near[v].begin(), near[v].end()}, {}, product({near[v].begin(), near[v].end()}, n_states_)};
      if (bucket.scope.size() > kMaxScope || bucket.n_cells * n_states_[v] > kMaxCells)
        throw std::invalid_argument("Elimination: variables are too entangled (a message would need " +
                                    std::to_string(bucket.scope.size()) + " variables)");
      for (const auto &[is_message, number] : tables[v]) bucket.addends.push_back(Addend{is_message, number, {}});
      for (std::size_t u : bucket.scope) {
        for (const auto &table : tables[v]) tables[u].erase(table);
        tables[u].insert({true, buckets_.size()});
        near[u].erase(v);
        for (std::size_t w : bucket.scope)
          if (w != u) near[u].insert(w);
      }
      for (std::size_t u : bucket.scope) {
        queue.erase({weights[u], u});
        queue.insert({weights[u] = weight(u), u});
      }
      rank[v] = buckets_.size();
      buckets_.push_back(std::move(bucket));
    }
    lay_out(rank);
  }

  // Orders every table so that the variable that goes first varies fastest: a bucket then adds contiguous rows.
  void lay_out(const std::vector<std::size_t> &rank) {
    const auto later_first = [&](std::size_t a, std::size_t b) { return rank[a] > rank[b]; };
    LaidOut laid_out;
    for (Factor &factor : factors_) {
      std::vector<std::size_t> scope = factor.scope;
      std::sort(scope.begin(), scope.end(), later_first);
      lay_out_as(factor, scope, n_states_, laid_out);
    }
    for (Bucket &bucket : buckets_) std::sort(bucket.scope.begin(), bucket.scope.end(), later_first);
    for (Bucket &bucket : buckets_)
      for (Addend &a : bucket.addends) {
        const std::vector<std::size_t> &scope = a.is_message ? buckets_[a.number].scope : factors_[a.number].scope;
        a.strides.assign(bucket.scope.size(), 0);
        std::size_t stride = n_states_[bucket.variable];
        for (std::size_t i = scope.size() - 1; i-- > 0;) {
          const auto at = std::find(bucket.scope.begin(), bucket.scope.end(), scope[i]);
          a.strides[static_cast<std::size_t>(at - bucket.scope.begin())] = stride;
          stride *= n_states_[scope[i]];
        }
      }
    name_equals();
    compare_states();
  }

  // Finds by how much every state of a variable costs more than another one at most, whatever the other variables are.
  void compare_states() {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> known;
    more_.resize(n_states_.size());
    for (const Factor &factor : factors_) {
      std::size_t inner = 1;
      for (std::size_t d = factor.scope.size(); d-- > 0;) {
        const std::size_t v = factor.scope[d], k = n_states_[v];
        if (more_[v].empty()) more_[v].assign(k * k, 0.0);
        std::vector<double> &table = known[{factor.first, d}];
        if (table.empty()) table = most_more(*factor.cost, k, inner);
        for (std::size_t i = 0; i < k * k; ++i) more_[v][i] += table[i];
        inner *= k;
      }
    }
  }

  // Entry (a, b) is the most that state a of a variable costs more than b in a table in which it has this stride.
  static std::vector<double> most_more(const std::vector<double> &cost, std::size_t k, std::size_t inner) {
    std::vector<double> result(k * k, kInfinity);
    const bool is_finite = std::all_of(cost.begin(), cost.end(), [](double each) { return std::isfinite(each); });
    if (!is_finite || cost.size() * k > kMaxCompared) return result;
    std::fill(result.begin(), result.end(), -kInfinity);
    for (std::size_t first = 0; first < cost.size(); first += k * inner)
      for (std::size_t a = 0; a < k; ++a) {
        const double *of_a = cost.data() + first + a * inner;
        if (inner == 1)
          raise_to_differences(*of_a, cost.data() + first, result.data() + a * k, k);
        else
          for (std::size_t b = 0; b < k; ++b) {
            double &most = result[a * k + b];
            most = std::max(most, most_difference(of_a, cost.data() + first + b * inner, inner));
          }
      }
    return result;
  }

  // Returns the costs of states, infinite where another state is better in any case, and the states that are left.
  std::vector<double> open_states(const double *state_costs, States &open) const {
    std::vector<double> costs(state_costs, state_costs + first_.back());
    open.resize(n_states_.size());
    for (std::size_t v = 0; v < n_states_.size(); ++v) {
      const std::size_t k = n_states_[v];
      const double *own = state_costs + first_[v];
      for (std::size_t s = 0; s < k; ++s) {
        bool is_open = own[s] < kInfinity;
        const double margin = 1e-6 + kRounding * std::abs(own[s]);
        for (std::size_t better = 0; is_open && !more_[v].empty() && better < k; ++better)
          is_open = !(own[better] + more_[v][better * k + s] < own[s] - margin);
        if (is_open) {
          open[v].push_back(s);
        } else {
          costs[first_[v] + s] = kInfinity;
        }
      }
    }
    return costs;
  }

  // Finds which tables have equal costs and which buckets add up alike.
  void name_equals() {
    Names costs;
    std::map<const void *, std::size_t> tables;
    for (std::size_t f = 0; f < factors_.size(); ++f) {
      const std::vector<double> &cost = *factors_[f].cost;
      const auto [table, is_new] = tables.try_emplace(&cost, f);
      if (is_new) table->second = costs.try_emplace(bits_of(cost.data(), cost.size()), f).first->second;
      factors_[f].first = table->second;
    }
    Names shapes;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      Numbers shape{n_states_[buckets_[b].variable], buckets_[b].scope.size()};
      for (const std::size_t v : buckets_[b].scope) shape.push_back(n_states_[v]);
      for (const Addend &a : buckets_[b].addends) shape.insert(shape.end(), a.strides.begin(), a.strides.end());
      buckets_[b].shape = shapes.try_emplace(std::move(shape), b).first->second;
    }
  }

  double solve(const double *all_costs, std::vector<std::int64_t> &chosen, std::size_t &n_sums) const {
    States open;
    const std::vector<double> left = open_states(all_costs, open);
    const double *state_costs = left.data();
    Messages messages;
    const double constant = add_up(state_costs, open, messages, n_sums);
    if (constant == kInfinity) return kInfinity;
    std::vector<double> sums;
    for (std::size_t b = buckets_.size(); b-- > 0;) {
      const Bucket &bucket = buckets_[b];
      const std::size_t k = n_states_[bucket.variable];
      std::vector<const double *> rows = tables(bucket, messages);
      for (std::size_t a = 0; a < rows.size(); ++a)
        for (std::size_t d = 0; d < bucket.scope.size(); ++d)
          rows[a] += bucket.addends[a].strides[d] * static_cast<std::size_t>(chosen[bucket.scope[d]]);
      sums.resize(k);
      add_rows(state_costs + first_[bucket.variable], rows.data(), rows.size(), k, sums.data());
      chosen[bucket.variable] = std::min_element(sums.begin(), sums.end()) - sums.begin();
    }
    return constant;
  }

  // Eliminates all variables and returns the least sum.
  double add_up(const double *state_costs, const States &open, Messages &messages, std::size_t &n_sums) const {
    for (const std::vector<std::size_t> &states : open)
      if (states.empty()) return kInfinity;
    messages.resize(buckets_.size());
    std::vector<std::size_t> names(buckets_.size());
    double constant = constant_;
    // Entries of a message are there for open states alone: buckets that share one have the same around them.
    std::vector<std::size_t> around(open.size());
    for (std::size_t v = 0; v < open.size(); ++v) around[v] = kept_.name_of(open[v]);
    std::unordered_set<std::size_t> seen;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const Bucket &bucket = buckets_[b];
      const double *own = state_costs + first_[bucket.variable];
      Numbers what{bucket.shape};
      for (const Addend &a : bucket.addends)
        what.push_back(a.is_message ? 2 * names[a.number] + 1 : 2 * factors_[a.number].first);
      for (const std::size_t v : bucket.scope) what.push_back(around[v]);
      append_bits(what, own, n_states_[bucket.variable]);
      const Message message = kept_.of(std::move(what), [&] {
        auto costs = std::make_shared<std::vector<double>>(bucket.n_cells);
        return Message{0, eliminate(bucket, own, open, messages, *costs), costs};
      });
      names[b] = message.name;
      messages[b] = message.costs;
      // What is kept counts as if it were made again: work does not depend on what was asked before.
      if (seen.insert(message.name).second) n_sums += message.n_sums;
      if (bucket.scope.empty()) constant += (*messages[b])[0];
    }
    return constant;
  }

  // Writes the least sum of all assignments with a state, for every state: variables are eliminated, and what the others
  // add to each is handed back from the last to the first. States that another one beats count too.
  void find_least(const double *state_costs, double *least, std::size_t &n_sums) const {
    std::fill(least, least + first_.back(), kInfinity);
    States open(n_states_.size());
    for (std::size_t v = 0; v < n_states_.size(); ++v)
      for (std::size_t s = 0; s < n_states_[v]; ++s)
        if (state_costs[first_[v] + s] < kInfinity) open[v].push_back(s);
    Messages messages;
    const double constant = add_up(state_costs, open, messages, n_sums);
    if (constant == kInfinity) return;
    // Of every bucket what all that is eliminated after it adds, as a table over its scope.
    std::vector<std::vector<double>> rest(buckets_.size());
    for (std::size_t b = buckets_.size(); b-- > 0;) {
      const Bucket &bucket = buckets_[b];
      if (bucket.scope.empty()) rest[b].assign(1, constant - (*messages[b])[0]);
      for (const Addend &a : bucket.addends)
        if (a.is_message) rest[a.number].assign(messages[a.number]->size(), kInfinity);
      n_sums += hand_back(bucket, state_costs + first_[bucket.variable], open, messages, rest[b], rest,
                          least + first_[bucket.variable]);
      for (const Addend &a : bucket.addends)
        if (a.is_message)
          for (std::size_t i = 0; i < rest[a.number].size(); ++i)
            if (rest[a.number][i] < kInfinity) rest[a.number][i] -= (*messages[a.number])[i];
      rest[b] = {};
    }
  }

  // Lowers `least` of a bucket's states, and what its messages' buckets are handed back, to its sums with `own_rest`.
  std::size_t hand_back(const Bucket &bucket, const double *own, const States &open, const Messages &messages,
                        const std::vector<double> &own_rest, std::vector<std::vector<double>> &rest,
                        double *least) const {
    const std::size_t depth = bucket.scope.size(), k = n_states_[bucket.variable];
    const std::vector<const double *> all = tables(bucket, messages);
    std::vector<std::size_t> at(depth, 0), strides(depth, 1);
    for (std::size_t d = depth; d-- > 1;) strides[d - 1] = strides[d] * n_states_[bucket.scope[d]];
    std::vector<const double *> rows(all.size());
    std::vector<std::size_t> begins(all.size());
    std::vector<double> sums(k);
    std::size_t n_sums = 0;
    while (true) {
      std::size_t cell = 0;
      std::fill(begins.begin(), begins.end(), 0);
      for (std::size_t d = 0; d < depth; ++d) {
        const std::size_t state = open[bucket.scope[d]][at[d]];
        cell += strides[d] * state;
        for (std::size_t t = 0; t < all.size(); ++t) begins[t] += bucket.addends[t].strides[d] * state;
      }
      for (std::size_t t = 0; t < all.size(); ++t) rows[t] = all[t] + begins[t];
      add_rows(own, rows.data(), rows.size(), k, sums.data());
      add_and_lower(sums.data(), own_rest[cell], least, k);
      for (std::size_t t = 0; t < all.size(); ++t)
        if (bucket.addends[t].is_message) lower(sums.data(), rest[bucket.addends[t].number].data() + begins[t], k);
      n_sums += k;
      std::size_t d = depth;
      while (d > 0 && ++at[d - 1] == open[bucket.scope[d - 1]].size()) at[--d] = 0;
      if (d == 0) return n_sums;
    }
  }

  std::vector<const double *> tables(const Bucket &bucket, const Messages &messages) const {
    std::vector<const double *> result;
    for (const Addend &a : bucket.addends)
      result.push_back(a.is_message ? messages[a.number]->data() : factors_[a.number].cost->data());
    return result;
  }

  // Returns how many sums it forms. Entries of states that are not open are left as they are: nobody reads them but with
  // infinite costs.
  std::size_t eliminate(const Bucket &bucket, const double *own, const States &open, const Messages &messages,
                        std::vector<double> &out) const {
    const std::size_t depth = bucket.scope.size();
    const std::vector<std::size_t> &inner = open[bucket.variable];
    const std::size_t k = n_states_[bucket.variable], n = inner.size();
    const std::vector<const double *> all = tables(bucket, messages);
    // Where few states are left, they are brought together first.
    const bool is_sparse = n * kSparse <= k;
    std::vector<double> few(is_sparse ? n : 0), sums(k);
    for (std::size_t i = 0; i < few.size(); ++i) few[i] = own[inner[i]];
    std::vector<std::size_t> at(depth, 0), strides(depth, 1);
    for (std::size_t d = depth; d-- > 1;) strides[d - 1] = strides[d] * n_states_[bucket.scope[d]];
    std::vector<const double *> rows(all.size());
    std::size_t n_sums = 0;
    while (true) {
      std::size_t cell = 0;
      for (std::size_t t = 0; t < all.size(); ++t) rows[t] = all[t];
      for (std::size_t d = 0; d < depth; ++d) {
        const std::size_t state = open[bucket.scope[d]][at[d]];
        cell += strides[d] * state;
        for (std::size_t t = 0; t < all.size(); ++t) rows[t] += bucket.addends[t].strides[d] * state;
      }
      if (is_sparse) {
        double least = kInfinity;
        for (std::size_t i = 0; i < n; ++i) {
          double sum = few[i];
          for (const double *row : rows) sum += row[inner[i]];
          least = sum < least ? sum : least;
        }
        out[cell] = least;
      } else {
        out[cell] = least_sum(own, rows.data(), rows.size(), k, sums.data());
      }
      n_sums += is_sparse ? n : k;
      std::size_t d = depth;
      while (d > 0 && ++at[d - 1] == open[bucket.scope[d - 1]].size()) at[--d] = 0;
      if (d == 0) return n_sums;
    }
  }

  // Entry (a, b) by variable: the most that all tables cost more in state a than in b.
  std::vector<std::vector<double>> more_;
  std::vector<std::size_t> n_states_;
  std::vector<std::size_t> first_;
  std::vector<Factor> factors_;
  std::vector<Bucket> buckets_;
  double constant_ = 0.0;
  mutable KeptMessages kept_;
};

}  // namespace

NB_MODULE(_minsum, module) {
  module.doc() = "Least sums of tables over shared variables (see _minsum.pyi for shapes).";
  nb::class_<Elimination>(module, "Elimination")
      .def(nb::init<std::vector<std::size_t>, const nb::sequence &>(), nb::arg("n_states"), nb::arg("factors"))
      .def("minimise", &Elimination::minimise, nb::arg("state_costs"))
      .def("least_by_state", &Elimination::least_by_state, nb::arg("state_costs"));
}
