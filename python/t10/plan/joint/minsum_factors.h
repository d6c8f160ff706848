// Tables over few variables, laid out for elimination: those that are given the same array share one.

#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

namespace t10::minsum {

// A table over `scope`, row-major in the order of the scope: the variable that is eliminated first comes last. `first`
// is the number of the first table with these costs; they were `given` in the order of the scope before.
struct Factor {
  std::vector<std::size_t> scope;
  const double *given = nullptr;
  std::shared_ptr<const std::vector<double>> cost;
  std::size_t first = 0;
};

// What was laid out, by the array that was given, its shape, and the dim of it that each dim is.
using LaidOut = std::map<std::tuple<const double *, std::vector<std::size_t>, std::vector<std::size_t>>,
                         std::shared_ptr<const std::vector<double>>>;

// Returns costs of a `shape` in another order: dim i of what is returned is dim `dims[i]` of what is given.
inline std::vector<double> permuted(const double *given, const std::vector<std::size_t> &shape,
                                    const std::vector<std::size_t> &dims) {
  std::vector<std::size_t> strides(dims.size()), lengths(dims.size());
  std::size_t n_cells = 1;
  for (std::size_t j = shape.size(); j-- > 0;) {
    const auto at = static_cast<std::size_t>(std::find(dims.begin(), dims.end(), j) - dims.begin());
    strides[at] = n_cells;
    lengths[at] = shape[j];
    n_cells *= shape[j];
  }
  std::vector<double> result(n_cells);
  std::vector<std::size_t> at(dims.size(), 0);
  std::size_t from = 0;
  for (double &cost : result) {
    cost = given[from];
    for (std::size_t d = dims.size(); d-- > 0;) {
      from += strides[d];
      if (++at[d] < lengths[d]) break;
      from -= strides[d] * at[d];
      at[d] = 0;
    }
  }
  return result;
}

// Lays out the costs that a factor was given, its variables in the order of `scope`.
inline void lay_out_as(Factor &factor, const std::vector<std::size_t> &scope, const std::vector<std::size_t> &n_states,
                       LaidOut &known) {
  std::vector<std::size_t> shape, dims;
  for (const std::size_t v : factor.scope) shape.push_back(n_states[v]);
  const auto first = factor.scope.begin();
  for (const std::size_t v : scope)
    dims.push_back(static_cast<std::size_t>(std::find(first, factor.scope.end(), v) - first));
  auto &cost = known[{factor.given, shape, dims}];
  if (!cost) cost = std::make_shared<std::vector<double>>(permuted(factor.given, shape, dims));
  factor.cost = cost;
  factor.scope = scope;
}

}  // namespace t10::minsum
