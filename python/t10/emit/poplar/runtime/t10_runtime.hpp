// The fixed part of every program that T10 writes: variables on tiles, vertices over tiles, exchanges from tables.
//
// Rows of a variable are tiles: row t of every variable lies on tile t. All offsets and sizes are bytes of a row, as in
// the tables; the helpers turn them into elements. Only the public Poplar API is used.
#pragma once

#include "t10_tables.hpp"

#include <poplar/CSRFunctions.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>

#include <string>
#include <vector>

namespace t10 {

using poplar::ComputeSet;
using poplar::Graph;
using poplar::Tensor;
using poplar::Type;
using poplar::program::Copy;
using poplar::program::Program;
using poplar::program::Sequence;

constexpr long long end_of_row = -1;

// A field of a vertex: bytes `value` .. `end` - 1 of row `tile` of a variable, or a plain word.
struct Field {
  enum Kind { pointer, unsigned_word, signed_word, float_bits };
  const char *name;
  Kind kind;
  const Tensor *variable;
  Type type;
  PerTile value;
  PerTile end = end_of_row;
};

inline Field edge(const char *name, const Tensor &variable, PerTile offset_bytes = 0, PerTile end = end_of_row) {
  return {name, Field::pointer, &variable, variable.elementType(), offset_bytes, end};
}
// The same for a field whose elements have another type of the same size.
inline Field edge_as(const char *name, Type type, const Tensor &variable, PerTile offset_bytes = 0) {
  return {name, Field::pointer, &variable, type, offset_bytes, end_of_row};
}
inline Field u32(const char *name, PerTile value) {
  return {name, Field::unsigned_word, nullptr, poplar::UNSIGNED_INT, value, end_of_row};
}
inline Field i32(const char *name, PerTile value) {
  return {name, Field::signed_word, nullptr, poplar::INT, value, end_of_row};
}
// A 32-bit float, given by its bits.
inline Field f32(const char *name, PerTile bits) {
  return {name, Field::float_bits, nullptr, poplar::FLOAT, bits, end_of_row};
}

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

// What a function that several equal operators share is called with: what differs between them.
struct Operator {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<unsigned> tables;

  // The name of one of its compute sets and exchanges.
  std::string label(const char *before, const char *after = "") const { return before + name + after; }
};

constexpr std::size_t absent = ~std::size_t(0);

class Tables;

// Makes the graph. One per program.
class Builder {
public:
  Builder(Graph &graph, const Tables &tables, unsigned n_tiles) : graph(graph), tables(tables), n_tiles(n_tiles) {}

  // A variable with one row of `n_elements` on each of the first `n_rows` tiles. `n_before` unused elements stand before
  // each row, so that offsets which T10 aligned are aligned where rows begin at multiples of 16 bytes.
  Tensor variable(const char *name, const Type &type, unsigned n_rows, std::size_t n_elements, std::size_t n_before = 0);

  ComputeSet compute_set(const std::string &name);

  // One vertex per tile of `tiles`; `cycles` is what the compiler expects it to take.
  void vertices(ComputeSet set, const char *codelet, const Tiles &tiles, unsigned long cycles,
                const std::vector<Field> &fields);

  // One exchange phase: rows of `runs` are (number of source, source tile, source offset, target tile, target offset,
  // bytes of one piece, how many pieces, step in the source, step in the target).
  Program exchange(const std::string &name, const std::vector<Tensor> &sources, const Tensor &target, Span runs,
                   const Fills &fills = {});

  // A list of numbers from tables.bin.
  Span table(unsigned number) const;

  void host_tensor(HostTensor tensor);

  // Programs that move all host tensors of a role between streams and variables.
  Sequence transfers(HostTensor::Role role);

  Graph &graph;
  std::vector<HostTensor> host_tensors;

private:
  struct Constant {
    Type type;
    Bits bits;
    Tensor tensor;
  };

  const Tables &tables;
  unsigned n_tiles;
  std::vector<Constant> constants;

  std::size_t size_of(const Tensor &tensor) const;
  std::size_t elements(const Tensor &tensor, long long n_bytes) const;
  void give(const poplar::VertexRef &vertex, const Field &field, unsigned tile, std::size_t i);
  void check_pieces(const Tensor &tensor, const std::string &name, long long tile, long long offset, long long n_bytes,
                    long long count, long long step, bool is_written) const;
  void append(std::vector<Tensor> &parts, const Tensor &row, long long offset, long long n_bytes, std::size_t count,
              long long step) const;
  Tensor constant(const Type &type, const Bits &bits);
  Tensor typed_constant(const Type &type, const Bits &bits);
  template <typename T> Tensor constant_of(const Type &type, const Bits &bits);
  template <typename T> std::vector<T> repeated(const Bits &bits) const;
};

// What a program says of itself: a name, how many tiles it uses, the floating-point mode that its code is written for,
// and the function that makes its graph.
struct Model {
  const char *name;
  unsigned n_tiles;
  poplar::FloatingPointBehaviour floating_point;
  Sequence (*build)(Builder &);
};

// The command line of a program: get a device, build the graph, run it once, hand the outputs over.
int main(int argc, char **argv, const Model &model);

} // namespace t10
