#include "search_engine.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "search_place.h"

namespace t10::search {
namespace {

constexpr std::size_t kChunk = 64;            // cases opened together
constexpr std::size_t kLeaves = 4096;         // plans priced together
constexpr std::size_t kMaxBoundEntries = 6'000'000;
constexpr std::size_t kTicks = 4096;

// Cycles of all advances of a nest of `n` loops under its best order: most expensive outermost (theorem 3).
double nest_cycles(std::array<double, kMaxAxes> &advance, std::array<double, kMaxAxes> &steps, std::size_t n) {
  for (std::size_t i = 1; i < n; ++i)
    for (std::size_t j = i; j > 0 && advance[j - 1] < advance[j]; --j) {
      std::swap(advance[j - 1], advance[j]);
      std::swap(steps[j - 1], steps[j]);
    }
  double cycles = 0.0;
  double sweeps = 1.0;
  for (std::size_t i = 0; i < n; ++i) {
    cycles += advance[i] * (steps[i] - 1.0) * sweeps;
    sweeps *= steps[i];
  }
  return cycles;
}

}  // namespace

Engine::Engine(const Problem &problem, std::vector<Axes> f_op, const CostFunctions &costs, Settings settings,
               Hooks hooks)
    : problem_(problem),
      f_op_(std::move(f_op)),
      costs_(costs),
      settings_(settings),
      hooks_(std::move(hooks)),
      boxes_(problem.n_axes, "a sub-task"),
      reductions_(2, "a reduction and epilogue"),
      builder_(problem_, reductions_) {
  for (const Operand &operand : problem_.slots) blocks_ |= operand.rotating & ~operand.simple;
  statistics_.n_partitions = f_op_.size();
}

void Engine::run() {
  price_still();
  advance_cycles_ = costs_.shift->least();
  if (settings_.is_pruning && !settings_.is_bytes_only) bound_compute();
  const std::vector<std::size_t> rows = order();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    tick();
    open(rows[i]);
    done_ = static_cast<double>(i + 1) / static_cast<double>(rows.size());
  }
  work_off();
  statistics_.n_boxes = boxes_.size();
}

Axes Engine::lengths_of(const Axes &f_op) const {
  Axes lengths{};
  for (std::size_t axis = 0; axis < problem_.n_axes; ++axis)
    lengths[axis] = ceil_div(problem_.extents[axis], f_op[axis]);
  return lengths;
}

// Prices every F_op without rotation and puts the best on the front.
void Engine::price_still() {
  still_.reserve(f_op_.size());
  for (const Axes &f_op : f_op_) {
    const Axes lengths = lengths_of(f_op);
    const std::int64_t n_members = problem_.n_sharers(problem_.output(), f_op);
    Holding all = output_holding(problem_, lengths, n_members);
    for (std::size_t slot = 0; slot < problem_.output(); ++slot) {
      const Holding one = input_holding(problem_, problem_.slots[slot], lengths);
      all.n_bytes += one.n_bytes;
      all.fetch += one.fetch;
    }
    const std::int64_t key[2] = {n_members, problem_.slots.back().n_elements(lengths)};
    still_.push_back({all.n_bytes, all.fetch, boxes_.index(lengths.data()), reductions_.index(key)});
  }
  answer();
  const std::vector<std::int32_t> ft(problem_.slots.size() * problem_.n_axes, 1);
  statistics_.n_evaluated += f_op_.size();
  for (std::size_t i = 0; i < f_op_.size(); ++i) {
    const Still &one = still_[i];
    if (one.n_bytes > problem_.capacity_bytes) continue;
    const double cycles = settings_.is_bytes_only ? 0.0 : one.fetch + boxes_[one.box] + reductions_[one.reduction];
    Point point{one.n_bytes, cycles, i, {}};
    if (!front_.wants(point)) continue;
    point.ft = ft;
    front_.insert(std::move(point));
  }
}

void Engine::bound_compute() {
  if (costs_.least_sub_task == nullptr) return;
  Mask rotating = 0;
  for (const Operand &operand : problem_.slots) rotating |= operand.rotating;
  std::vector<std::vector<std::int64_t>> lengths(problem_.n_axes);
  std::vector<std::vector<std::int64_t>> parts(problem_.n_axes);
  for (std::size_t axis = 0; axis < problem_.n_axes; ++axis) {
    for (const Axes &f_op : f_op_) parts[axis].push_back(f_op[axis]);
    std::sort(parts[axis].begin(), parts[axis].end());
    parts[axis].erase(std::unique(parts[axis].begin(), parts[axis].end()), parts[axis].end());
    for (const std::int64_t f : parts[axis]) lengths[axis].push_back(ceil_div(problem_.extents[axis], f));
  }
  auto bound = std::make_unique<ComputeBound>(problem_, lengths, parts, rotating);
  if (bound->n_entries() > kMaxBoundEntries) return;
  bound->fill(*costs_.least_sub_task, problem_.padding);
  compute_bound_ = std::move(bound);
  task_cycles_ = compute_bound_->step_cycles();
}

// Returns the F_op, alternating between the fastest and the smallest without rotation.
std::vector<std::size_t> Engine::order() const {
  const std::size_t n = f_op_.size();
  std::vector<std::size_t> by_time(n);
  std::iota(by_time.begin(), by_time.end(), std::size_t{0});
  std::vector<std::size_t> by_bytes = by_time;
  const auto cycles = [&](std::size_t i) {
    return settings_.is_bytes_only ? 0.0 : still_[i].fetch + boxes_[still_[i].box] + reductions_[still_[i].reduction];
  };
  std::sort(by_time.begin(), by_time.end(), [&](std::size_t a, std::size_t b) {
    return cycles(a) != cycles(b) ? cycles(a) < cycles(b) : a < b;
  });
  std::sort(by_bytes.begin(), by_bytes.end(), [&](std::size_t a, std::size_t b) {
    return still_[a].n_bytes != still_[b].n_bytes ? still_[a].n_bytes < still_[b].n_bytes : a < b;
  });
  std::vector<std::size_t> result;
  std::vector<char> is_taken(n, 0);
  for (std::size_t i = 0; i < n; ++i)
    for (const std::size_t row : {by_time[i], by_bytes[i]})
      if (is_taken[row]++ == 0) result.push_back(row);
  return result;
}

// Whether the front beats all plans of an F_op that rotate and have parts of at least these lengths: they hold at least
// a share of every sub-tensor, and what they do not hold must arrive (compute-shift model, theorem 4).
bool Engine::is_beaten(std::size_t f_row, const Axes &lengths) const {
  if (!settings_.is_pruning) return false;
  const Axes &f_op = f_op_[f_row];
  std::int64_t n_bytes = 0;
  double full_bytes = 0.0;
  double cycles = compute_bound_ ? compute_bound_->least(lengths_of(f_op)) : 0.0;
  std::int64_t ring = 1;  // of the output, left by the loop
  for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot) {
    const Operand &operand = problem_.slots[slot];
    const std::int64_t n_elements = operand.n_elements(lengths);
    std::int64_t positions = 1;
    for (std::size_t axis = 0; axis < problem_.n_axes; ++axis)
      if (has(operand.rotating, axis)) positions *= lengths[axis];
    ring = std::min(positions, problem_.n_sharers(slot, f_op));
    const std::int64_t held = ceil_div(n_elements, ring) * operand.item_bytes;
    n_bytes += problem_.aligned(held);
    full_bytes += static_cast<double>(n_elements * operand.item_bytes);
    if (!operand.is_weight && slot != problem_.output()) cycles += problem_.fetch_cycles(held, 1);
  }
  if (problem_.has_accumulator) {
    const std::int64_t n_slots = ceil_div(problem_.slots.back().n_elements(lengths),
                                          problem_.n_sharers(problem_.output(), f_op));
    n_bytes += problem_.aligned(n_slots * problem_.result_item_bytes);
  }
  for (const Operand &operand : problem_.epilogue_inputs) {
    const std::int64_t held = ceil_div(operand.n_elements(lengths), ring) * operand.item_bytes;
    n_bytes += problem_.aligned(held);
    if (!operand.is_weight) cycles += problem_.fetch_cycles(held, 1);
  }
  if (n_bytes > problem_.capacity_bytes) return true;
  if (settings_.is_bytes_only) return front_.beats(n_bytes, 0.0, f_row);
  constexpr double kLeastSteps = 2.0;
  const double certain = cycles + kLeastSteps * task_cycles_ + advance_cycles_;
  return front_.beats({n_bytes, certain, kLeastSteps, 0.0, full_bytes, task_cycles_ + advance_cycles_,
                       costs_.shift->rate()}, f_row);
}

// Collects the cases of an F_op: its part lengths, as they are and padded in every way temporal factors can ask for.
void Engine::open(std::size_t f_row) {
  const Axes lengths = lengths_of(f_op_[f_row]);
  if (is_beaten(f_row, lengths)) return;
  builder_.start(f_row, f_op_[f_row], lengths);
  padded_lengths_.clear();
  for (const std::size_t axis : builder_.active()) padded_lengths_.push_back(builder_.padded_lengths(axis));
  Axes padded = lengths;
  pad(0, padded);
}

void Engine::pad(std::size_t place, Axes &lengths) {
  const std::vector<std::size_t> &active = builder_.active();
  if (place == active.size()) {
    Case one = builder_.build(lengths);
    if (one.movers.empty()) return;
    one.compute_bound = compute_bound_ ? compute_bound_->least(lengths_of(one.f_op)) : 0.0;
    chunk_.push_back(std::move(one));
    if (chunk_.size() >= kChunk) work_off();
    return;
  }
  const std::int64_t shortest = lengths[active[place]];
  const std::size_t f_row = builder_.f_row();
  for (const std::int64_t length : padded_lengths_[place]) {
    lengths[active[place]] = length;
    // All bounds rise with the lengths: where one is too long, so are those behind it.
    if (length > shortest && is_beaten(f_row, lengths)) break;
    pad(place + 1, lengths);
  }
  lengths[active[place]] = shortest;
}

void Engine::work_off() {
  answer();
  for (const Case &one : chunk_) {
    builder_.price(*one.slots.back());
    case_ = &one;
    combine(one);
  }
  flush();
  chunk_.clear();
}

// Goes through all combinations of ft rows of a case.
void Engine::combine(const Case &one) {
  if (is_beaten(one.f_row, one.lengths)) return;
  ++statistics_.n_opened;
  const std::size_t n_movers = one.movers.size();
  prefixes_.assign(n_movers + 1, Prefix{});
  rests_.assign(n_movers + 1, Rest{});
  chosen_.assign(n_movers, 0);
  Prefix &first = prefixes_[0];
  for (std::size_t i = 0; i < one.active.size(); ++i) {
    first.most[i] = 1;
    first.pace[i] = static_cast<std::int32_t>(one.lengths[one.active[i]]);
  }
  for (const auto &slot : one.slots) {
    if (slot->size() > 1) continue;
    first.n_bytes += slot->n_bytes[0];
    if (!settings_.is_bytes_only) first.cycles += slot->cycles[0];
  }
  for (std::size_t depth = n_movers; depth-- > 0;) {
    const SlotRows &slot = *one.slots[one.movers[depth]];
    const Rest &after = rests_[depth + 1];
    rests_[depth] = {after.n_bytes + slot.least_bytes, after.full_bytes + slot.least_full_bytes,
                     after.cycles + slot.least_cycles};
  }
  descend(0);
}

void Engine::descend(std::size_t depth) {
  const SlotRows &slot = *case_->slots[case_->movers[depth]];
  const bool is_last = depth + 1 == case_->movers.size();
  for (std::size_t row = 0; row < slot.size(); ++row) {
    if (!extend(depth, row)) continue;
    chosen_[depth] = static_cast<std::uint32_t>(row);
    if (is_last) {
      finish();
    } else {
      descend(depth + 1);
    }
  }
  tick();
}

// Adds a row to what is chosen; returns false where nothing below can be on the front.
bool Engine::extend(std::size_t depth, std::size_t row) {
  const SlotRows &slot = *case_->slots[case_->movers[depth]];
  const Prefix &before = prefixes_[depth];
  Prefix &after = prefixes_[depth + 1];
  const Rest &rest = rests_[depth + 1];
  after.n_bytes = before.n_bytes + slot.n_bytes[row];
  if (settings_.is_pruning && after.n_bytes + rest.n_bytes > problem_.capacity_bytes) return false;
  after.cycles = before.cycles + (settings_.is_bytes_only ? 0.0 : slot.cycles[row]);
  after.n_moved = before.n_moved + static_cast<double>(slot.n_moved[row]);
  after.n_steps = 1.0;
  const std::size_t n = case_->active.size();
  const std::size_t offset = row * n;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t t = slot.ft[offset + i];
    after.most[i] = std::max(before.most[i], t);
    after.pace[i] = std::min(before.pace[i], slot.pace[offset + i]);
    after.unit[i] = before.unit[i] + slot.unit[offset + i];
    after.n_steps *= static_cast<double>(after.most[i]);
  }
  if (blocks_ != 0) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t t = slot.ft[offset + i];
      after.least[i] = t == 1 ? before.least[i] : before.least[i] == 0 ? t : std::min(before.least[i], t);
      after.block[i] = before.block[i] + slot.block[offset + i];
      // A dim over several axes moves in whole blocks: everything that rotates with it must do so in equal parts.
      if (after.block[i] != 0 && after.least[i] != after.most[i]) return false;
    }
  }
  if (!settings_.is_pruning) return true;
  if (settings_.is_bytes_only) return !front_.beats(after.n_bytes + rest.n_bytes, 0.0, case_->f_row);
  const double cycles = case_->compute_bound + after.cycles + rest.cycles + after.n_steps * task_cycles_ +
                        (after.n_steps - 1.0) * advance_cycles_ + after.n_moved * costs_.shift->rate();
  return !front_.beats({after.n_bytes + rest.n_bytes, cycles, after.n_steps, static_cast<double>(after.n_bytes),
                        rest.full_bytes, task_cycles_ + advance_cycles_, costs_.shift->rate()}, case_->f_row);
}

double Engine::shift_cycles(const Prefix &prefix, std::size_t n_active) const {
  std::array<double, kMaxAxes> advance;
  std::array<double, kMaxAxes> steps;
  std::size_t n_loops = 0;
  for (std::size_t i = 0; i < n_active; ++i) {
    if (prefix.most[i] == 1) continue;
    advance[n_loops] = (*costs_.shift)[prefix.unit[i] * prefix.pace[i] + prefix.block[i]];
    steps[n_loops++] = prefix.most[i];
  }
  return nest_cycles(advance, steps, n_loops);
}

// A combination is complete: all but the price of its sub-task is in tables.
void Engine::finish() {
  const Prefix &all = prefixes_[case_->movers.size()];
  if (all.n_steps == 1.0 || !is_padded_so()) return;
  if (all.n_bytes > problem_.capacity_bytes) {
    ++statistics_.n_evaluated;
    return;
  }
  const std::size_t n = case_->active.size();
  const double cycles = settings_.is_bytes_only ? 0.0 : all.cycles + shift_cycles(all, n);
  if (settings_.is_pruning &&
      front_.beats(all.n_bytes, case_->compute_bound + all.n_steps * task_cycles_ + cycles, case_->f_row))
    return;
  Axes box = case_->lengths;
  for (std::size_t i = 0; i < n; ++i) box[case_->active[i]] = all.pace[i];
  const auto rows = static_cast<std::uint32_t>(leaf_rows_.size());
  leaf_rows_.insert(leaf_rows_.end(), chosen_.begin(), chosen_.end());
  const auto number = static_cast<std::uint32_t>(case_ - chunk_.data());
  leaves_.push_back({number, rows, boxes_.index(box.data()), all.n_bytes, cycles, all.n_steps});
  if (leaves_.size() >= kLeaves) flush();
}

// Whether the factors chosen pad every part just to the lengths of the case: no smaller multiple of all would do.
bool Engine::is_padded_so() const {
  const Prefix &all = prefixes_[case_->movers.size()];
  const std::size_t n = case_->active.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (all.most[i] > case_->n_padded[i]) continue;
    std::int64_t multiple = 1;
    for (std::size_t depth = 0; depth < case_->movers.size(); ++depth) {
      const SlotRows &slot = *case_->slots[case_->movers[depth]];
      multiple = std::lcm(multiple, static_cast<std::int64_t>(slot.ft[chosen_[depth] * n + i]));
    }
    if (multiple <= case_->n_padded[i]) return false;
  }
  return true;
}

// Prices the waiting plans and puts the best of them on the front.
void Engine::flush() {
  answer();
  statistics_.n_evaluated += leaves_.size();
  for (const Leaf &leaf : leaves_) {
    const double cycles = settings_.is_bytes_only ? 0.0 : leaf.cycles + leaf.n_sub_tasks * boxes_[leaf.box];
    const Case &one = chunk_[leaf.number];
    if (front_.beats(leaf.n_bytes, cycles, one.f_row)) continue;
    offer({leaf.n_bytes, cycles, one.f_row, ft_of(one, leaf_rows_.data() + leaf.rows)});
  }
  leaves_.clear();
  leaf_rows_.clear();
}

void Engine::answer() {
  boxes_.answer([&](const double *const *columns, std::size_t n, double *out) {
    if (settings_.is_bytes_only) return std::fill_n(out, n, 0.0), void();
    costs_.sub_task->evaluate(columns, n, out);
  });
  reductions_.answer([&](const double *const *columns, std::size_t n, double *out) {
    if (settings_.is_bytes_only) return std::fill_n(out, n, 0.0), void();
    std::vector<double> chunk(n);
    std::vector<double> chunk_bytes(n);
    std::vector<double> epilogue(n);
    const auto item_bytes = static_cast<double>(problem_.slots.back().item_bytes);
    for (std::size_t k = 0; k < n; ++k) {
      chunk[k] = std::ceil(columns[1][k] / columns[0][k]);
      chunk_bytes[k] = chunk[k] * item_bytes;
    }
    const double *const slots[1] = {chunk.data()};
    costs_.epilogue->evaluate(slots, n, epilogue.data());
    const double *const members[3] = {columns[0], chunk_bytes.data(), chunk.data()};
    costs_.reduce->evaluate(members, n, out);
    for (std::size_t k = 0; k < n; ++k) out[k] += epilogue[k];
  });
}

void Engine::offer(Point point) {
  if (front_.wants(point) && is_placeable(point)) front_.insert(std::move(point));
}

bool Engine::is_placeable(const Point &point) {
  if (has_closed_form(problem_, f_op_[point.f_row], point.ft.data())) return true;
  ++statistics_.n_placements;
  return hooks_.is_placeable(point.f_row, point.ft);
}

std::vector<std::int32_t> Engine::ft_of(const Case &one, const std::uint32_t *rows) const {
  std::vector<std::int32_t> ft(problem_.slots.size() * problem_.n_axes, 1);
  const std::size_t n = one.active.size();
  for (std::size_t i = 0; i < one.movers.size(); ++i)
    for (std::size_t j = 0; j < n; ++j)
      ft[one.movers[i] * problem_.n_axes + one.active[j]] = one.slots[one.movers[i]]->ft[rows[i] * n + j];
  return ft;
}

void Engine::tick() {
  if (++n_ticks_ % kTicks == 0) hooks_.poll(done_);
}

}  // namespace t10::search
