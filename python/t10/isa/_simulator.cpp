// The simulator for Python: t10.isa._simulator (types: _simulator.pyi). All of it is in simulator/; here are only faces.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstring>

#include "simulator/machine.h"

namespace nb = nanobind;
using namespace t10::isa;

namespace {

using Words = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ints = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Addresses = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Cycles = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Memory = nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// `shape`: base, end, interleaved base, bytes of an element, workers.
void make(Machine* self, Word base, Words words, Ints lines, Memory memory,
          std::tuple<Word, Word, Word, Word, int> shape, bool counts) {
  if (words.shape(1) != 2 + kMostOperands || lines.shape(0) != words.shape(0))
    throw std::invalid_argument("words must be (n, 10) and lines (n,)");
  const auto [begin, end, interleaved_base, element_bytes, n_workers] = shape;
  if (memory.shape(1) != end - begin) throw std::invalid_argument("the memory is as long as its map says");
  Program program(base, words.data(), lines.data(), words.shape(0));
  new (self) Machine(int(memory.shape(0)), std::move(program), {begin, end, interleaved_base, element_bytes, n_workers},
                     memory.data(), counts);
}

std::size_t run(Machine& machine, Ints tiles, Addresses entries, Addresses states, bool is_supervisor, Cycles cycles) {
  const std::size_t n = tiles.shape(0);
  if (entries.shape(0) != n || states.shape(0) != n || cycles.shape(0) != n)
    throw std::invalid_argument("as many entries, states and cycles as tiles");
  for (std::size_t i = 0; i < n; i++)
    if (tiles(i) < 0 || tiles(i) >= machine.n_tiles())
      throw std::invalid_argument("no tile " + std::to_string(tiles(i)));
  const VertexKind kind = is_supervisor ? VertexKind::kSupervisor : VertexKind::kMulti;
  const auto go = [&] {
    return machine.run_vertices(tiles.data(), entries.data(), states.data(), n, kind, cycles.data());
  };
  if (machine.trace) return go();
  nb::gil_scoped_release release;
  return go();
}

// Counts a vertex whose words are `bytes`, all under the interpreter's lock: threads may share a counter. -1 for a trap.
std::int64_t count(Machine& machine, Word entry, Word state, nb::bytes bytes, bool is_supervisor) {
  Context& c = machine.tile(0).supervisor;
  const Word offset = state - c.memory_base;
  if (offset > c.memory_bytes || bytes.size() > c.memory_bytes - offset)
    throw std::invalid_argument("the words of the vertex lie outside the memory");
  std::memcpy(c.memory + offset, bytes.data(), bytes.size());
  try {
    return machine.run_vertex(0, entry, state, is_supervisor ? VertexKind::kSupervisor : VertexKind::kMulti);
  } catch (const Trap&) {
    return -1;
  }
}

Context& context_of(Machine& machine, int tile, int worker) {
  if (worker < -1 || worker >= machine.shape().n_workers) throw std::invalid_argument("no worker " + std::to_string(worker));
  Tile& at = machine.tile(tile);
  return worker < 0 ? at.supervisor : at.workers[std::size_t(worker)];
}

// m0..m15, a0..a15, AACC[0..31].
nb::tuple registers(Machine& machine, int tile, int worker) {
  Context& c = context_of(machine, tile, worker);
  c.settle();
  nb::list all;
  for (int i = 0; i < 16; i++) all.append(c.m[i]);
  for (int i = 0; i < 16; i++) all.append(c.a[i]);
  for (int i = 0; i < 16; i++) {
    all.append(raw(c.even[i]));
    all.append(raw(c.odd[i]));
  }
  return nb::tuple(all);
}

// Register `number`: 0..15 of the MRF, 16..31 of the ARF, 32..63 accumulators, 64 TAS.
void set_register(Machine& machine, int tile, int worker, int number, Word value) {
  Context& c = context_of(machine, tile, worker);
  c.settle();
  if (number >= 0 && number < 12) {
    c.m[number] = value;
  } else if (number >= 16 && number < 24) {
    c.a[number - 16] = value;
  } else if (number >= 32 && number < 64) {
    float* sums = number % 2 == 0 ? c.even : c.odd;
    sums[(number - 32) / 2] = t10::isa::number(value);
  } else if (number == 64) {
    c.tas = value;
  } else {
    throw std::invalid_argument("register " + std::to_string(number) + " cannot be set");
  }
}

// Cause, message, address, pc, line, tile, worker, cycle.
nb::object trap_of(const Machine& machine) {
  const std::optional<Trap>& trap = machine.trap();
  if (!trap) return nb::none();
  return nb::make_tuple(cause_name(trap->cause), trap->what(), trap->address, trap->pc, trap->line, trap->tile,
                        trap->worker, trap->cycle);
}

void set_options(Machine& machine, std::int64_t cycle_limit, bool round_robin, bool watch_writes, Word stack_top,
                 Word worker_stack_bytes) {
  machine.options = {cycle_limit, round_robin, watch_writes, stack_top, worker_stack_bytes};
}

void set_trace(Machine& machine, std::optional<nb::callable> write) {
  if (!write) {
    machine.trace = nullptr;
    return;
  }
  machine.trace = [callable = *write](const std::string& line) { callable(line); };
}

}  // namespace

NB_MODULE(_simulator, module) {
  nb::class_<Machine>(module, "Machine")
      .def("__init__", &make, nb::keep_alive<1, 5>())
      .def("run_vertices", &run)
      .def("count", &count)
      .def("registers", &registers)
      .def("set_register", &set_register)
      .def("trap", &trap_of)
      .def("set_options", &set_options)
      .def("set_trace", &set_trace, nb::arg("write").none())
      .def("slots", &Machine::bundles);
  module.def("n_forms", [] { return kFormCount; });
}
