// t10.plan.search._search: the complete search of one operator for Python (types and units: _search.pyi).

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "batch_function.h"
#include "search_bounds.h"
#include "search_engine.h"
#include "interval_function.h"
#include "search_place.h"
#include "search_problem.h"
#include "search_shift.h"

namespace nb = nanobind;
using namespace t10::search;

namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(100);

using Int64Matrix = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using DimTuple = std::pair<std::vector<std::pair<std::size_t, std::int64_t>>, std::int64_t>;
using OperandTuple = std::tuple<std::vector<DimTuple>, std::int64_t, bool, Mask, Mask>;
using FrontRow = std::tuple<std::size_t, std::vector<std::int32_t>, std::int64_t, std::int64_t>;

Operand read_operand(nb::handle description, std::size_t n_axes) {
  const auto [dims, item_bytes, is_weight, simple, rotating] = nb::cast<OperandTuple>(description);
  Operand operand;
  operand.item_bytes = item_bytes;
  operand.is_weight = is_weight;
  operand.simple = simple;
  operand.rotating = rotating;
  for (const auto &[terms, size] : dims) {
    Dim dim{{}, size};
    for (const auto &[axis, coefficient] : terms) {
      if (axis >= n_axes) throw std::invalid_argument("search: an operand names axis " + std::to_string(axis) +
                                                      " of " + std::to_string(n_axes));
      dim.terms.push_back({axis, coefficient});
      operand.axes |= Mask{1} << axis;
    }
    if (terms.size() == 1 && terms[0].second == 1) {
      operand.plain.push_back(terms[0].first);
    } else if (!terms.empty()) {
      operand.others.push_back(operand.dims.size());
    }
    operand.dims.push_back(dim);
  }
  return operand;
}

Problem read_problem(nb::handle task) {
  Problem problem;
  std::size_t axis = 0;
  problem.n_axes = nb::len(nb::handle(task.attr("extents")));
  const std::size_t n_slots = nb::len(nb::handle(task.attr("slots")));
  if (problem.n_axes > kMaxAxes || n_slots == 0 || n_slots > kMaxSlots)
    throw std::invalid_argument("search: at most 16 axes and 16 operands, found " + std::to_string(problem.n_axes) +
                                " and " + std::to_string(n_slots));
  for (nb::handle extent : task.attr("extents")) problem.extents[axis++] = nb::cast<std::int64_t>(extent);
  problem.lines = nb::cast<Mask>(task.attr("lines"));
  for (nb::handle slot : task.attr("slots")) problem.slots.push_back(read_operand(slot, problem.n_axes));
  for (nb::handle input : task.attr("epilogue_inputs"))
    problem.epilogue_inputs.push_back(read_operand(input, problem.n_axes));
  const auto run_axes = nb::cast<Mask>(task.attr("epilogue_run_axes"));
  for (axis = 0; axis < problem.n_axes; ++axis)
    if (has(run_axes, axis)) problem.run_axes.push_back(axis);
  problem.has_accumulator = nb::cast<bool>(task.attr("has_accumulator"));
  problem.result_item_bytes = nb::cast<std::int64_t>(task.attr("result_item_bytes"));
  problem.alignment = nb::cast<std::int64_t>(task.attr("alignment_bytes"));
  problem.capacity_bytes = nb::cast<std::int64_t>(task.attr("capacity_bytes"));
  problem.padding = nb::cast<double>(task.attr("padding"));
  problem.fetch_base = nb::cast<double>(task.attr("fetch_base"));
  problem.fetch_per_byte = nb::cast<double>(task.attr("fetch_per_byte"));
  problem.fetch_per_run = nb::cast<double>(task.attr("fetch_per_run"));
  problem.has_seconds = nb::cast<bool>(task.attr("has_seconds"));
  return problem;
}

std::vector<Axes> read_f_op(const Int64Matrix &f_op, const Problem &problem) {
  if (f_op.shape(1) != problem.n_axes)
    throw std::invalid_argument("search: F_op of " + std::to_string(f_op.shape(1)) + " axes, expected " +
                                std::to_string(problem.n_axes));
  std::vector<Axes> rows(f_op.shape(0));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].fill(1);
    for (std::size_t axis = 0; axis < problem.n_axes; ++axis) {
      rows[i][axis] = f_op.data()[i * problem.n_axes + axis];
      if (rows[i][axis] < 1) throw std::invalid_argument("search: factors of F_op must be 1 or more");
    }
  }
  return rows;
}

nb::tuple as_tuple(const std::int32_t *values, std::size_t n) {
  nb::list result;
  for (std::size_t i = 0; i < n; ++i) result.append(values[i]);
  return nb::tuple(result);
}

// Returns numbers as an int64 array of these extents.
nb::object as_array(const std::vector<std::int64_t> &values, std::initializer_list<std::size_t> extents) {
  auto *own = new std::vector<std::int64_t>(values);
  const nb::capsule owner(own, [](void *at) noexcept { delete static_cast<std::vector<std::int64_t> *>(at); });
  return nb::cast(nb::ndarray<nb::numpy, std::int64_t>(own->data(), extents, owner));
}

Hooks hooks(const Problem &problem, const std::vector<Axes> &f_op, nb::handle place, nb::handle price,
            nb::handle bounds, nb::handle poll) {
  Hooks result;
  const auto ask = [&problem, &f_op](nb::handle question, std::size_t f_row, const std::vector<std::int32_t> &ft,
                                     auto... more) {
    const std::size_t n = problem.n_axes;
    const std::vector<std::int32_t> factors(f_op[f_row].begin(), f_op[f_row].begin() + static_cast<std::ptrdiff_t>(n));
    nb::list rows;
    for (std::size_t slot = 0; slot < problem.slots.size(); ++slot) rows.append(as_tuple(ft.data() + slot * n, n));
    return question(as_tuple(factors.data(), n), nb::tuple(rows), more...);
  };
  result.is_placeable = [ask, place](std::size_t f_row, const std::vector<std::int32_t> &ft) {
    const nb::gil_scoped_acquire locked;
    return nb::cast<bool>(ask(place, f_row, ft));
  };
  if (!price.is_none())
    result.price = [ask, price](const Point &point, double least_step, double least_rest, double waits, double most) {
      const nb::gil_scoped_acquire locked;
      return nb::cast<double>(ask(price, point.f_row, point.ft, least_step, least_rest, waits, most));
    };
  if (!bounds.is_none())
    result.bounds = [&problem, &f_op, bounds](const std::vector<const Point *> &points) {
      const std::size_t n_axes = problem.n_axes;
      std::vector<std::int64_t> factors;
      std::vector<std::int64_t> rows;
      for (const Point *point : points) {
        const Axes &own = f_op[point->f_row];
        factors.insert(factors.end(), own.begin(), own.begin() + static_cast<std::ptrdiff_t>(n_axes));
        rows.insert(rows.end(), point->ft.begin(), point->ft.end());
      }
      const nb::gil_scoped_acquire locked;
      const nb::object found = bounds(as_array(factors, {points.size(), n_axes}),
                                      as_array(rows, {points.size(), problem.slots.size(), n_axes}));
      const auto cycles = nb::cast<nb::ndarray<const double, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>>(found);
      if (cycles.shape(0) != points.size()) throw std::invalid_argument("search: not as many bounds as plans");
      std::vector<CloserBound> result;
      for (std::size_t i = 0; i < points.size(); ++i) result.push_back({cycles.data()[2 * i], cycles.data()[2 * i + 1]});
      return result;
    };
  result.poll = [poll, last = std::chrono::steady_clock::now()](double done) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < kPollInterval) return;
    last = now;
    const nb::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (!poll.is_none()) poll(done);
  };
  return result;
}

// A cost function and its lower bounds, read once per operator.
struct Costs {
  explicit Costs(nb::handle program)
      : sub_task(t10::batch_function(program.attr("sub_task"))),
        whole(program.attr("whole").is_none() ? nullptr : t10::batch_function(program.attr("whole"))),
        epilogue(t10::batch_function(program.attr("epilogue"))),
        reduce(t10::batch_function(program.attr("reduce"))),
        least_epilogue(t10::interval_function(program.attr("epilogue"))),
        least_reduce(t10::interval_function(program.attr("reduce"))) {}

  std::unique_ptr<t10::BatchFunction> sub_task;
  std::unique_ptr<t10::BatchFunction> whole;
  std::unique_ptr<t10::BatchFunction> epilogue;
  std::unique_ptr<t10::BatchFunction> reduce;
  std::unique_ptr<t10::IntervalFunction> least_epilogue;
  std::unique_ptr<t10::IntervalFunction> least_reduce;
};

// The bound of sub-tasks of which `sub_task` is the cost function; nullptr for one that is no formula.
std::unique_ptr<ComputeBound> bound_of(nb::handle task, const Int64Matrix &f_op, nb::handle sub_task) {
  const std::unique_ptr<t10::IntervalFunction> least = t10::interval_function(sub_task);
  if (least == nullptr) return nullptr;
  const Problem problem = read_problem(task);
  const std::vector<Axes> rows = read_f_op(f_op, problem);
  const nb::gil_scoped_release unlocked;
  return compute_bound(problem, rows, *least);
}

nb::tuple search(nb::handle task, const Int64Matrix &f_op, nb::handle program, nb::handle price,
                 nb::handle bounds, const ShiftTable &shift, const ComputeBound *bound, nb::handle place, nb::handle poll, bool is_pruning, bool is_bytes_only,
                 bool asks_always) {
  Problem problem = read_problem(task);
  problem.shift_per_byte = shift.rate();
  const std::vector<Axes> rows = read_f_op(f_op, problem);
  const Costs costs(program);
  if (!is_bytes_only && shift.limit() < problem.capacity_bytes)
    throw std::invalid_argument("search: shifts are known up to " + std::to_string(shift.limit()) +
                                " bytes, expected " + std::to_string(problem.capacity_bytes));
  Engine engine(problem, rows,
                {costs.sub_task.get(), costs.whole.get(), costs.epilogue.get(), costs.reduce.get(), &shift, bound, costs.least_epilogue.get(),
                 costs.least_reduce.get()},
                {is_pruning, is_bytes_only, asks_always}, hooks(problem, rows, place, price, bounds, poll));
  {
    const nb::gil_scoped_release unlocked;
    engine.run();
  }
  std::vector<FrontRow> front;
  for (const Point &point : engine.front().points())
    front.emplace_back(point.f_row, point.ft, static_cast<std::int64_t>(point.cycles), point.n_bytes);
  const Statistics &found = engine.statistics();
  return nb::make_tuple(front, nb::make_tuple(found.n_partitions, found.n_opened, found.n_evaluated,
                                              found.n_placements, found.n_boxes, found.n_exact));
}

double count(nb::handle task, const Int64Matrix &f_op) {
  const Problem problem = read_problem(task);
  const std::vector<Axes> rows = read_f_op(f_op, problem);
  const nb::gil_scoped_release unlocked;
  Memo<std::int64_t> unused(std::tuple_size<ReductionKey>::value, "");
  RowBuilder builder(problem, unused);
  Opened opened;
  double total = 0.0;
  for (const Axes &row : rows) {
    Axes lengths{};
    for (std::size_t axis = 0; axis < problem.n_axes; ++axis) lengths[axis] = problem.part_length(axis, row[axis]);
    builder.start(opened, 0, row, lengths);
    total += builder.n_combined();
  }
  return total;
}

}  // namespace

NB_MODULE(_search, m) {
  m.doc() = "The complete search of one operator.";
  nb::class_<ShiftTable>(m, "ShiftTable")
      .def("__init__",
           [](ShiftTable *self, nb::handle function, std::int64_t limit_bytes, std::int64_t granule_bytes) {
             new (self) ShiftTable(t10::batch_function(function), t10::interval_function(function).get(), limit_bytes,
                                   granule_bytes);
           },
           nb::arg("function"), nb::arg("limit_bytes"), nb::arg("granule_bytes"))
      .def_prop_ro("least_cycles", &ShiftTable::least)
      .def_prop_ro("cycles_per_byte", &ShiftTable::rate);
  nb::class_<ComputeBound>(m, "ComputeBound").def_prop_ro("n_entries", &ComputeBound::n_entries);
  m.def("compute_bound", &bound_of, nb::arg("task"), nb::arg("f_op").noconvert(), nb::arg("sub_task"),
        "Return what bounds the compute cycles of all plans under some F_op, None for costs that cannot be bounded.");
  m.def("search", &search, nb::arg("task"), nb::arg("f_op").noconvert(), nb::arg("program"), nb::arg("price").none(), nb::arg("bounds").none(),
        nb::arg("shift"), nb::arg("bound").none(), nb::arg("place"), nb::arg("poll").none(), nb::kw_only(),
        nb::arg("is_pruning") = true,
        nb::arg("is_bytes_only") = false, nb::arg("asks_always") = false, "Return the front of all plans and what the search did.");
  m.def("count", &count, nb::arg("task"), nb::arg("f_op").noconvert(),
        "Return how many combinations of ft rows there are, each row by itself within the constraints.");
}
