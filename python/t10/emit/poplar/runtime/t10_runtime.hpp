// The fixed part of every program that T10 writes: variables on tiles, vertices over tiles, exchanges from tables.
//
// Rows of a variable are tiles: row t of every variable lies on tile t. All offsets and sizes are bytes of a row, as in
// the tables; the helpers turn them into elements. Only the public Poplar API is used.
#pragma once

#include "t10_tables.hpp"

#include <poplar/CycleCount.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace t10 {

using poplar::ComputeSet;
using poplar::Graph;
using poplar::Tensor;
using poplar::Type;
using poplar::program::Copy;
using poplar::program::Execute;
using poplar::program::Program;
using poplar::program::Repeat;
using poplar::program::Sequence;
using poplar::program::WriteUndef;

// A field of a vertex: a pointer into row `tile` of a variable, `value` bytes from its beginning, or a plain word.
struct Field {
  enum Kind { pointer, unsigned_word, signed_word, float_bits };
  const char *name;
  Kind kind;
  const Tensor *variable;
  Type type;
  PerTile value;
};

inline Field edge(const char *name, const Tensor &variable, PerTile offset_bytes = 0) {
  return {name, Field::pointer, &variable, variable.elementType(), offset_bytes};
}
// The same for a field whose elements have another type of the same size.
inline Field edge_as(const char *name, Type type, const Tensor &variable, PerTile offset_bytes = 0) {
  return {name, Field::pointer, &variable, type, offset_bytes};
}
inline Field u32(const char *name, PerTile value) {
  return {name, Field::unsigned_word, nullptr, poplar::UNSIGNED_INT, value};
}
inline Field i32(const char *name, PerTile value) {
  return {name, Field::signed_word, nullptr, poplar::INT, value};
}
// A 32-bit float, given by its bits.
inline Field f32(const char *name, PerTile bits) { return {name, Field::float_bits, nullptr, poplar::FLOAT, bits}; }

// Constants that an exchange writes besides what it moves: `rows` are (tile, offset, bytes, count, step), `choice` says
// which of `values` each row writes. A value is the bits of one element, in as many parts as Poplar has elements for it.
using Bits = std::vector<std::uint32_t>;
struct Fills {
  Span rows;
  Span choice;
  std::vector<Bits> values;
};

// A tensor that crosses the host's link: where its elements lie in variables, and its bytes in row-major order.
struct HostPiece {
  Tensor variable; // not valid in an output's piece that is constant
  Span slots;
  std::uint64_t fill; // bits of the element in slots that hold none, or of the constant
};

struct HostTensor {
  enum Role { weight, input, output };
  Role role;
  std::string name;
  std::string numpy_type; // e.g. "<f4"
  std::vector<std::size_t> shape;
  std::size_t weights_offset; // bytes into weights.bin, `absent` where the compiler had no values
  std::vector<HostPiece> pieces;
};

constexpr std::size_t absent = ~std::size_t(0);

inline std::string stream_name(const HostTensor &tensor, std::size_t piece) {
  return tensor.name + "#" + std::to_string(piece);
}

// Makes the graph. One per program.
class Builder {
public:
  Builder(Graph &graph, const Tables &tables, unsigned n_tiles) : graph(graph), tables(tables), n_tiles(n_tiles) {}

  // A variable with one row of `n_elements` on each of the first `n_rows` tiles. `n_before` unused elements stand before
  // each row, so that offsets which T10 aligned are aligned where rows begin at multiples of 16 bytes.
  Tensor variable(const char *name, const Type &type, unsigned n_rows, std::size_t n_elements, std::size_t n_before = 0) {
    const std::size_t end = n_before + n_elements;
    const Tensor whole = graph.addVariable(type, {n_rows, end}, name);
    for (unsigned tile = 0; tile < n_rows; ++tile)
      graph.setTileMapping(whole[tile], tile);
    return n_before == 0 ? whole : whole.slice(n_before, end, 1);
  }

  ComputeSet compute_set(const char *name) { return graph.addComputeSet(name); }

  // One vertex per tile of `tiles`; `cycles` is what the compiler expects it to take.
  void vertices(ComputeSet set, const char *codelet, const Tiles &tiles, unsigned long cycles,
                const std::vector<Field> &fields) {
    const std::string type = std::string("t10::") + codelet;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const unsigned tile = tiles[i];
      auto vertex = graph.addVertex(set, type);
      for (const Field &field : fields)
        give(vertex, field, tile, i);
      graph.setTileMapping(vertex, tile);
      graph.setPerfEstimate(vertex, cycles);
    }
  }

  // One exchange phase: rows of `runs` are (number of source, source tile, source offset, target tile, target offset,
  // bytes of one piece, how many pieces, step in the source, step in the target).
  Program exchange(const char *name, const std::vector<Tensor> &sources, const Tensor &target, Span runs,
                   const Fills &fills = {}) {
    std::vector<Tensor> from, to;
    from.reserve(runs.size() / 9);
    to.reserve(runs.size() / 9);
    for (const std::int32_t *run = runs.begin(); run != runs.end(); run += 9) {
      append(from, sources[run[0]][run[1]], run[2], run[5], run[6], run[7]);
      append(to, target[run[3]], run[4], run[5], run[6], run[8]);
    }
    for (std::size_t i = 0; i < fills.choice.size(); ++i) {
      const std::int32_t *fill = fills.rows.begin() + 5 * i;
      const Tensor value = constant(target.elementType(), fills.values[fills.choice[i]])[fill[0]];
      const std::size_t value_bytes = value.numElements() * size_of(target);
      from.push_back(value.broadcast(fill[2] / value_bytes * fill[3], 0));
      append(to, target[fill[0]], fill[1], fill[2], fill[3], fill[4]);
    }
    Sequence result;
    if (!from.empty())
      result.add(Copy(concat(from), concat(to), false, name));
    return result;
  }

  Span table(unsigned number) const { return tables[number]; }

  void host_tensor(HostTensor tensor) { host_tensors.push_back(std::move(tensor)); }

  // Programs that move all host tensors of a role between streams and variables.
  Sequence transfers(HostTensor::Role role) {
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

  Graph &graph;
  std::vector<HostTensor> host_tensors;

private:
  const Tables &tables;
  unsigned n_tiles;
  struct Constant {
    Type type;
    Bits bits;
    Tensor tensor;
  };
  std::vector<Constant> constants;

  std::size_t size_of(const Tensor &tensor) const { return graph.getTarget().getTypeSize(tensor.elementType()); }

  std::size_t elements(const Tensor &tensor, long long n_bytes) const {
    if (n_bytes % static_cast<long long>(size_of(tensor)) != 0)
      throw std::runtime_error("t10: offset of " + std::to_string(n_bytes) + " bytes lies inside an element");
    return n_bytes / size_of(tensor);
  }

  void give(const poplar::VertexRef &vertex, const Field &field, unsigned tile, std::size_t i) {
    const long long value = field.value[i];
    if (field.kind == Field::pointer) {
      const Tensor row = (*field.variable)[tile];
      const Tensor rest = row.slice(elements(row, value), row.numElements());
      graph.connect(vertex[field.name], rest.elementType() == field.type ? rest : rest.reinterpret(field.type));
    } else if (field.kind == Field::unsigned_word) {
      graph.setInitialValue(vertex[field.name], static_cast<unsigned>(value));
    } else if (field.kind == Field::signed_word) {
      graph.setInitialValue(vertex[field.name], static_cast<int>(value));
    } else {
      graph.setInitialValue(vertex[field.name], from_bits<float>(static_cast<unsigned>(value)));
    }
  }

  // Append `count` pieces of `n_bytes` of a row, `step` bytes apart, in as few tensors as possible.
  void append(std::vector<Tensor> &parts, const Tensor &row, long long offset, long long n_bytes, std::size_t count,
              long long step) const {
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
  Tensor constant(const Type &type, const Bits &bits) {
    for (const Constant &known : constants)
      if (known.type == type && known.bits == bits)
        return known.tensor;
    Tensor result = typed_constant(type, bits);
    for (unsigned tile = 0; tile < n_tiles; ++tile)
      graph.setTileMapping(result[tile], tile);
    constants.push_back({type, bits, result});
    return result;
  }

  Tensor typed_constant(const Type &type, const Bits &bits) {
    if (type == poplar::HALF) {
      const std::vector<std::uint16_t> values = repeated<std::uint16_t>(bits);
      return graph.addConstantHalf(type, {n_tiles, bits.size()}, values.data());
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

  template <typename T> Tensor constant_of(const Type &type, const Bits &bits) {
    const std::vector<T> values = repeated<T>(bits);
    const T *begin = values.data();
    return graph.addConstant<T>(type, {n_tiles, bits.size()}, begin);
  }

  template <typename T> std::vector<T> repeated(const Bits &bits) const {
    std::vector<T> values;
    for (unsigned tile = 0; tile < n_tiles; ++tile)
      for (const std::uint32_t part : bits)
        values.push_back(from_bits<T>(part));
    return values;
  }
};

} // namespace t10
