#include "search_engine.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "search_place.h"

namespace t10::search {
namespace {

constexpr std::size_t kChunk = 1024;          // cases opened together
constexpr std::size_t kOpened = 128;          // F_op opened together
constexpr std::size_t kLeaves = 8192;         // plans priced together: the fastest of many beat most others
constexpr std::size_t kWaiting = 16000;       // plans whose exact prices wait for each other
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

// Adds what a row does along the active axes to what was chosen before; returns the number of sub-tasks.
template <bool kHasBlocks, class PerAxis>
inline double extended(const PerAxis *before, const RowAxis *own, std::size_t n, PerAxis *after) {
  double n_steps = 1.0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t t = own[i].t;
    after[i].most = std::max(before[i].most, t);
    after[i].pace = std::min(before[i].pace, own[i].pace);
    after[i].unit = before[i].unit + own[i].unit;
    if (kHasBlocks) {
      const std::int32_t least = before[i].least == 0 ? t : std::min(before[i].least, t);
      after[i].least = t == 1 ? before[i].least : least;
      after[i].block = before[i].block + own[i].block;
    }
    n_steps *= static_cast<double>(after[i].most);
  }
  return n_steps;
}

template <class PerAxis>
inline double extend(const PerAxis *before, const RowAxis *own, std::size_t n, PerAxis *after, bool has_blocks) {
  return has_blocks ? extended<true>(before, own, n, after) : extended<false>(before, own, n, after);
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
      wholes_(problem.n_axes, "a sub-task"),
      reductions_(std::tuple_size<ReductionKey>::value, "a reduction and epilogue"),
      builder_(problem_, reductions_) {
  for (const Operand &operand : problem_.slots) blocks_ |= operand.rotating & ~operand.simple;
  statistics_.n_partitions = f_op_.size();
  std::size_t most = 1;
  for (std::size_t axis = 0; axis < problem_.n_axes; ++axis) {
    std::size_t n = 0;
    for (const Operand &operand : problem_.slots) n += has(operand.rotating, axis) ? 1 : 0;
    most = std::max(most, n);
  }
  root_ = 1.0 / static_cast<double>(most);
}

void Engine::run() {
  price_still();
  advance_cycles_ = costs_.shift->least();
  output_cycles_.assign(f_op_.size(), 0.0);
  if (!settings_.is_pruning || settings_.is_bytes_only) costs_.compute_bound = nullptr;
  if (costs_.compute_bound != nullptr) task_cycles_ = costs_.compute_bound->step_cycles();
  if (settings_.is_pruning && !settings_.is_bytes_only) bound_outputs();
  const std::vector<std::size_t> rows = order();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    tick();
    open(rows[i]);
    done_ = static_cast<double>(i + 1) / static_cast<double>(rows.size());
  }
  work_off();
  price_waiting();
  statistics_.n_boxes = boxes_.size() + wholes_.size();
}

Axes Engine::lengths_of(const Axes &f_op) const {
  Axes lengths{};
  for (std::size_t axis = 0; axis < problem_.n_axes; ++axis)
    lengths[axis] = problem_.part_length(axis, f_op[axis]);
  return lengths;
}

// Prices every F_op without rotation and puts the best on the front.
void Engine::price_still() {
  still_.reserve(f_op_.size());
  for (const Axes &f_op : f_op_) {
    const Axes lengths = lengths_of(f_op);
    const std::int64_t n_members = problem_.n_sharers(problem_.output(), f_op);
    const std::int64_t n_results = problem_.slots.back().n_elements(lengths);
    Holding all = output_holding(problem_, lengths, n_results, n_members);
    for (std::size_t slot = 0; slot < problem_.output(); ++slot) {
      const Holding one = input_holding(problem_, problem_.slots[slot], lengths,
                                        problem_.slots[slot].n_elements(lengths));
      all.n_bytes += one.n_bytes;
      all.fetch += one.fetch;
    }
    const ReductionKey key = reduction_key(problem_, lengths, n_results, n_members);
    still_.push_back({all.n_bytes, all.fetch, still_boxes().index(lengths.data()), reductions_.index(key.data())});
  }
  answer();
  const std::vector<std::int32_t> ft(problem_.slots.size() * problem_.n_axes, 1);
  chunk_.resize(kChunk);
  statistics_.n_evaluated += f_op_.size();
  for (std::size_t i = 0; i < f_op_.size(); ++i) {
    const Still &one = still_[i];
    if (one.n_bytes > problem_.capacity_bytes) continue;
    Point point{one.n_bytes, still_cycles(i), i, {}};
    if (is_bounding() && front_.beats(point.n_bytes, point.cycles, i)) continue;
    point.ft = ft;
    if (!is_exact())
      waiting_.push_back({std::move(point), still_boxes()[one.box], reductions_[one.reduction], one.fetch});
    else if (front_.wants(point))
      front_.insert(std::move(point));
  }
  price_waiting();
}

// Cycles of an F_op without rotation, or a lower bound of them.
double Engine::still_cycles(std::size_t f_row) const {
  const Still &one = still_[f_row];
  return settings_.is_bytes_only ? 0.0 : one.fetch + still_boxes()[one.box] + reductions_[one.reduction];
}

// Returns the F_op, alternating between the fastest and the smallest without rotation.
std::vector<std::size_t> Engine::order() const {
  const std::size_t n = f_op_.size();
  std::vector<std::size_t> by_time(n);
  std::iota(by_time.begin(), by_time.end(), std::size_t{0});
  std::vector<std::size_t> by_bytes = by_time;
  const auto cycles = [&](std::size_t i) { return still_cycles(i); };
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

// Collects the cases of an F_op: its part lengths, as they are and padded in every way temporal factors can ask for.
void Engine::open(std::size_t f_row) {
  const Axes lengths = lengths_of(f_op_[f_row]);
  if (is_beaten(f_row, lengths, false)) return;
  // Not all at a time, so that their tables are used again.
  if (n_opened_ == kOpened) work_off();
  if (n_chunk_ == 0) n_opened_ = 0;
  if (n_opened_ == opened_.size()) opened_.push_back(std::make_unique<Opened>());
  Opened &opened = *opened_[n_opened_];
  builder_.start(opened, f_row, f_op_[f_row], lengths);
  if (opened.active.empty()) return;
  builder_.prepare();
  ++n_opened_;
  Axes padded = lengths;
  pad(0, padded);
}

void Engine::pad(std::size_t place, Axes &lengths) {
  const Opened &opened = *opened_[n_opened_ - 1];
  if (place == opened.active.size()) {
    if (is_beaten(opened.f_row, lengths, true)) return;
    builder_.build(choice_, chunk_[n_chunk_]);
    if (chunk_[n_chunk_].n_movers == 0) return;
    chunk_[n_chunk_++].compute_bound =
        costs_.compute_bound != nullptr ? costs_.compute_bound->least(lengths) : 0.0;
    if (n_chunk_ == kChunk) work_off();
    return;
  }
  const std::size_t axis = opened.active[place];
  for (std::size_t i = 0; i < opened.lengths[place].size(); ++i) {
    choice_[place] = i;
    lengths[axis] = opened.lengths[place][i];
    // All bounds rise with the lengths: where one is too long, so are those behind it.
    if (i > 0 && is_beaten(opened.f_row, lengths, false)) break;
    pad(place + 1, lengths);
  }
  lengths[axis] = opened.shortest[axis];
}

void Engine::work_off() {
  answer();
  for (std::size_t i = 0; i < n_chunk_; ++i) {
    builder_.price(*chunk_[i].slots[problem_.output()]);
    combine(chunk_[i]);
  }
  flush();
  n_chunk_ = 0;
}

// Goes through all combinations of ft rows of a case.
void Engine::combine(const Case &one) {
  case_ = &one;
  n_active_ = one.opened->active.size();
  prefixes_.resize(std::max(prefixes_.size(), one.n_movers + 1));
  rests_.resize(std::max(rests_.size(), one.n_movers + 1));
  chosen_.resize(one.n_movers);
  Prefix &first = prefixes_[0];
  first.n_bytes = 0;
  first.cycles = first.n_moved = 0.0;
  first.n_steps = first.rings = 1.0;
  for (std::size_t i = 0; i < n_active_; ++i)
    first.axes[i] = {1, 0, static_cast<std::int32_t>(one.lengths[one.opened->active[i]]), 0, 0};
  for (std::size_t slot = 0; slot < problem_.slots.size(); ++slot) {
    if (one.slots[slot]->size() > 1) continue;
    first.n_bytes += one.slots[slot]->n_bytes[0];
    if (!settings_.is_bytes_only) first.cycles += one.slots[slot]->cycles[0];
  }
  rests_[one.n_movers] = Rest{};
  for (std::size_t depth = one.n_movers; depth-- > 0;) {
    const std::size_t number = one.movers[depth];
    const SlotRows &slot = *one.slots[number];
    Rest &rest = rests_[depth];
    rest = rests_[depth + 1];
    rest.n_bytes += slot.least_bytes;
    rest.total += slot.least_total;
    rest.turning |= slot.all_turning;
    if (number == problem_.output()) {
      rest.fixed_bytes += static_cast<double>(slot.least_bytes);
    } else {
      (problem_.slots[number].is_weight ? rest.weight_bytes : rest.activation_bytes) += slot.most_bytes;
    }
    std::size_t place = rest.n_wholes++;
    for (; place > 0 && rest.wholes[place - 1] > slot.whole_bytes; --place) rest.wholes[place] = rest.wholes[place - 1];
    rest.wholes[place] = slot.whole_bytes;
  }
  if ((case_->padded & ~rests_[0].turning) != 0 || is_hopeless(first, rests_[0])) return;
  ++statistics_.n_opened;
  descend(0);
}

void Engine::descend(std::size_t depth) {
  if (depth + 1 == case_->n_movers) return finish_all(depth);
  const SlotRows &slot = *case_->slots[case_->movers[depth]];
  const Prefix &before = prefixes_[depth];
  Prefix &after = prefixes_[depth + 1];
  const Mask wanted = unpadded(before, depth) & ~rests_[depth + 1].turning;
  for (std::size_t row = 0; row < slot.size(); ++row) {
    if ((slot.turning[row] & wanted) != wanted) continue;
    after.n_bytes = before.n_bytes + slot.n_bytes[row];
    after.cycles = before.cycles + (settings_.is_bytes_only ? 0.0 : slot.cycles[row]);
    after.n_moved = before.n_moved + slot.n_moved[row];
    after.n_steps = extend(before.axes.data(), slot.axes.data() + row * n_active_, n_active_, after.axes.data(),
                           blocks_ != 0);
    after.rings = before.rings;
    for (std::size_t i = 0; i < n_active_; ++i) after.rings *= static_cast<double>(slot.axes[row * n_active_ + i].t);
    if ((blocks_ != 0 && !has_whole_blocks(after)) || is_hopeless(after, rests_[depth + 1])) continue;
    chosen_[depth] = static_cast<std::uint32_t>(row);
    descend(depth + 1);
  }
}

// A dim over several axes moves in whole blocks: everything that rotates with it must do so in equal parts.
bool Engine::has_whole_blocks(const Prefix &all) const {
  for (std::size_t i = 0; i < n_active_; ++i)
    if (all.axes[i].block != 0 && all.axes[i].least != all.axes[i].most) return false;
  return true;
}

// Returns the active axes along which the rows chosen before `depth` do not yet pad parts to the lengths of the case: a
// smaller multiple of their factors would do. Rows that do not rotate there do not change that.
Mask Engine::unpadded(const Prefix &prefix, std::size_t depth) const {
  Mask result = 0;
  for (std::size_t i = 0; case_->padded >> i != 0; ++i) {
    const std::int64_t n_padded = case_->n_padded[i];
    std::int64_t multiple = prefix.axes[i].most;
    if (multiple > n_padded) continue;
    for (std::size_t before = 0; multiple > 1 && before < depth; ++before) {
      const std::int64_t t = case_->slots[case_->movers[before]]->axes[chosen_[before] * n_active_ + i].t;
      if (multiple % t != 0) multiple = std::lcm(multiple, t);
    }
    if (multiple <= n_padded) result |= Mask{1} << i;
  }
  return result;
}

// Prices the plans that the rows of the last mover make of a prefix, as far as bounds leave them. All but the price of
// the sub-task is in tables.
void Engine::finish_all(std::size_t depth) {
  const Prefix &before = prefixes_[depth];
  Prefix &all = prefixes_[depth + 1];
  const SlotRows &slot = *case_->slots[case_->movers[depth]];
  const Opened &opened = *case_->opened;
  const double rate = costs_.shift->rate();
  const Mask wanted = unpadded(before, depth);
  for (std::size_t row = 0; row < slot.size(); ++row) {
    if ((slot.turning[row] & wanted) != wanted) continue;
    all.n_bytes = before.n_bytes + slot.n_bytes[row];
    if (settings_.is_pruning && all.n_bytes > problem_.capacity_bytes) continue;
    all.n_steps = extend(before.axes.data(), slot.axes.data() + row * n_active_, n_active_, all.axes.data(),
                         blocks_ != 0);
    if (all.n_steps == 1.0) continue;
    all.cycles = settings_.is_bytes_only ? 0.0 : before.cycles + slot.cycles[row];
    const double compute = case_->compute_bound + all.n_steps * task_cycles_;
    if (settings_.is_pruning) {
      const double shift = (all.n_steps - 1.0) * advance_cycles_ + (before.n_moved + slot.n_moved[row]) * rate;
      const double bound = settings_.is_bytes_only ? 0.0 : compute + all.cycles + shift;
      if (front_.beats(all.n_bytes, bound, opened.f_row)) continue;
    }
    chosen_[depth] = static_cast<std::uint32_t>(row);
    if ((blocks_ != 0 && !has_whole_blocks(all)) || (wanted != 0 && unpadded(all, depth + 1) != 0)) continue;
    if (all.n_bytes > problem_.capacity_bytes) {
      ++statistics_.n_evaluated;
      continue;
    }
    if (!settings_.is_bytes_only) all.cycles += shift_cycles(all);
    if (settings_.is_pruning && front_.beats(all.n_bytes, compute + all.cycles, opened.f_row)) continue;
    push(all);
  }
  tick();
}

void Engine::push(const Prefix &all) {
  const Opened &opened = *case_->opened;
  const std::size_t place = leaf_boxes_.size();
  leaf_boxes_.resize(place + problem_.n_axes);
  std::int32_t *box = leaf_boxes_.data() + place;
  for (std::size_t axis = 0; axis < problem_.n_axes; ++axis) box[axis] = static_cast<std::int32_t>(case_->lengths[axis]);
  for (std::size_t i = 0; i < n_active_; ++i) box[opened.active[i]] = all.axes[i].pace;
  boxes_.prefetch(box);
  const auto rows = static_cast<std::uint32_t>(leaf_rows_.size());
  leaf_rows_.insert(leaf_rows_.end(), chosen_.begin(), chosen_.end());
  const auto number = static_cast<std::uint32_t>(case_ - chunk_.data());
  leaves_.push_back({number, rows, all.n_bytes, all.cycles, all.n_steps});
  if (leaves_.size() >= kLeaves) flush();
}

double Engine::shift_cycles(const Prefix &all) const {
  std::array<double, kMaxAxes> advance;
  std::array<double, kMaxAxes> steps;
  std::size_t n_loops = 0;
  for (std::size_t i = 0; i < n_active_; ++i) {
    const Prefix::PerAxis &one = all.axes[i];
    if (one.most == 1) continue;
    advance[n_loops] = (*costs_.shift)[one.unit * one.pace + (blocks_ != 0 ? one.block : 0)];
    steps[n_loops++] = one.most;
  }
  return nest_cycles(advance, steps, n_loops);
}

// Prices the waiting plans and puts the best of them on the front.
void Engine::flush() {
  leaf_answers_.resize(leaves_.size());
  boxes_.indices(leaf_boxes_.data(), leaves_.size(), leaf_answers_.data());
  answer();
  statistics_.n_evaluated += leaves_.size();
  const auto compute = [&](std::size_t i) { return leaves_[i].n_sub_tasks * boxes_[leaf_answers_[i]]; };
  for (std::size_t i = 0; i < leaves_.size(); ++i)
    if (!settings_.is_bytes_only) leaves_[i].cycles += compute(i);
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const Leaf &leaf = leaves_[i];
    const Case &one = chunk_[leaf.number];
    const std::size_t f_row = one.opened->f_row;
    if (is_bounding() && front_.beats(leaf.n_bytes, leaf.cycles, f_row)) continue;
    Point point{leaf.n_bytes, leaf.cycles, f_row, ft_of(one, leaf_rows_.data() + leaf.rows)};
    if (is_exact()) {
      offer(std::move(point));
      continue;
    }
    const double rest = reductions_[reduction_of(leaf)];
    waiting_.push_back({std::move(point), boxes_[leaf_answers_[i]], rest, leaf.cycles - compute(i) - rest,
                        leaf.n_sub_tasks, 0.0, !hooks_.bounds});
  }
  if (waiting_.size() >= kWaiting) price_waiting();
  leaves_.clear();
  leaf_rows_.clear();
  leaf_boxes_.clear();
}

// Returns under which number the reduction and epilogue of a plan are priced.
std::uint32_t Engine::reduction_of(const Leaf &leaf) const {
  const Case &one = chunk_[leaf.number];
  std::size_t row = 0;
  for (std::size_t i = 0; i < one.n_movers; ++i)
    if (one.movers[i] == problem_.output()) row = leaf_rows_[leaf.rows + i];
  return one.slots[problem_.output()]->answer[row];
}

void Engine::answer() {
  boxes_.answer([&](const double *const *columns, std::size_t n, double *out) {
    if (settings_.is_bytes_only) return std::fill_n(out, n, 0.0), void();
    costs_.sub_task->evaluate(columns, n, out);
  });
  wholes_.answer([&](const double *const *columns, std::size_t n, double *out) {
    if (settings_.is_bytes_only) return std::fill_n(out, n, 0.0), void();
    costs_.whole->evaluate(columns, n, out);
  });
  reductions_.answer([&](const double *const *columns, std::size_t n, double *out) {
    if (settings_.is_bytes_only) return std::fill_n(out, n, 0.0), void();
    std::vector<double> chunk(n);
    std::vector<double> epilogue(n);
    for (std::size_t k = 0; k < n; ++k)
      chunk[k] = static_cast<double>(
          window_chunk(static_cast<std::int64_t>(columns[1][k]), static_cast<std::int64_t>(columns[0][k])));
    const double *const slots[3] = {chunk.data(), columns[2], columns[0]};
    costs_.epilogue->evaluate(slots, n, epilogue.data());
    costs_.reduce->evaluate(columns, n, out);
    for (std::size_t k = 0; k < n; ++k) out[k] += epilogue[k];
  });
}

void Engine::offer(Point point) {
  if (front_.wants(point) && is_placeable(point)) front_.insert(std::move(point));
}

bool Engine::is_placeable(const Point &point) {
  if (!settings_.asks_always && has_closed_form(problem_, f_op_[point.f_row], point.ft.data())) return true;
  ++statistics_.n_placements;
  return hooks_.is_placeable(point.f_row, point.ft);
}

std::vector<std::int32_t> Engine::ft_of(const Case &one, const std::uint32_t *rows) const {
  std::vector<std::int32_t> ft(problem_.slots.size() * problem_.n_axes, 1);
  const std::vector<std::size_t> &active = one.opened->active;
  for (std::size_t i = 0; i < one.n_movers; ++i)
    for (std::size_t j = 0; j < active.size(); ++j)
      ft[one.movers[i] * problem_.n_axes + active[j]] = one.slots[one.movers[i]]->axes[rows[i] * active.size() + j].t;
  return ft;
}

void Engine::tick() {
  if (++n_ticks_ % kTicks == 0) hooks_.poll(done_);
}

}  // namespace t10::search
