// Exact prices of the plans that wait for them, in an order in which few need one.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "search_engine.h"

namespace t10::search {
namespace {

constexpr std::size_t kBounded = 256;  // plans whose steps are bounded together
constexpr double kNever = std::numeric_limits<double>::infinity();  // cycles of what is never done

template <class One>
bool is_later(const One &a, const One &b) {
  return a.point.cycles != b.point.cycles ? a.point.cycles > b.point.cycles : b.point.precedes(a.point);
}

}  // namespace

void Engine::wait(Waiting one) {
  waiting_.push_back(std::move(one));
  std::push_heap(waiting_.begin(), waiting_.end(), is_later<Waiting>);
}

Engine::Waiting Engine::next_waiting() {
  std::pop_heap(waiting_.begin(), waiting_.end(), is_later<Waiting>);
  Waiting one = std::move(waiting_.back());
  waiting_.pop_back();
  return one;
}

// Prices the plans that wait for it, always the one that may be fastest, no further than until another may be: what is
// on the front by then beats most of the others before they are priced.
void Engine::price_waiting() {
  std::make_heap(waiting_.begin(), waiting_.end(), is_later<Waiting>);
  while (!waiting_.empty()) {
    Waiting one = next_waiting();
    Point &point = one.point;
    if (is_bounding() && front_.beats(point.n_bytes, point.cycles, point.f_row)) continue;
    hooks_.poll(done_);
    if (!one.is_close) {
      bound_closer(std::move(one));
      continue;
    }
    const double next = waiting_.empty() ? kNever : waiting_.front().point.cycles;
    const double most = is_bounding() ? front_.most(point.n_bytes) : kNever;
    const double limit = is_bounding() ? std::min(most, next) : kNever;
    point.cycles = one.moved + hooks_.price(point, one.least_step, one.least_rest, one.waits, limit - one.moved);
    if (point.cycles <= limit) {
      ++statistics_.n_exact;
      offer(std::move(point));
    } else if (point.cycles <= most) {
      wait(std::move(one));
    }
  }
}

// Bounds a plan that waits closer, and those that come next.
void Engine::bound_closer(Waiting first) {
  std::vector<Waiting> together;
  std::vector<Waiting> others;
  together.push_back(std::move(first));
  while (!waiting_.empty() && together.size() < kBounded && others.size() < kBounded) {
    Waiting one = next_waiting();
    if (is_bounding() && front_.beats(one.point.n_bytes, one.point.cycles, one.point.f_row)) continue;
    (one.is_close ? others : together).push_back(std::move(one));
  }
  std::vector<const Point *> points;
  for (const Waiting &one : together) points.push_back(&one.point);
  const std::vector<CloserBound> least = hooks_.bounds(points);
  for (std::size_t i = 0; i < together.size(); ++i) {
    Waiting &one = together[i];
    one.waits = std::max(least[i].waits, 0.0);
    one.point.cycles += std::max(least[i].steps - one.least_step * one.n_sub_tasks, 0.0) + one.waits;
    one.is_close = true;
    wait(std::move(one));
  }
  for (Waiting &one : others) wait(std::move(one));
}

}  // namespace t10::search
