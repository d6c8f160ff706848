// t10.plan.joint._minsum: the least sum of tables over shared variables, by eliminating one variable after the other.
//
// A problem has variables with a few states each and tables ("factors") over small sets of them. Which variables meet in
// which table never changes, so the order, the scopes of all messages and every stride are worked out once; only the
// costs of single states change from call to call. Work per call: sum over variables of the product of the numbers of
// states it meets when it goes (K^(treewidth + 1) each).

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kMaxScope = 12;
constexpr std::size_t kMaxCells = std::size_t{1} << 24;

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A table over `scope`, row-major in the order of the scope.
struct Factor {
  std::vector<std::size_t> scope;
  std::vector<double> cost;
};

// One addend of a bucket: which table, and its stride along every variable of the bucket's scope, the eliminated last.
struct Addend {
  bool is_message;
  std::size_t number;
  std::vector<std::size_t> strides;
};

// The elimination of `variable`: the minimum over its states as a table over `scope`.
struct Bucket {
  std::size_t variable;
  std::vector<std::size_t> scope;
  std::vector<Addend> addends;
  std::size_t n_cells;
};

std::size_t product(const std::vector<std::size_t> &scope, const std::vector<std::size_t> &n_states) {
  std::size_t cells = 1;
  for (std::size_t v : scope) {
    cells *= n_states[v];
    if (cells > kMaxCells) return kMaxCells + 1;
  }
  return cells;
}

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

  // Returns (least sum, state of every variable); infinity where no assignment has finite cost.
  nb::tuple minimise(const Doubles &state_costs) const {
    if (state_costs.shape(0) != first_.back())
      throw std::invalid_argument("minimise: expected " + std::to_string(first_.back()) + " state costs, found " +
                                  std::to_string(state_costs.shape(0)));
    std::vector<std::int64_t> chosen(n_states_.size(), 0);
    double least = 0.0;
    {
      const nb::gil_scoped_release unlocked;
      least = solve(state_costs.data(), chosen);
    }
    return nb::make_tuple(least, chosen);
  }

  std::size_t n_cells() const {
    std::size_t cells = 0;
    for (const Bucket &bucket : buckets_) cells += bucket.n_cells * n_states_[bucket.variable];
    return cells;
  }

 private:
  void add(const nb::tuple &item) {
    Factor factor;
    factor.scope = nb::cast<std::vector<std::size_t>>(item[0]);
    const auto cost = nb::cast<Doubles>(item[1]);
    for (std::size_t v : factor.scope)
      if (v >= n_states_.size()) throw std::invalid_argument("Elimination: a factor names variable " + std::to_string(v));
    if (cost.shape(0) != product(factor.scope, n_states_))
      throw std::invalid_argument("Elimination: a factor has " + std::to_string(cost.shape(0)) + " costs, expected " +
                                  std::to_string(product(factor.scope, n_states_)));
    factor.cost.assign(cost.data(), cost.data() + cost.shape(0));
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
    std::vector<std::vector<std::size_t>> message_scope;
    while (!queue.empty()) {
      const std::size_t v = queue.begin()->second;
      queue.erase(queue.begin());
      Bucket bucket{v, {near[v].begin(), near[v].end()}, {}, product({near[v].begin(), near[v].end()}, n_states_)};
      if (bucket.scope.size() > kMaxScope || bucket.n_cells * n_states_[v] > kMaxCells)
        throw std::invalid_argument("Elimination: variables are too entangled (a message would need " +
                                    std::to_string(bucket.scope.size()) + " variables)");
      for (const auto &[is_message, number] : tables[v])
        bucket.addends.push_back(
            addend(is_message, number, is_message ? message_scope[number] : factors_[number].scope, bucket));
      for (std::size_t u : bucket.scope) {
        for (const auto &table : tables[v]) tables[u].erase(table);
        if (!bucket.scope.empty()) tables[u].insert({true, message_scope.size()});
        near[u].erase(v);
        for (std::size_t w : bucket.scope)
          if (w != u) near[u].insert(w);
      }
      for (std::size_t u : bucket.scope) {
        queue.erase({weights[u], u});
        queue.insert({weights[u] = weight(u), u});
      }
      message_scope.push_back(bucket.scope);
      buckets_.push_back(std::move(bucket));
    }
  }

  Addend addend(bool is_message, std::size_t number, const std::vector<std::size_t> &scope, const Bucket &bucket) const {
    Addend result{is_message, number, std::vector<std::size_t>(bucket.scope.size() + 1, 0)};
    std::size_t stride = 1;
    for (std::size_t i = scope.size(); i-- > 0;) {
      const auto at = std::find(bucket.scope.begin(), bucket.scope.end(), scope[i]);
      result.strides[static_cast<std::size_t>(at - bucket.scope.begin())] = stride;
      stride *= n_states_[scope[i]];
    }
    return result;
  }

  double solve(const double *state_costs, std::vector<std::int64_t> &chosen) const {
    std::vector<std::vector<double>> messages(buckets_.size());
    std::vector<std::vector<std::uint16_t>> best(buckets_.size());
    double constant = 0.0;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const Bucket &bucket = buckets_[b];
      messages[b].resize(bucket.n_cells);
      best[b].resize(bucket.n_cells);
      eliminate(bucket, state_costs + first_[bucket.variable], messages, messages[b], best[b]);
      if (bucket.scope.empty()) constant += messages[b][0];
      for (const Addend &a : bucket.addends)
        if (a.is_message) std::vector<double>().swap(messages[a.number]);
    }
    if (constant == kInfinity) return kInfinity;
    for (std::size_t b = buckets_.size(); b-- > 0;) {
      std::size_t cell = 0;
      for (std::size_t v : buckets_[b].scope) cell = cell * n_states_[v] + static_cast<std::size_t>(chosen[v]);
      chosen[buckets_[b].variable] = best[b][cell];
    }
    return constant;
  }

  void eliminate(const Bucket &bucket, const double *own, const std::vector<std::vector<double>> &messages,
                 std::vector<double> &out, std::vector<std::uint16_t> &best) const {
    const std::size_t depth = bucket.scope.size();
    const std::size_t k = n_states_[bucket.variable];
    std::vector<const double *> tables;
    std::vector<std::size_t> offsets(bucket.addends.size(), 0);
    for (const Addend &a : bucket.addends)
      tables.push_back(a.is_message ? messages[a.number].data() : factors_[a.number].cost.data());
    std::vector<std::size_t> at(depth, 0);
    std::vector<double> sums(k);
    for (std::size_t cell = 0; cell < bucket.n_cells; ++cell) {
      std::copy(own, own + k, sums.begin());
      for (std::size_t t = 0; t < tables.size(); ++t) {
        const double *row = tables[t] + offsets[t];
        const std::size_t stride = bucket.addends[t].strides[depth];
        for (std::size_t x = 0; x < k; ++x) sums[x] += row[x * stride];
      }
      std::size_t least = 0;
      for (std::size_t x = 1; x < k; ++x)
        if (sums[x] < sums[least]) least = x;
      out[cell] = sums[least];
      best[cell] = static_cast<std::uint16_t>(least);
      for (std::size_t d = depth; d-- > 0;) {
        const bool is_last = ++at[d] == n_states_[bucket.scope[d]];
        for (std::size_t t = 0; t < tables.size(); ++t) {
          const std::size_t stride = bucket.addends[t].strides[d];
          offsets[t] += stride;
          if (is_last) offsets[t] -= stride * n_states_[bucket.scope[d]];
        }
        if (!is_last) break;
        at[d] = 0;
      }
    }
  }

  std::vector<std::size_t> n_states_;
  std::vector<std::size_t> first_;
  std::vector<Factor> factors_;
  std::vector<Bucket> buckets_;
};

}  // namespace

NB_MODULE(_minsum, module) {
  module.doc() = "Least sums of tables over shared variables (see _minsum.pyi for shapes).";
  nb::class_<Elimination>(module, "Elimination")
      .def(nb::init<std::vector<std::size_t>, const nb::sequence &>(), nb::arg("n_states"), nb::arg("factors"))
      .def("minimise", &Elimination::minimise, nb::arg("state_costs"))
      .def_prop_ro("n_cells", &Elimination::n_cells);
}
