// The bounds by which `Engine` leaves plans out: of an F_op, of a case, and of a combination begun.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "search_engine.h"

namespace t10::search {
namespace {

constexpr std::size_t kMaxBoundEntries = 6'000'000;
constexpr std::size_t kCasesTogether = 4096;
constexpr std::int64_t kMostElements = 1'000'000'000'000;  // more than any core holds

}  // namespace

std::unique_ptr<ComputeBound> compute_bound(const Problem &problem, const std::vector<Axes> &f_op,
                                            const IntervalFunction &least_sub_task) {
  Mask rotating = 0;
  for (const Operand &operand : problem.slots) rotating |= operand.rotating;
  std::vector<std::vector<std::int64_t>> lengths(problem.n_axes);
  std::vector<std::vector<std::int64_t>> parts(problem.n_axes);
  for (std::size_t axis = 0; axis < problem.n_axes; ++axis) {
    for (const Axes &row : f_op) parts[axis].push_back(row[axis]);
    std::sort(parts[axis].begin(), parts[axis].end());
    parts[axis].erase(std::unique(parts[axis].begin(), parts[axis].end()), parts[axis].end());
    for (const std::int64_t f : parts[axis]) lengths[axis].push_back(problem.part_length(axis, f));
  }
  double most_points = 0.0;
  for (const Axes &row : f_op) {
    double n_points = 1.0;
    for (std::size_t axis = 0; axis < problem.n_axes; ++axis)
      n_points *= static_cast<double>(problem.part_length(axis, row[axis]));
    most_points = std::max(most_points, n_points);
  }
  auto bound = std::make_unique<ComputeBound>(problem, lengths, parts, rotating, most_points);
  if (bound->n_entries() > kMaxBoundEntries) return nullptr;
  bound->fill(least_sub_task, problem.padding);
  return bound;
}

// Bounds what becomes of the output of every F_op: partial sums that do not rotate are reduced, and either takes time.
void Engine::bound_outputs() {
  if (costs_.least_reduce == nullptr || costs_.least_epilogue == nullptr) return;
  Memo<std::int64_t> asked(std::tuple_size<OutputKey>::value, "an output");
  std::vector<std::uint32_t> numbers;
  for (const Axes &f_op : f_op_) numbers.push_back(asked.index(output_key(f_op).data()));
  asked.answer([&](const double *const *columns, std::size_t n, double *out) {
    OutputCases cases;
    for (std::size_t k = 0; k < n; ++k) {
      OutputKey key{};
      for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::int64_t>(columns[i][k]);
      add_cases(key, k, cases);
      if (cases.moved.size() >= kCasesTogether || k + 1 == n) price_cases(cases, out);
    }
  });
  for (std::size_t i = 0; i < f_op_.size(); ++i) output_cycles_[i] = asked[numbers[i]];
}

Engine::OutputKey Engine::output_key(const Axes &f_op) const {
  const Axes lengths = lengths_of(f_op);
  const Operand &output = problem_.slots.back();
  OutputKey key{problem_.n_sharers(problem_.output(), f_op), output.n_elements(lengths), 1, 1};
  if (problem_.epilogue_inputs.empty()) return {key[0], key[1], key[1], kMostElements};
  for (const std::size_t axis : problem_.run_axes) {
    const std::int64_t longest = problem_.longest(axis, f_op[axis]);
    key[2] *= lengths[axis];
    key[3] = key[3] > kMostElements / longest ? kMostElements : key[3] * longest;
  }
  key[3] = std::max(key[2], key[3]);
  return key;
}

// Adds what may become of an output, of which the least counts: for every ring the reduction and epilogue that remain, for
// chunks of that size or more, and the arrival of what a member does not hold. A ring cuts runs into at most as many
// parts as it has members; the runs there may be are taken in ranges, each up to twice as long as the one before.
void Engine::add_cases(const OutputKey &key, std::size_t number, OutputCases &cases) const {
  constexpr auto kMost = static_cast<double>(kMostElements);
  const auto [n_sharers, n_elements, shortest_run, longest_run] = key;
  const auto item_bytes = static_cast<double>(problem_.slots.back().item_bytes);
  const bool is_one_run = problem_.epilogue_inputs.empty();
  for (std::int64_t ring = 1; ring <= n_sharers; ++ring) {
    if (n_sharers % ring != 0) continue;
    const std::int64_t held = ceil_div(n_elements, ring);
    const std::int64_t chunk = chunk_slots(held, n_sharers / ring);
    std::int64_t last = 0;
    for (std::int64_t run = std::min(ceil_div(shortest_run, ring), chunk); run <= longest_run; run = last + 1) {
      last = is_one_run ? longest_run : std::min(longest_run, 2 * run - 1);
      const std::array<double, OutputCases::kColumns> row{
          static_cast<double>(n_sharers / ring), static_cast<double>(held), static_cast<double>(chunk), kMost,
          static_cast<double>(run), static_cast<double>(last)};
      for (std::size_t i = 0; i < row.size(); ++i) cases.columns[i].push_back(row[i]);
      cases.moved.push_back(static_cast<double>(n_elements - held) * item_bytes * problem_.shift_per_byte);
      cases.numbers.push_back(number);
    }
  }
}

// Writes the least of every output's cases, and forgets them.
void Engine::price_cases(OutputCases &cases, double *out) const {
  const std::size_t n = cases.moved.size();
  std::vector<double> reduce(n);
  std::vector<double> epilogue(n);
  const auto &[members, held, chunk, most_elements, run, longest_run] = cases.columns;
  const double *const least_reduction[2] = {members.data(), held.data()};
  const double *const most_reduction[2] = {members.data(), most_elements.data()};
  costs_.least_reduce->least(least_reduction, most_reduction, n, reduce.data());
  const double *const least_epilogue[3] = {chunk.data(), run.data(), members.data()};
  const double *const most_epilogue[3] = {most_elements.data(), longest_run.data(), members.data()};
  costs_.least_epilogue->least(least_epilogue, most_epilogue, n, epilogue.data());
  for (const std::size_t number : cases.numbers) out[number] = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < n; ++k) {
    double &least = out[cases.numbers[k]];
    least = std::min(least, std::floor(reduce[k] + epilogue[k] + cases.moved[k]));
  }
  cases = OutputCases{};
}

// Whether the front beats all plans of an F_op that rotate and have parts of these lengths (`is_exact`) or at least of
// them: they hold at least a share of every sub-tensor, and what they do not hold must arrive (compute-shift model,
// theorem 4). A ring has at most as many members as there are positions, and its number divides that of the sharers and,
// its factors dividing the lengths, the product of these.
bool Engine::is_beaten(std::size_t f_row, const Axes &lengths, bool is_exact) const {
  if (!settings_.is_pruning) return false;
  const Axes &f_op = f_op_[f_row];
  Bound bound;
  bound.n_steps = 2.0;
  bound.root = root_;
  bound.cycles_per_step = task_cycles_ + advance_cycles_;
  bound.cycles = output_cycles_[f_row] + 2.0 * task_cycles_ + advance_cycles_;
  if (costs_.compute_bound != nullptr) bound.cycles += costs_.compute_bound->least(lengths);
  std::int64_t ring = 1;  // of the output, left by the loop
  for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot) {
    const Operand &operand = problem_.slots[slot];
    const std::int64_t n_elements = operand.n_covered(lengths, operand.rotating);
    std::int64_t positions = 1;
    for (std::size_t axis = 0; axis < problem_.n_axes; ++axis)
      if (has(operand.rotating, axis)) positions *= lengths[axis];
    const std::int64_t n_sharers = problem_.n_sharers(slot, f_op);
    ring = is_exact ? std::gcd(positions, n_sharers) : std::min(positions, n_sharers);
    const std::int64_t held = problem_.aligned(ceil_div(n_elements, ring) * operand.item_bytes);
    const auto whole = static_cast<double>(n_elements * operand.item_bytes);
    bound.n_bytes += held;
    bound.wholes[bound.n_wholes++] = whole;
    if (slot == problem_.output()) {
      bound.fixed_bytes += static_cast<double>(held);
    } else if (operand.is_weight) {
      bound.weight_bytes += whole;
    } else {
      bound.activation_bytes += whole;
      bound.cycles += problem_.fetch_base + std::min(problem_.fetch_per_byte, problem_.shift_per_byte) * whole;
    }
  }
  if (problem_.has_accumulator) {
    const std::int64_t n_slots = ceil_div(problem_.slots.back().n_elements(lengths),
                                          problem_.n_sharers(problem_.output(), f_op));
    const std::int64_t held = problem_.aligned(n_slots * problem_.result_item_bytes);
    bound.n_bytes += held;
    bound.fixed_bytes += static_cast<double>(held);
  }
  for (const Operand &operand : problem_.epilogue_inputs) {
    const std::int64_t n_elements = operand.n_covered(lengths, problem_.slots.back().rotating);
    const std::int64_t held = ceil_div(n_elements, ring) * operand.item_bytes;
    bound.n_bytes += problem_.aligned(held);
    bound.fixed_bytes += static_cast<double>(problem_.aligned(held));
    if (!operand.is_weight) bound.cycles += problem_.fetch_cycles(held, 1);
  }
  if (bound.n_bytes > problem_.capacity_bytes) return true;
  if (settings_.is_bytes_only) return front_.beats(bound.n_bytes, 0.0, f_row);
  bound.weight_cycles = problem_.shift_per_byte;
  bound.activation_cycles = std::max(0.0, problem_.shift_per_byte - problem_.fetch_per_byte);
  std::sort(bound.wholes.begin(), bound.wholes.begin() + static_cast<std::ptrdiff_t>(bound.n_wholes));
  return front_.beats(bound, f_row);
}

// Whether no plan that adds the rest to a prefix can be on the front.
bool Engine::is_hopeless(const Prefix &prefix, const Rest &rest) const {
  if (!settings_.is_pruning) return false;
  const std::int64_t n_bytes = prefix.n_bytes + rest.n_bytes;
  if (n_bytes > problem_.capacity_bytes) return true;
  const std::size_t f_row = case_->opened->f_row;
  if (settings_.is_bytes_only) return front_.beats(n_bytes, 0.0, f_row);
  Bound bound;
  bound.n_bytes = n_bytes;
  bound.n_steps = prefix.n_steps;
  bound.kept_bytes = static_cast<double>(prefix.n_bytes);
  bound.rings = prefix.rings;
  bound.root = root_;
  bound.cycles_per_step = task_cycles_ + advance_cycles_;
  bound.weight_cycles = problem_.shift_per_byte;
  bound.activation_cycles = std::max(0.0, problem_.shift_per_byte - problem_.fetch_per_byte);
  bound.weight_bytes = rest.weight_bytes;
  bound.activation_bytes = rest.activation_bytes;
  bound.fixed_bytes = rest.fixed_bytes;
  bound.n_wholes = rest.n_wholes;
  std::copy_n(rest.wholes.begin(), rest.n_wholes, bound.wholes.begin());
  // `total` counts weights and activations as if nothing of them were held, `cycles` as if all were.
  bound.cycles = case_->compute_bound + prefix.cycles + rest.total - rest.weight_bytes * bound.weight_cycles -
                 rest.activation_bytes * bound.activation_cycles + prefix.n_steps * bound.cycles_per_step -
                 advance_cycles_ + prefix.n_moved * problem_.shift_per_byte;
  return front_.beats(bound, f_row);
}

}  // namespace t10::search
