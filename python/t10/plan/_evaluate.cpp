// t10.plan._evaluate: the hot loops of plan search, over arrays that hold many candidate plans at once.
//
// Every function takes one row per candidate, releases the interpreter lock while it works, and uses no state of its
// own, so the same arrays always give the same bits. Index order of all two-dimensional arrays: [candidate, axis].

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace {

// Rotating axes of one operator: an operator has at most a handful of axes, so the order of one nest fits on the stack.
constexpr std::size_t kMaxAxes = 16;

using Int32Matrix = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Float64Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Float64Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Float64Result = nb::ndarray<nb::numpy, double, nb::ndim<1>>;

// Writes into `order` the axes of one nest, outermost first: most expensive advance outermost (compute-shift model,
// theorem 3). Insertion sort, because it is stable (ties keep axis order) and n_axes is tiny.
void order_axes(const double *advance_cycles, std::size_t n_axes, std::array<std::size_t, kMaxAxes> &order) {
  for (std::size_t axis = 0; axis < n_axes; ++axis) {
    std::size_t slot = axis;
    while (slot > 0 && advance_cycles[order[slot - 1]] < advance_cycles[axis]) {
      order[slot] = order[slot - 1];
      --slot;
    }
    order[slot] = axis;
  }
}

// Cycles of one nest: every sub-task once, plus, per axis, its advances in every sweep started by the loops around it.
double nest_cycles(const std::int32_t *steps, const double *advance_cycles, double subtask_cycles,
                   std::size_t n_axes) {
  std::array<std::size_t, kMaxAxes> order{};
  order_axes(advance_cycles, n_axes, order);
  double shift_cycles = 0.0;
  double sweeps = 1.0;
  for (std::size_t depth = 0; depth < n_axes; ++depth) {
    const std::size_t axis = order[depth];
    const double n_steps = static_cast<double>(steps[axis]);
    shift_cycles += advance_cycles[axis] * (n_steps - 1.0) * sweeps;
    sweeps *= n_steps;
  }
  return sweeps * subtask_cycles + shift_cycles;
}

void check_nests(const Int32Matrix &steps, const Float64Matrix &shift_cycles, const Float64Vector &subtask_cycles) {
  const std::size_t n = steps.shape(0);
  const std::size_t k = steps.shape(1);
  if (shift_cycles.shape(0) != n || shift_cycles.shape(1) != k || subtask_cycles.shape(0) != n)
    throw std::invalid_argument("evaluate_nests: steps is [" + std::to_string(n) + ", " + std::to_string(k) +
                                "], so shift_cycles must have the same shape and subtask_cycles " +
                                std::to_string(n) + " elements; found [" + std::to_string(shift_cycles.shape(0)) +
                                ", " + std::to_string(shift_cycles.shape(1)) + "] and " +
                                std::to_string(subtask_cycles.shape(0)));
  if (k > kMaxAxes)
    throw std::invalid_argument("evaluate_nests: at most " + std::to_string(kMaxAxes) + " axes, found " +
                                std::to_string(k));
  for (std::size_t i = 0; i < n * k; ++i)
    if (steps.data()[i] < 1)
      throw std::invalid_argument("evaluate_nests: steps must be 1 or more, found " +
                                  std::to_string(steps.data()[i]) + " in candidate " + std::to_string(i / k));
}

Float64Result evaluate_nests(const Int32Matrix &steps, const Float64Matrix &shift_cycles,
                             const Float64Vector &subtask_cycles) {
  check_nests(steps, shift_cycles, subtask_cycles);
  const std::size_t n = steps.shape(0);
  const std::size_t k = steps.shape(1);
  auto cycles = std::make_unique<double[]>(n);
  {
    const nb::gil_scoped_release unlocked;
    for (std::size_t row = 0; row < n; ++row)
      cycles[row] = nest_cycles(steps.data() + row * k, shift_cycles.data() + row * k, subtask_cycles.data()[row], k);
  }
  double *data = cycles.get();
  nb::capsule owner(data, [](void *pointer) noexcept { delete[] static_cast<double *>(pointer); });
  cycles.release();
  return Float64Result(data, {n}, owner);
}

using Int32Table = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Int64Vector = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// One value that lies somewhere: per copy and element the core and slot that hold it (-1: this copy lacks it), which
// copy every destination core reads, and which of the home's slots have been sent already.
struct Home {
  const std::int32_t *core;
  const std::int32_t *slot;
  const std::int64_t *choice;
  std::int64_t n_elements;
  std::int64_t n_copies;
  std::size_t n_slots;
  std::vector<std::uint8_t> is_sent;
};

Home read_home(nb::handle item, std::size_t n_cores) {
  const auto fields = nb::cast<nb::tuple>(item);
  const auto core = nb::cast<Int32Table>(fields[0]);
  const auto slot = nb::cast<Int32Table>(fields[1]);
  const auto choice = nb::cast<Int64Vector>(fields[2]);
  const auto n_home_cores = nb::cast<std::size_t>(fields[3]);
  const auto n_slots = nb::cast<std::size_t>(fields[4]);
  if (core.shape(0) != slot.shape(0) || core.shape(1) != slot.shape(1) || choice.shape(0) < n_cores)
    throw std::invalid_argument("count_moves: a home's tables of cores and slots must have one shape, and its choice "
                                "of copies one entry per destination core");
  const auto n_elements = static_cast<std::int64_t>(core.shape(1));
  const auto n_copies = static_cast<std::int64_t>(core.shape(0));
  for (std::size_t i = 0; i < n_cores; ++i)
    if (choice.data()[i] < 0 || choice.data()[i] >= n_copies)
      throw std::invalid_argument("count_moves: a core reads copy " + std::to_string(choice.data()[i]) + " of " +
                                  std::to_string(n_copies));
  const std::size_t n_entries = core.shape(0) * core.shape(1);
  for (std::size_t i = 0; i < n_entries; ++i) {
    const std::int64_t where = core.data()[i];
    const std::int64_t slot_there = slot.data()[i];
    if (where >= static_cast<std::int64_t>(n_home_cores) || slot_there >= static_cast<std::int64_t>(n_slots) ||
        (where >= 0 && slot_there < 0))
      throw std::invalid_argument("count_moves: a home's tables name a core or slot it does not have");
  }
  return Home{core.data(), slot.data(), choice.data(), n_elements, n_copies, n_slots,
              std::vector<std::uint8_t>(n_home_cores * n_slots, 0)};
}

// Per destination core: elements received and runs of them. A run continues while the next slot takes the next slot
// of the same core's copy of the same value (the same rule as t10.core.movement.traffic).
void count_row(const std::int32_t *wanted, std::size_t n_slots, std::int64_t row, const std::int64_t *ids,
               std::vector<Home> &homes, std::int64_t &n_received, std::int64_t &n_runs) {
  std::int64_t last_source = -1;
  std::int64_t last_core = -1;
  std::int64_t last_slot = -1;
  n_received = 0;
  n_runs = 0;
  for (std::size_t i = 0; i < n_slots; ++i) {
    std::int64_t source = -1;
    std::int64_t id = wanted[i] < 0 ? -1 : (ids == nullptr ? wanted[i] : ids[wanted[i]]);
    for (std::size_t k = 0; id >= 0 && k < homes.size(); ++k) {
      if (id < homes[k].n_elements) {
        source = static_cast<std::int64_t>(k);
        break;
      }
      id -= homes[k].n_elements;
    }
    if (source < 0) {
      last_source = -1;
      continue;
    }
    Home &home = homes[static_cast<std::size_t>(source)];
    const std::int64_t entry = home.choice[row] * home.n_elements + id;
    const std::int64_t core = home.core[entry];
    const std::int64_t slot = home.slot[entry];
    if (core == row || core < 0) {
      last_source = -1;
      continue;
    }
    home.is_sent[static_cast<std::size_t>(core) * home.n_slots + static_cast<std::size_t>(slot)] = 1;
    ++n_received;
    if (last_source != source || last_core != core || last_slot + 1 != slot) ++n_runs;
    last_source = source;
    last_core = core;
    last_slot = slot;
  }
}

nb::tuple count_moves(const Int32Table &wanted, const std::optional<Int64Vector> &ids, const nb::list &homes) {
  const std::size_t n_cores = wanted.shape(0);
  const std::size_t n_slots = wanted.shape(1);
  const std::int64_t *flat = ids ? ids->data() : nullptr;
  std::vector<Home> read;
  std::size_t n_rows = n_cores;
  std::int64_t n_elements = 0;
  for (nb::handle item : homes) {
    read.push_back(read_home(item, n_cores));
    n_rows = std::max(n_rows, read.back().n_slots == 0 ? 0 : read.back().is_sent.size() / read.back().n_slots);
    n_elements += read.back().n_elements;
  }
  const std::int64_t limit = ids ? static_cast<std::int64_t>(ids->shape(0)) : n_elements;
  std::int64_t received = 0;
  std::int64_t fragments = 0;
  std::int64_t total = 0;
  std::int64_t sent = 0;
  std::int64_t copied = 0;
  bool is_inside = true;
  {
    const nb::gil_scoped_release unlocked;
    for (std::size_t i = 0; i < n_cores * n_slots; ++i) is_inside &= wanted.data()[i] < limit;
    for (std::size_t row = 0; is_inside && row < n_cores; ++row) {
      std::int64_t n_received = 0;
      std::int64_t n_runs = 0;
      count_row(wanted.data() + row * n_slots, n_slots, static_cast<std::int64_t>(row), flat, read, n_received, n_runs);
      received = std::max(received, n_received);
      copied = std::max(copied, static_cast<std::int64_t>(n_slots) - n_received);
      fragments = std::max(fragments, n_runs);
      total += n_received;
    }
    for (std::size_t row = 0; row < n_rows; ++row) {
      std::int64_t n_sent = 0;
      for (const Home &home : read) {
        if ((row + 1) * home.n_slots > home.is_sent.size()) continue;
        const auto first = home.is_sent.begin() + static_cast<std::ptrdiff_t>(row * home.n_slots);
        n_sent += std::count(first, first + static_cast<std::ptrdiff_t>(home.n_slots), std::uint8_t{1});
      }
      sent = std::max(sent, n_sent);
    }
  }
  if (!is_inside) throw std::invalid_argument("count_moves: a slot wants an element that no home has");
  return nb::make_tuple(received, sent, fragments, total, copied);
}

}  // namespace

NB_MODULE(_evaluate, module) {
  module.doc() = "Native evaluation of many candidate plans at once (see _evaluate.pyi for shapes and units).";
  module.def("evaluate_nests", &evaluate_nests, nb::arg("steps"), nb::arg("shift_cycles"), nb::arg("subtask_cycles"),
             "Cycles of every candidate's compute-shift nest under its best loop order.");
  module.def("count_moves", &count_moves, nb::arg("wanted"), nb::arg("ids").none(), nb::arg("homes"),
             "What moves between cores when every slot fetches its element from where it lies.");
}
