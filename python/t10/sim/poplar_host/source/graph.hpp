// Graphs as plain data, and the interface that fills them.
#pragma once

#include "registry.hpp"

#include <poplar/CSRFunctions.hpp>
#include <poplar/CycleCount.hpp>
#include <poplar/Graph.hpp>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace poplar {

struct Mapping {
  std::size_t begin, end;
  unsigned tile;
};

struct VariableData {
  std::string name;
  Type type;
  std::size_t count;
  std::vector<Mapping> mapping;
  std::vector<char> values; // of a constant
};

struct EdgeData {
  unsigned field;
  Tensor tensor;
};

struct VertexData {
  const poplar_host::VertexType *type;
  long tile;
  std::uint64_t cycles;
  bool has_cycles;
  std::vector<EdgeData> edges;
  std::vector<std::pair<unsigned, std::uint32_t>> words;
};

struct ComputeSetData {
  std::string name;
  std::vector<unsigned> vertices;
};

struct GraphData {
  Target target;
  std::vector<VariableData> variables;
  std::vector<VertexData> vertices;
  std::vector<ComputeSetData> compute_sets;
  std::map<std::string, DataStream> streams;
  std::map<std::string, Tensor> host_reads;
  bool has_codelets = false;
};

Graph::Graph(const Target &target) : data(std::make_shared<GraphData>()) { data->target = target; }

const Target &Graph::getTarget() const { return data->target; }

// Codelets are linked into the program, which has them all; they must be there and added all the same.
void Graph::addCodelets(ArrayRef<std::string> files, StringRef) {
  for (const std::string &file : files)
    if (!std::ifstream(file))
      throw poplar_error("cannot read the codelets " + file);
  data->has_codelets = true;
}

bool Graph::addCodelets(StringRef file, CodeletFileType, StringRef flags) {
  addCodelets(std::vector<std::string>{file.str()}, flags);
  return true;
}

Tensor Graph::addVariable(const Type &type, ArrayRef<std::size_t> shape, const DebugContext &debug) {
  std::size_t count = 1;
  for (const std::size_t extent : shape)
    count *= extent;
  const auto number = static_cast<unsigned>(data->variables.size());
  data->variables.push_back({debug.path(), type, count, {}, {}});
  return Tensor(type, shape.vector(), {{number, 0, count, false}});
}

Tensor Graph::constant(const Type &type, ArrayRef<std::size_t> shape, const void *values, const DebugContext &debug) {
  Tensor result = addVariable(type, shape, debug);
  const char *bytes = static_cast<const char *>(values);
  data->variables.back().values.assign(bytes, bytes + type.size() * result.numElements());
  return result;
}

void Graph::setTileMapping(const Tensor &tensor, unsigned tile) {
  if (tile >= data->target.getNumTiles())
    throw invalid_tile_mapping("tile " + std::to_string(tile) + " of a target with " +
                               std::to_string(data->target.getNumTiles()) + " tiles");
  for (const Region &region : tensor.hostRegions())
    data->variables[region.variable].mapping.push_back({region.begin, region.begin + region.count, tile});
}

void Graph::setTileMapping(const VertexRef &vertex, unsigned tile) {
  if (tile >= data->target.getNumTiles())
    throw invalid_tile_mapping("vertex on tile " + std::to_string(tile));
  data->vertices.at(vertex.getId()).tile = tile;
}

ComputeSet Graph::addComputeSet(const DebugContext &debug) {
  data->compute_sets.push_back({debug.path(), {}});
  return ComputeSet(static_cast<unsigned>(data->compute_sets.size() - 1));
}

VertexRef Graph::addVertex(ComputeSet set, StringRef vertex_type) {
  const auto found = poplar_host::registry().find(vertex_type.str());
  if (!data->has_codelets || found == poplar_host::registry().end())
    throw unknown_vertex_type(data->has_codelets ? "no codelet is named " + vertex_type.str()
                                                 : "no codelets are added before vertex " + vertex_type.str());
  const auto number = static_cast<unsigned>(data->vertices.size());
  data->vertices.push_back({&found->second, -1, 0, false, {}, {}});
  data->compute_sets.at(set.getId()).vertices.push_back(number);
  return VertexRef(number);
}

inline unsigned find_field(const VertexData &vertex, const std::string &name, bool is_word) {
  const auto &fields = vertex.type->fields;
  for (unsigned i = 0; i < fields.size(); ++i) {
    if (fields[i].name != name)
      continue;
    if ((fields[i].direction == poplar_host::Direction::word) != is_word)
      throw graph_connection_error(vertex.type->name + "." + name + (is_word ? " is an edge" : " is no edge"));
    return i;
  }
  throw unknown_field(vertex.type->name + " has no field " + name);
}

void Graph::connect(const FieldRef &field, const Tensor &tensor) {
  VertexData &vertex = data->vertices.at(field.vertex);
  const unsigned number = find_field(vertex, field.name, false);
  const Type expected = vertex.type->fields[number].type;
  if (tensor.elementType() != expected || tensor.rank() != 1)
    throw graph_connection_error(vertex.type->name + "." + field.name + " is connected to " +
                                 tensor.elementType().toString() + " of rank " + std::to_string(tensor.rank()) +
                                 " (expected a row of " + expected.toString() + ")");
  vertex.edges.push_back({number, tensor});
}

void Graph::initialValue(const FieldRef &field, std::uint32_t bits, char kind) {
  VertexData &vertex = data->vertices.at(field.vertex);
  const unsigned number = find_field(vertex, field.name, true);
  const Type type = vertex.type->fields[number].type;
  if (type != (kind == 'f' ? FLOAT : kind == 'i' ? INT : UNSIGNED_INT))
    throw graph_connection_error(vertex.type->name + "." + field.name + " is given another type than " +
                                 type.toString());
  vertex.words.push_back({number, bits});
}

void Graph::setPerfEstimate(const VertexRef &vertex, std::uint64_t cycles, std::uint64_t) {
  data->vertices.at(vertex.getId()).cycles = cycles;
  data->vertices.at(vertex.getId()).has_cycles = true;
}

inline DataStream add_stream(GraphData &data, DataStream stream) {
  if (!data.streams.emplace(stream.handle, stream).second)
    throw poplar_error("two streams are named " + stream.handle);
  return stream;
}

DataStream Graph::addHostToDeviceFIFO(StringRef handle, const Type &type, std::size_t n_elements) {
  return add_stream(*data, {handle.str(), type, n_elements, true});
}

DataStream Graph::addDeviceToHostFIFO(StringRef handle, const Type &type, std::size_t n_elements) {
  return add_stream(*data, {handle.str(), type, n_elements, false});
}

void Graph::createHostRead(StringRef handle, const Tensor &tensor, bool) { data->host_reads[handle.str()] = tensor; }

Tensor cycleCount(Graph &graph, program::Sequence &sequence, unsigned tile, SyncType, const DebugContext &debug) {
  Tensor count = graph.addVariable(UNSIGNED_INT, {2}, debug);
  graph.setTileMapping(count, tile);
  program::Sequence counted({program::HostCount(true), sequence, program::HostCount(false, count)});
  sequence = counted;
  return count;
}

void setFloatingPointBehaviour(Graph &, program::Sequence &sequence, const FloatingPointBehaviour &behaviour,
                               const DebugContext &debug) {
  if (behaviour.inv || behaviour.div0 || behaviour.oflo)
    throw poplar_error("floating-point exceptions (inv, div0, oflo) are not modelled on a host");
  if (behaviour.esr)
    throw poplar_error("stochastic rounding (esr) is not modelled on a host");
  if (behaviour.nanoo && poplar_host::tiles() == nullptr)
    throw poplar_error("f16 overflow to NaN (nanoo) is modelled for assembly only");
  constexpr unsigned NANOO = 1u << 20;
  sequence.add(program::HostMode(behaviour.nanoo ? NANOO : 0, debug));
}

} // namespace poplar
