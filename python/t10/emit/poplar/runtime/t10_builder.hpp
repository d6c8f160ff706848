// How a program's graph is made; t10_runtime.hpp says what each of these does. t10_runtime.cpp includes this.
#pragma once

#include "t10_files.hpp"
#include "t10_runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace t10 {

// An output may have the name of an input, which a model hands out as it is.
inline std::string stream_name(const HostTensor &tensor, std::size_t piece) {
  const char *way = tensor.role == HostTensor::output ? "out " : "in ";
  return way + tensor.name + "#" + std::to_string(piece);
}

Tensor Builder::variable(const char *name, const Type &type, unsigned n_rows, std::size_t n_elements,
                         std::size_t n_before) {
  const std::size_t end = n_before + n_elements;
  const Tensor whole = graph.addVariable(type, {n_rows, end}, name);
  for (unsigned tile = 0; tile < n_rows; ++tile)
    graph.setTileMapping(whole[tile], tile);
  return n_before == 0 ? whole : whole.slice(n_before, end, 1);
}

ComputeSet Builder::compute_set(const std::string &name) { return graph.addComputeSet(name); }

void Builder::vertices(ComputeSet set, const char *codelet, const Tiles &tiles, unsigned long cycles,
                       const std::vector<Field> &fields) {
  const std::string type = std::string("t10::") + codelet;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const unsigned tile = tiles[i];
    const poplar::VertexRef vertex = graph.addVertex(set, type);
    for (const Field &field : fields)
      give(vertex, field, tile, i);
    graph.setTileMapping(vertex, tile);
    graph.setPerfEstimate(vertex, cycles);
  }
}

Program Builder::exchange(const std::string &name, const std::vector<Tensor> &sources, const Tensor &target, Span runs,
                          const Fills &fills) {
  std::vector<Tensor> from, to;
  from.reserve(runs.size() / 9);
  to.reserve(runs.size() / 9);
  if (runs.size() % 9 != 0 || fills.rows.size() != 5 * fills.choice.size())
    throw FileError(std::string("tables.bin: the pattern of ") + name + " has no rows of nine and five numbers");
  for (const std::int32_t *run = runs.begin(); run != runs.end(); run += 9) {
    if (run[0] < 0 || static_cast<std::size_t>(run[0]) >= sources.size())
      throw FileError(std::string("tables.bin: the pattern of ") + name + " names source " + std::to_string(run[0]));
    check_pieces(sources[run[0]], name, run[1], run[2], run[5], run[6], run[7], false);
    check_pieces(target, name, run[3], run[4], run[5], run[6], run[8], true);
    append(from, sources[run[0]][run[1]], run[2], run[5], run[6], run[7]);
    append(to, target[run[3]], run[4], run[5], run[6], run[8]);
  }
  for (std::size_t i = 0; i < fills.choice.size(); ++i) {
    const std::int32_t *fill = fills.rows.begin() + 5 * i;
    check_pieces(target, name, fill[0], fill[1], fill[2], fill[3], fill[4], true);
    if (fills.choice[i] < 0 || static_cast<std::size_t>(fills.choice[i]) >= fills.values.size())
      throw FileError(std::string("tables.bin: the pattern of ") + name + " fills with no constant");
    const Tensor value = constant(target.elementType(), fills.values[fills.choice[i]])[fill[0]];
    const std::size_t value_bytes = value.numElements() * size_of(target);
    from.push_back(value.broadcast(static_cast<unsigned>(fill[2] / value_bytes * fill[3]), 0));
    append(to, target[fill[0]], fill[1], fill[2], fill[3], fill[4]);
  }
  Sequence result;
  if (!from.empty())
    result.add(Copy(concat(from), concat(to), false, name));
  return result;
}

Span Builder::table(unsigned number) const { return tables[number]; }

void Builder::host_tensor(HostTensor tensor) { host_tensors.push_back(std::move(tensor)); }

Sequence Builder::transfers(HostTensor::Role role) {
  Sequence result;
  for (const HostTensor &tensor : host_tensors) {
    for (std::size_t i = 0; tensor.role == role && i < tensor.pieces.size(); ++i) {
      if (!tensor.pieces[i].variable.valid())
        continue;
      const Tensor flat = tensor.pieces[i].variable.flatten();
      const std::string handle = stream_name(tensor, i);
      if (role == HostTensor::output)
        result.add(Copy(flat, graph.addDeviceToHostFIFO(handle, flat.elementType(), flat.numElements())));
      else
        result.add(Copy(graph.addHostToDeviceFIFO(handle, flat.elementType(), flat.numElements()), flat));
    }
  }
  return result;
}

std::size_t Builder::size_of(const Tensor &tensor) const {
  return graph.getTarget().getTypeSize(tensor.elementType());
}

// Bytes as elements of a tensor.
std::size_t Builder::elements(const Tensor &tensor, long long n_bytes) const {
  if (n_bytes % static_cast<long long>(size_of(tensor)) != 0)
    throw std::runtime_error("t10: offset of " + std::to_string(n_bytes) + " bytes lies inside an element");
  return n_bytes / size_of(tensor);
}

// Give a field of the vertex on `tile`, number i of its group, what it holds.
void Builder::give(const poplar::VertexRef &vertex, const Field &field, unsigned tile, std::size_t i) {
  const long long value = field.value[i];
  if (field.kind == Field::pointer) {
    const Tensor row = (*field.variable)[tile];
    const long long end = field.end[i];
    const Tensor part =
        row.slice(elements(row, value), end == end_of_row ? row.numElements() : elements(row, end));
    graph.connect(vertex[field.name], part.elementType() == field.type ? part : part.reinterpret(field.type));
  } else if (field.kind == Field::unsigned_word) {
    graph.setInitialValue(vertex[field.name], static_cast<unsigned>(value));
  } else if (field.kind == Field::signed_word) {
    graph.setInitialValue(vertex[field.name], static_cast<int>(value));
  } else {
    graph.setInitialValue(vertex[field.name], from_bits<float>(static_cast<unsigned>(value)));
  }
}

// Refuse pieces that lie outside of their row, or, where they are written, over each other.
void Builder::check_pieces(const Tensor &tensor, const std::string &name, long long tile, long long offset, long long n_bytes,
                           long long count, long long step, bool is_written) const {
  const long long last = offset + (count - 1) * step;
  const auto n_row = static_cast<long long>(size_of(tensor) * tensor.dim(1));
  if (tile < 0 || tile >= static_cast<long long>(tensor.dim(0)) || n_bytes < 1 || count < 1 ||
      std::min(offset, last) < 0 || std::max(offset, last) + n_bytes > n_row ||
      (is_written && count > 1 && std::abs(step) < n_bytes))
    throw FileError(std::string("tables.bin: the pattern of ") + name + " moves bytes that are not there or twice");
}

// Append `count` pieces of `n_bytes` of a row, `step` bytes apart, in as few tensors as possible.
void Builder::append(std::vector<Tensor> &parts, const Tensor &row, long long offset, long long n_bytes,
                     std::size_t count, long long step) const {
  const std::size_t begin = elements(row, offset), length = elements(row, n_bytes);
  if (count == 1 || step == n_bytes) {
    parts.push_back(row.slice(begin, begin + length * count));
    return;
  }
  const std::size_t stride = step < 0 ? 0 : elements(row, step);
  std::size_t done = 0;
  if (stride > length) { // all but the last piece are rows of a matrix, which must lie inside the variable
    done = begin + stride * count <= row.numElements() ? count : count - 1;
    const Tensor matrix = row.slice(begin, begin + stride * done).reshape({done, stride});
    parts.push_back(matrix.slice(0, length, 1).flatten());
  }
  for (; done < count; ++done) {
    const std::size_t at = elements(row, offset + step * static_cast<long long>(done));
    parts.push_back(row.slice(at, at + length));
  }
}

// A constant with one row on every tile, so that writing it needs no exchange.
Tensor Builder::constant(const Type &type, const Bits &bits) {
  for (const Constant &known : constants)
    if (known.type == type && known.bits == bits)
      return known.tensor;
  const Tensor result = typed_constant(type, bits);
  for (unsigned tile = 0; tile < n_tiles; ++tile)
    graph.setTileMapping(result[tile], tile);
  constants.push_back({type, bits, result});
  return result;
}

template <typename T> std::vector<T> Builder::repeated(const Bits &bits) const {
  std::vector<T> values;
  for (unsigned tile = 0; tile < n_tiles; ++tile)
    for (const std::uint32_t part : bits)
      values.push_back(from_bits<T>(part));
  return values;
}

template <typename T> Tensor Builder::constant_of(const Type &type, const Bits &bits) {
  const std::vector<T> values = repeated<T>(bits);
  const T *begin = values.data();
  return graph.addConstant<T>(type, {n_tiles, bits.size()}, begin);
}

Tensor Builder::typed_constant(const Type &type, const Bits &bits) {
  if (type == poplar::HALF) {
    const std::vector<std::uint16_t> values = repeated<std::uint16_t>(bits);
    const std::uint16_t *begin = values.data();
    return graph.addConstantHalf(type, {n_tiles, bits.size()}, begin);
  }
  if (type == poplar::FLOAT)
    return constant_of<float>(type, bits);
  if (type == poplar::INT)
    return constant_of<int>(type, bits);
  if (type == poplar::UNSIGNED_INT)
    return constant_of<unsigned>(type, bits);
  if (type == poplar::SHORT)
    return constant_of<short>(type, bits);
  if (type == poplar::UNSIGNED_SHORT)
    return constant_of<unsigned short>(type, bits);
  if (type == poplar::SIGNED_CHAR)
    return constant_of<signed char>(type, bits);
  return constant_of<unsigned char>(type, bits);
}

} // namespace t10
