// Engines: turn programs into flat work on tile memory, checking on the way, and do it.
#pragma once

#include "memory.hpp"
#include "vertices.hpp"

#include <poplar/Engine.hpp>

#include <ostream>

namespace poplar {

using program::Node;

// Bytes to be copied from one place to another; `repeat` copies of one element where it is not 0.
struct Move {
  char *target;
  const char *source;
  std::size_t n_bytes, repeat;
};

struct EngineData {
  std::shared_ptr<GraphData> graph;
  std::unique_ptr<TileMemory> memory;
  std::vector<std::shared_ptr<const Node>> programs;
  std::map<unsigned, Batch> batches;
  std::map<const Node *, std::vector<Move>> moves;
  std::map<const Node *, std::vector<Place>> places;
  std::map<std::string, std::pair<char *, char *>> buffers;
  std::uint64_t cycles = 0, n_compute_sets = 0, n_copies = 0, n_bytes_copied = 0;
  bool is_loaded = false, has_mode = false;

  void prepare(const Node &node);
  void prepare_copy(const Node &node);
  void prepare_stream(const Node &node);
  void run(const Node &node);
  void run_stream(const Node &node);
};

inline std::vector<Place> sorted(std::vector<Place> places) {
  std::sort(places.begin(), places.end(), [](const Place &a, const Place &b) { return a.address < b.address; });
  return places;
}

// No element may be written twice, nor be both read and written.
inline void check_copy(const std::string &name, std::vector<Place> source, std::vector<Place> target, std::size_t size) {
  const auto bytes = [size](const Place &place) { return place.repeats ? size : place.count * size; };
  const std::vector<Place> from = sorted(std::move(source)), to = sorted(std::move(target));
  for (std::size_t i = 1; i < to.size(); ++i)
    if (to[i - 1].address + bytes(to[i - 1]) > to[i].address)
      throw control_program_error("copy " + name + " writes an element twice");
  std::size_t j = 0;
  const char *furthest = nullptr;
  for (const Place &place : to) {
    for (; j < from.size() && from[j].address < place.address + bytes(place); ++j)
      furthest = std::max<const char *>(furthest, from[j].address + bytes(from[j]));
    if (furthest != nullptr && furthest > place.address)
      throw control_program_error("copy " + name + " reads an element that it writes");
  }
}

void EngineData::prepare_copy(const Node &node) {
  if (node.source.elementType() != node.target.elementType() || node.source.numElements() != node.target.numElements())
    throw control_program_error("copy " + node.name + " of " + std::to_string(node.source.numElements()) + " " +
                                node.source.elementType().toString() + " to " +
                                std::to_string(node.target.numElements()) + " " + node.target.elementType().toString());
  if (memory->is_constant(node.target))
    throw control_program_error("copy " + node.name + " writes a constant");
  std::vector<Place> from, to;
  memory->find(node.source, from);
  memory->find(node.target, to);
  const std::size_t size = node.target.elementType().size();
  check_copy(node.name, from, to, size);
  std::vector<Move> &work = moves[&node];
  std::size_t i = 0, j = 0, from_done = 0, to_done = 0;
  while (i < from.size() && j < to.size()) {
    if (to[j].repeats)
      throw control_program_error("copy " + node.name + " writes a repeated element");
    const std::size_t count = std::min(from[i].count - from_done, to[j].count - to_done);
    const char *source = from[i].address + (from[i].repeats ? 0 : from_done * size);
    work.push_back({to[j].address + to_done * size, source, count * size, from[i].repeats ? count : 0});
    if ((from_done += count) == from[i].count)
      ++i, from_done = 0;
    if ((to_done += count) == to[j].count)
      ++j, to_done = 0;
  }
}

void EngineData::prepare_stream(const Node &node) {
  const bool to_device = node.kind == Node::copy_from_stream;
  const Tensor &tensor = to_device ? node.target : node.source;
  const DataStream &stream = graph->streams.at(node.stream);
  if (stream.to_device != to_device || stream.type != tensor.elementType() || stream.n_elements != tensor.numElements())
    throw control_program_error("stream " + node.stream + " does not fit its tensor");
  if (to_device && memory->is_constant(tensor))
    throw control_program_error("stream " + node.stream + " writes a constant");
  std::vector<Place> &found = places[&node];
  memory->find(tensor, found);
  if (to_device)
    check_copy(node.stream, {}, found, tensor.elementType().size());
}

void EngineData::prepare(const Node &node) {
  for (const auto &child : node.children)
    prepare(*child);
  if (node.kind == Node::execute && batches.count(node.count) == 0)
    batches.emplace(node.count, make_batch(*graph, *memory, graph->compute_sets.at(node.count)));
  else if (node.kind == Node::copy && moves.count(&node) == 0)
    prepare_copy(node);
  else if ((node.kind == Node::copy_from_stream || node.kind == Node::copy_to_stream) && places.count(&node) == 0)
    prepare_stream(node);
  else if ((node.kind == Node::undefine || node.kind == Node::end_count) && places.count(&node) == 0) {
    if (memory->is_constant(node.target))
      throw control_program_error("WriteUndef of a constant");
    memory->find(node.target, places[&node]);
  }
}

void EngineData::run_stream(const Node &node) {
  const auto buffer = buffers.find(node.stream);
  if (buffer == buffers.end())
    throw application_runtime_error("stream " + node.stream + " is not connected");
  const DataStream &stream = graph->streams.at(node.stream);
  char *at = buffer->second.first;
  if (static_cast<std::size_t>(buffer->second.second - at) < stream.n_elements * stream.type.size())
    throw application_runtime_error("stream " + node.stream + " has too small a buffer");
  for (const Place &place : places[&node]) {
    const std::size_t n_bytes = place.count * stream.type.size();
    if (stream.to_device)
      std::memcpy(place.address, at, n_bytes);
    else
      std::memcpy(at, place.address, n_bytes);
    at += n_bytes;
  }
}

void EngineData::run(const Node &node) {
  switch (node.kind) {
  case Node::sequence:
    for (const auto &child : node.children)
      run(*child);
    return;
  case Node::repeat:
    for (unsigned i = 0; i < node.count; ++i)
      run(*node.children[0]);
    return;
  case Node::floating_point:
    has_mode = true;
    if (poplar_host::tiles() != nullptr)
      poplar_host::tiles()->set_floating_point(node.count);
    return;
  case Node::execute:
    if (!has_mode)
      throw application_runtime_error("compute set " + batches.at(node.count).name +
                                      " runs before the floating-point mode is set, and what a device begins with is not public");
    ++n_compute_sets;
    cycles += run_batch(batches.at(node.count));
    return;
  case Node::copy:
    ++n_copies;
    for (const Move &move : moves[&node]) {
      n_bytes_copied += move.n_bytes;
      if (move.repeat == 0) {
        std::memcpy(move.target, move.source, move.n_bytes);
      } else {
        const std::size_t size = move.n_bytes / move.repeat;
        for (std::size_t i = 0; i < move.repeat; ++i)
          std::memcpy(move.target + i * size, move.source, size);
      }
    }
    return;
  case Node::copy_from_stream:
  case Node::copy_to_stream: return run_stream(node);
  case Node::undefine:
    for (const Place &place : places[&node])
      std::memset(place.address, POISON, place.count * node.target.elementType().size());
    return;
  case Node::begin_count: cycles = 0; return;
  case Node::end_count: std::memcpy(places[&node].at(0).address, &cycles, sizeof cycles); return;
  }
}

inline std::shared_ptr<EngineData> prepared(const Graph &graph, const ArrayRef<program::Program> &programs) {
  auto data = std::make_shared<EngineData>();
  data->graph = graph.hostData();
  data->memory = std::make_unique<TileMemory>(*data->graph);
  for (const program::Program &one : programs) {
    data->programs.push_back(one.hostNode());
    data->prepare(*data->programs.back());
  }
  return data;
}

Executable compileGraph(const Graph &graph, ArrayRef<program::Program> programs, const OptionFlags &) {
  prepared(graph, programs);
  return {};
}

Engine::Engine(const Graph &graph, ArrayRef<program::Program> programs, const OptionFlags &)
    : data(prepared(graph, programs)) {}

void Engine::load(const Device &) { data->is_loaded = true; }

void Engine::run(unsigned number, const std::string &) {
  if (!data->is_loaded)
    throw application_runtime_error("an engine runs before it is loaded onto a device");
  if (number >= data->programs.size())
    throw application_runtime_error("there is no program " + std::to_string(number));
  data->run(*data->programs[number]);
}

void Engine::connectStream(StringRef handle, void *begin, void *end) {
  if (data->graph->streams.count(handle.str()) == 0)
    throw poplar_error("no stream is named " + handle.str());
  data->buffers[handle.str()] = {static_cast<char *>(begin), static_cast<char *>(end)};
}

void Engine::readTensor(StringRef handle, void *begin, void *end) {
  std::vector<Place> found;
  data->memory->find(data->graph->host_reads.at(handle.str()), found);
  const std::size_t n_bytes = static_cast<char *>(end) - static_cast<char *>(begin);
  std::memcpy(begin, found.at(0).address, std::min(n_bytes, found[0].count * 4));
}

void Engine::printProfileSummary(std::ostream &stream, const OptionFlags &) {
  stream << "host: " << data->n_compute_sets << " compute sets, " << data->cycles << " estimated cycles, "
         << data->n_copies << " copies of " << data->n_bytes_copied << " bytes\n";
}

} // namespace poplar
