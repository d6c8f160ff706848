// The vertices of a compute set, checked and ready to run.
#pragma once

#include "memory.hpp"

namespace poplar {

// A vertex as an object of its class; `written` are the pieces it may write, with their element sizes.
struct Instance {
  void (*run)(void *);
  std::size_t object; // bytes into the batch's objects
  const VertexData *vertex;
};

// What a vertex may touch, in bytes.
struct Access {
  const char *begin, *end;
  bool is_written;
  unsigned vertex, field;
};

struct Batch {
  std::string name;
  std::uint64_t cycles = 0;
  std::vector<Instance> instances;
  std::vector<char> objects;
  std::vector<std::pair<char *, std::size_t>> undefined; // contents of Output fields before
  std::vector<std::pair<const Piece *, std::size_t>> guarded;
};

constexpr std::size_t WORD_BYTES = 4, OBJECT_ALIGNMENT = 16;

inline std::string described(const ComputeSetData &set, const VertexData &vertex, const std::string &field) {
  return set.name + ": " + vertex.type->name + (field.empty() ? "" : "." + field) + " on tile " +
         std::to_string(vertex.tile);
}

// The one place of an edge: on the vertex's own tile, contiguous, aligned.
inline Place edge_place(const ComputeSetData &set, const TileMemory &memory, const VertexData &vertex,
                        const EdgeData &edge) {
  const poplar_host::Field &field = vertex.type->fields[edge.field];
  std::vector<Place> places;
  memory.find(edge.tensor, places);
  if (places.size() != 1 || places[0].repeats)
    throw graph_connection_error(described(set, vertex, field.name) + " is connected to " +
                                 std::to_string(places.size()) + " pieces (expected one, contiguous on its tile)");
  const Place &place = places[0];
  if (place.piece->tile != static_cast<unsigned long>(vertex.tile))
    throw graph_connection_error(described(set, vertex, field.name) + " is connected to memory of tile " +
                                 std::to_string(place.piece->tile));
  // Pieces begin at multiples of 64 bytes: what is aligned within one is aligned.
  if (reinterpret_cast<std::uintptr_t>(place.address) % field.alignment != 0)
    throw graph_connection_error(described(set, vertex, field.name) + " is not aligned to " +
                                 std::to_string(field.alignment) + " bytes");
  if (field.direction != poplar_host::Direction::in && memory.is_constant(edge.tensor))
    throw graph_connection_error(described(set, vertex, field.name) + " writes a constant");
  return place;
}

// Edges that are written overlap no other: of one vertex to the byte, of two to the 32-bit word.
inline void check_accesses(const GraphData &graph, const ComputeSetData &set, std::vector<Access> &accesses) {
  std::sort(accesses.begin(), accesses.end(), [](const Access &a, const Access &b) { return a.begin < b.begin; });
  const auto name = [&](const Access &access) {
    const VertexData &vertex = graph.vertices[access.vertex];
    return described(set, vertex, vertex.type->fields[access.field].name);
  };
  const auto words = [](const Access &access) {
    return reinterpret_cast<std::uintptr_t>(access.end - 1) / WORD_BYTES;
  };
  // Of all edges before, and of those that are written, the one that reaches furthest, and the furthest of another vertex.
  struct Furthest {
    const Access *first = nullptr, *other = nullptr;
    void add(const Access &access) {
      if (first == nullptr || access.end > first->end) {
        if (first != nullptr && first->vertex != access.vertex)
          other = first;
        first = &access;
      } else if (access.vertex != first->vertex && (other == nullptr || access.end > other->end)) {
        other = &access;
      }
    }
  } all, written;
  for (const Access &access : accesses) {
    const Furthest &before = access.is_written ? all : written;
    for (const Access *one : {before.first, before.other}) {
      if (one == nullptr)
        continue;
      if (one->vertex == access.vertex && one->end > access.begin)
        throw graph_connection_error(name(access) + " and " + name(*one) +
                                     " overlap, and the vertex writes one of them (expected one edge)");
      if (one->vertex != access.vertex &&
          words(*one) >= reinterpret_cast<std::uintptr_t>(access.begin) / WORD_BYTES)
        throw graph_connection_error(name(access) + " and " + name(*one) + " touch the same words, and one writes them");
    }
    all.add(access);
    if (access.is_written)
      written.add(access);
  }
}

// Every field is given once.
inline void check_fields(const ComputeSetData &set, const VertexData &vertex) {
  std::vector<unsigned> times(vertex.type->fields.size());
  for (const EdgeData &edge : vertex.edges)
    ++times[edge.field];
  for (const auto &[field, bits] : vertex.words)
    ++times[field];
  for (std::size_t i = 0; i < times.size(); ++i)
    if (times[i] != 1)
      throw graph_connection_error(described(set, vertex, vertex.type->fields[i].name) + " is given " +
                                   std::to_string(times[i]) + " times (expected once)");
}

// Fields in different memory elements do not overlap; `accesses` ends with those of the vertex.
inline void check_apart(const ComputeSetData &set, const VertexData &vertex, const std::vector<Access> &accesses) {
  const auto of_field = [&](const std::string &name) {
    std::size_t i = accesses.size() - vertex.edges.size();
    while (vertex.type->fields[accesses[i].field].name != name)
      ++i;
    return accesses[i];
  };
  for (const auto &[first, second] : vertex.type->apart) {
    const Access a = of_field(first), b = of_field(second);
    if (a.begin < b.end && b.begin < a.end)
      throw memory_elem_constraints_error(described(set, vertex, first) + " and " + second +
                                          " overlap, but their constraint is different memory elements");
  }
}

inline Batch make_batch(const GraphData &graph, const TileMemory &memory, const ComputeSetData &set) {
  Batch batch;
  batch.name = set.name;
  std::vector<Access> accesses;
  for (const unsigned number : set.vertices) {
    const VertexData &vertex = graph.vertices[number];
    if (vertex.tile < 0)
      throw invalid_tile_mapping(described(set, vertex, "") + " has no tile");
    if (!vertex.has_cycles)
      throw missing_perf_estimate(described(set, vertex, "") + " has no estimate of its cycles");
    check_fields(set, vertex);
    const std::size_t object = batch.objects.size();
    batch.objects.resize(object + (vertex.type->size + OBJECT_ALIGNMENT - 1) / OBJECT_ALIGNMENT * OBJECT_ALIGNMENT);
    for (const auto &[field, bits] : vertex.words)
      std::memcpy(&batch.objects[object + vertex.type->fields[field].offset], &bits, sizeof bits);
    for (const EdgeData &edge : vertex.edges) {
      const poplar_host::Field &field = vertex.type->fields[edge.field];
      const Place place = edge_place(set, memory, vertex, edge);
      std::memcpy(&batch.objects[object + field.offset], &place.address, sizeof place.address);
      const std::size_t size = field.type.size();
      const bool is_written = field.direction != poplar_host::Direction::in;
      accesses.push_back({place.address, place.address + place.count * size, is_written, number, edge.field});
      if (is_written)
        batch.guarded.push_back({place.piece, size});
      if (field.direction == poplar_host::Direction::out)
        batch.undefined.push_back({place.address, place.count * size});
    }
    check_apart(set, vertex, accesses);
    batch.instances.push_back({vertex.type->run, object, &vertex});
    batch.cycles = std::max(batch.cycles, vertex.cycles);
  }
  check_accesses(graph, set, accesses);
  return batch;
}

// Run the code of all vertices on their tiles and return the cycles of the longest.
inline std::uint64_t run_on_tiles(const Batch &batch) {
  std::uint64_t cycles = 0;
  for (const Instance &instance : batch.instances) {
    const VertexData &vertex = *instance.vertex;
    cycles = std::max(cycles, poplar_host::tiles()->run(static_cast<unsigned>(vertex.tile), *vertex.type,
                                                        &batch.objects[instance.object]));
  }
  return cycles;
}

// Run all vertices and return the cycles of the longest: what code took, the estimates where C++ bodies ran.
inline std::uint64_t run_batch(Batch &batch) {
  for (const auto &[address, n_bytes] : batch.undefined)
    std::memset(address, POISON, n_bytes);
  std::uint64_t cycles = batch.cycles;
  for (const Instance &instance : batch.instances)
    if (poplar_host::tiles() == nullptr)
      instance.run(&batch.objects[instance.object]);
  if (poplar_host::tiles() != nullptr)
    cycles = run_on_tiles(batch);
  for (const auto &[piece, size] : batch.guarded)
    if (!TileMemory::is_guarded(*piece, size))
      throw application_runtime_error(batch.name + ": a vertex on tile " + std::to_string(piece->tile) +
                                      " wrote beside what it is connected to");
  return cycles;
}

} // namespace poplar
