// t10.sim.device._device: tile memories, exchanges and their schedule (see _device.pyi).

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "../../core/exchange_schedule.h"
#include "device_memory.h"
#include "exchange_transfers.h"

namespace nb = nanobind;

namespace {

using t10::Fault;
using t10::Fill;
using t10::Run;
using t10::TileMemories;
using Bytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Tiles = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Offsets = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Runs = nb::ndarray<const std::int32_t, nb::shape<-1, 9>, nb::c_contig, nb::device::cpu>;
using Fills = nb::ndarray<const std::int32_t, nb::shape<-1, 5>, nb::c_contig, nb::device::cpu>;
using Where = std::tuple<std::int64_t, std::int32_t, std::int64_t>;

static_assert(sizeof(Run) == 36 && sizeof(Fill) == 20, "rows are read as structures");

const Run *rows_of(const Runs &runs) { return reinterpret_cast<const Run *>(runs.data()); }
const Fill *rows_of(const Fills &fills) { return reinterpret_cast<const Fill *>(fills.data()); }

Where tuple_of(const Fault &fault) { return {fault.row, fault.tile, fault.offset}; }

void check_sources(const Runs &runs, const Offsets &sources) {
  const Run *rows = rows_of(runs);
  for (std::size_t i = 0; i < runs.shape(0); ++i) {
    if (rows[i].source < 0 || rows[i].source >= std::int64_t(sources.shape(0))) {
      throw std::out_of_range("run " + std::to_string(i) + " names source " + std::to_string(rows[i].source) + " of " +
                              std::to_string(sources.shape(0)));
    }
    if (rows[i].n_bytes < 1 || rows[i].count < 1) throw std::out_of_range("run " + std::to_string(i) + " is empty");
  }
}

// The memories as Python sees them; it keeps the arrays they are made of alive.
struct Memories {
  explicit Memories(std::vector<Bytes> tiles) : arrays(std::move(tiles)), memories(pointers(), length()) {}
  Memories(const Memories &) = delete;
  Memories &operator=(const Memories &) = delete;

  std::vector<std::uint8_t *> pointers() const {
    std::vector<std::uint8_t *> result;
    for (const Bytes &each : arrays) result.push_back(each.data());
    return result;
  }

  std::int64_t length() const {
    if (arrays.empty()) throw std::invalid_argument("no tiles");
    for (const Bytes &each : arrays) {
      if (each.shape(0) != arrays[0].shape(0)) throw std::invalid_argument("tiles with memories of unequal size");
    }
    return std::int64_t(arrays[0].shape(0));
  }

  std::vector<Bytes> arrays;
  TileMemories memories;
};

void write_rows(Memories &self, const Tiles &tiles, std::int64_t offset, const Rows &rows) {
  if (rows.shape(0) != tiles.shape(0)) throw std::invalid_argument("one row per tile is needed");
  const std::int64_t n = std::int64_t(rows.shape(1));
  for (std::size_t i = 0; i < tiles.shape(0); ++i) {
    self.memories.write(tiles.data()[i], offset, rows.data() + i * rows.shape(1), n);
  }
}

void read_rows(Memories &self, const Tiles &tiles, std::int64_t offset,
               const nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> &out) {
  if (out.shape(0) != tiles.shape(0)) throw std::invalid_argument("one row per tile is needed");
  const std::int64_t n = std::int64_t(out.shape(1));
  for (std::size_t i = 0; i < tiles.shape(0); ++i) {
    std::memcpy(out.data() + i * out.shape(1), self.memories.at(tiles.data()[i], offset, n), out.shape(1));
  }
}

void written_rows(Memories &self, const Tiles &tiles, std::int64_t offset,
                  const nb::ndarray<std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> &out) {
  if (out.shape(0) != tiles.shape(0)) throw std::invalid_argument("one row per tile is needed");
  for (std::size_t i = 0; i < tiles.shape(0); ++i) {
    self.memories.at(tiles.data()[i], offset, std::int64_t(out.shape(1)));
    std::memcpy(out.data() + i * out.shape(1), self.memories.shadow(tiles.data()[i]) + offset, out.shape(1));
  }
}

void mark(Memories &self, const Tiles &tiles, const Offsets &offsets, std::int64_t n) {
  for (std::size_t i = 0; i < tiles.shape(0); ++i) self.memories.mark(tiles.data()[i], offsets.data()[i], n);
}

void poison(Memories &self, std::int64_t n_tiles, std::int64_t offset, std::int64_t n) {
  for (std::int64_t tile = 0; tile < n_tiles; ++tile) self.memories.poison(tile, offset, n);
}

Where move(Memories &self, const Runs &runs, const Offsets &sources, std::int64_t target_offset,
           bool refuses_unwritten) {
  check_sources(runs, sources);
  const nb::gil_scoped_release unlocked;
  return tuple_of(
      self.memories.move(rows_of(runs), std::int64_t(runs.shape(0)), sources.data(), target_offset, refuses_unwritten));
}

void fill(Memories &self, const Fills &fills, const Tiles &values, std::int64_t target_offset, const Rows &elements) {
  if (values.shape(0) != fills.shape(0)) throw std::invalid_argument("one value per fill is needed");
  for (std::size_t i = 0; i < fills.shape(0); ++i) {
    const std::int32_t value = values.data()[i];
    if (value < 0 || value >= std::int64_t(elements.shape(0))) throw std::out_of_range("no constant " + std::to_string(value));
    self.memories.fill(rows_of(fills)[i], target_offset, elements.data() + value * elements.shape(1),
                       std::int64_t(elements.shape(1)));
  }
}

Where find_race(const Runs &runs, const Fills &fills, const Offsets &sources, std::int64_t target_offset,
                std::int64_t n_tiles, std::int64_t target_bytes) {
  check_sources(runs, sources);
  const nb::gil_scoped_release unlocked;
  return tuple_of(t10::find_race(rows_of(runs), std::int64_t(runs.shape(0)), rows_of(fills),
                                 std::int64_t(fills.shape(0)), sources.data(), target_offset, n_tiles, target_bytes));
}

// The way a transfer takes over the chip, in eighths of a cycle per row and column between two tiles.
struct FloorPlan {
  const std::int64_t *places;
  std::int64_t row_eighths, column_eighths;

  std::int64_t cycles(std::int32_t a, std::int32_t b) const {
    const std::int64_t rows = std::abs(places[2 * a] - places[2 * b]);
    const std::int64_t columns = std::abs(places[2 * a + 1] - places[2 * b + 1]);
    return (rows * row_eighths + columns * column_eighths + t10::EIGHTH - 1) / t10::EIGHTH;
  }
};

using Table = nb::ndarray<std::int64_t, nb::shape<-1, 5>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const std::int64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

nb::tuple schedule(const Runs &runs, const Fills &fills, const Offsets &sources, std::int64_t target_offset,
                   const std::vector<std::int64_t> &rates, const Places &places, std::int64_t row_eighths,
                   std::int64_t column_eighths, Table &table) {
  check_sources(runs, sources);
  if (rates.size() != 10) throw std::invalid_argument("ten rates are needed");
  const std::int64_t n_tiles = std::int64_t(table.shape(0));
  for (std::size_t i = 0; i < runs.shape(0); ++i) {
    const Run &run = rows_of(runs)[i];
    if (std::min(run.source_tile, run.target_tile) < 0 || std::max(run.source_tile, run.target_tile) >= n_tiles) {
      throw std::out_of_range("run " + std::to_string(i) + " names a tile that is not there");
    }
  }
  for (std::size_t i = 0; i < fills.shape(0); ++i) {
    if (rows_of(fills)[i].tile < 0 || rows_of(fills)[i].tile >= n_tiles) {
      throw std::out_of_range("fill " + std::to_string(i) + " names a tile that is not there");
    }
  }
  const t10::ExchangeRates given{rates[0], rates[1], rates[2], rates[3], rates[4], {rates[5], rates[6]}, rates[7], rates[8], rates[9]};
  t10::Transfers made;
  t10::Schedule plan;
  std::int64_t last = 0, fragments = 0, most = 0;
  {
    const nb::gil_scoped_release unlocked;
    made = t10::TransferMaker(given, n_tiles)
               .make(rows_of(runs), std::int64_t(runs.shape(0)), rows_of(fills), std::int64_t(fills.shape(0)),
                     sources.data(), target_offset);
    std::vector<std::int64_t> tails(n_tiles, 0);
    for (std::int64_t tile = 0; tile < n_tiles; ++tile)
      if (made.after[tile] > 0) tails[tile] = given.launch_cycles + (made.after[tile] + t10::EIGHTH - 1) / t10::EIGHTH;
    plan = t10::best_schedule(made.list, tails, given.fragment_cycles);
    std::vector<std::int64_t> sent(n_tiles, 0), received(n_tiles, 0), taken(n_tiles, 0), ends(n_tiles, 0);
    const bool has_places = std::int64_t(places.shape(0)) >= n_tiles;
    const FloorPlan floor{places.data(), row_eighths, column_eighths};
    for (const t10::Transfer &each : made.list) {
      sent[each.source] += each.n_bytes;
      for (const std::int32_t tile : each.targets) received[tile] += each.n_bytes;
    }
    for (const t10::Part &part : plan.parts) {
      const t10::Transfer &each = made.list[part.transfer];
      ends[each.source] = std::max(ends[each.source], part.begin + part.cycles);
      for (const std::int32_t tile : each.targets) {
        taken[tile] += part.fragments;
        const std::int64_t way = has_places ? floor.cycles(each.source, tile) : 0;
        ends[tile] = std::max(ends[tile], part.begin + part.cycles + way);
        last = std::max(last, ends[tile]);
      }
    }
    for (std::int64_t tile = 0; tile < n_tiles; ++tile) {
      most = std::max({most, sent[tile], received[tile]});
      fragments = std::max(fragments, taken[tile]);
      std::int64_t *row = table.data() + 5 * tile;
      row[0] = (made.before[tile] + t10::EIGHTH - 1) / t10::EIGHTH;
      row[1] = plan.sent[tile];
      row[2] = plan.received[tile];
      row[3] = (made.after[tile] + t10::EIGHTH - 1) / t10::EIGHTH;
      row[4] = ends[tile];
    }
  }
  return nb::make_tuple(last, plan.bound, plan.parts.size(), fragments, made.crossing_bytes, most);
}

}  // namespace

NB_MODULE(_device, module) {
  nb::class_<Memories>(module, "Memories")
      .def(nb::init<std::vector<Bytes>>(), nb::arg("tiles"))
      .def("write_rows", &write_rows, nb::arg("tiles"), nb::arg("offset"), nb::arg("rows"))
      .def("read_rows", &read_rows, nb::arg("tiles"), nb::arg("offset"), nb::arg("out"))
      .def("written_rows", &written_rows, nb::arg("tiles"), nb::arg("offset"), nb::arg("out"))
      .def("mark", &mark, nb::arg("tiles"), nb::arg("offsets"), nb::arg("n_bytes"))
      .def("poison", &poison, nb::arg("n_tiles"), nb::arg("offset"), nb::arg("n_bytes"))
      .def("move", &move, nb::arg("runs"), nb::arg("source_offsets"), nb::arg("target_offset"),
           nb::arg("refuses_unwritten"))
      .def("fill", &fill, nb::arg("fills"), nb::arg("values"), nb::arg("target_offset"), nb::arg("elements"));
  module.def("find_race", &find_race, nb::arg("runs"), nb::arg("fills"), nb::arg("source_offsets"),
             nb::arg("target_offset"), nb::arg("n_tiles"), nb::arg("target_bytes"));
  module.def("schedule", &schedule, nb::arg("runs"), nb::arg("fills"), nb::arg("source_offsets"),
             nb::arg("target_offset"), nb::arg("rates"), nb::arg("places"), nb::arg("row_eighths"),
             nb::arg("column_eighths"), nb::arg("table"));
}
