// The memory of all tiles: every piece of a variable that one tile holds lies in one place, as on an IPU.
#pragma once

#include "graph.hpp"

namespace poplar {

constexpr std::size_t PIECE_ALIGNMENT = 64, GUARD_BYTES = 64;
constexpr unsigned char GUARD = 0xa5, POISON = 0xff;

// Elements begin .. end - 1 of a variable on a tile, at `address`; guard bytes lie before and behind.
struct Piece {
  std::size_t begin, end;
  unsigned tile;
  char *address;
};

// `count` elements at `address`, or one element as often.
struct Place {
  char *address;
  std::size_t count;
  bool repeats;
  const Piece *piece;
};

class TileMemory {
public:
  explicit TileMemory(const GraphData &graph) : graph(graph), pieces(graph.variables.size()) {
    std::size_t n_bytes = PIECE_ALIGNMENT;
    for (std::size_t i = 0; i < graph.variables.size(); ++i)
      n_bytes += lay_out(graph.variables[i], pieces[i]);
    if (poplar_host::tiles() != nullptr) {
      place_on_tiles(*poplar_host::tiles());
      return;
    }
    bytes = std::make_unique<char[]>(n_bytes);
    char *at = bytes.get() + (PIECE_ALIGNMENT - reinterpret_cast<std::uintptr_t>(bytes.get()) % PIECE_ALIGNMENT);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (Piece &piece : pieces[i]) {
        fill(graph.variables[i], piece, at);
        at += room(graph.variables[i], piece);
      }
    }
  }

  // Append where the elements of a tensor lie, in its order, and return how many there are.
  void find(const Tensor &tensor, std::vector<Place> &places) const {
    for (const Region &region : tensor.hostRegions()) {
      const std::vector<Piece> &of_variable = pieces[region.variable];
      const std::size_t size = graph.variables[region.variable].type.size();
      std::size_t begin = region.begin;
      const std::size_t end = region.begin + (region.repeats ? 1 : region.count);
      auto piece = std::upper_bound(of_variable.begin(), of_variable.end(), begin,
                                    [](std::size_t element, const Piece &one) { return element < one.end; });
      for (; begin < end; ++piece) {
        if (piece == of_variable.end() || piece->begin > begin)
          throw invalid_tile_mapping("element " + std::to_string(begin) + " of " +
                                     graph.variables[region.variable].name + " lies on no tile");
        const std::size_t last = std::min(end, piece->end);
        places.push_back({piece->address + (begin - piece->begin) * size, region.repeats ? region.count : last - begin,
                          region.repeats, &*piece});
        begin = last;
      }
    }
  }

  bool is_constant(const Tensor &tensor) const {
    for (const Region &region : tensor.hostRegions())
      if (!graph.variables[region.variable].values.empty())
        return true;
    return false;
  }

  // Whether nothing was written beside a piece of elements of `size` bytes.
  static bool is_guarded(const Piece &piece, std::size_t size) {
    const char *behind = piece.address + (piece.end - piece.begin) * size;
    for (std::size_t i = 0; i < GUARD_BYTES / 2; ++i)
      if (static_cast<unsigned char>(behind[i]) != GUARD ||
          static_cast<unsigned char>(piece.address[-1 - static_cast<std::ptrdiff_t>(i)]) != GUARD)
        return false;
    return true;
  }

private:
  const GraphData &graph;
  std::vector<std::vector<Piece>> pieces;
  std::unique_ptr<char[]> bytes;

  // Sort a variable's mapping into pieces and return the bytes they need.
  static std::size_t lay_out(const VariableData &variable, std::vector<Piece> &into) {
    std::vector<Mapping> mapping = variable.mapping;
    std::sort(mapping.begin(), mapping.end(), [](const Mapping &a, const Mapping &b) { return a.begin < b.begin; });
    std::size_t n_bytes = 0, end = 0;
    for (const Mapping &one : mapping) {
      if (one.begin < end)
        throw invalid_tile_mapping("an element of " + variable.name + " is mapped to two tiles");
      end = one.end;
      into.push_back({one.begin, one.end, one.tile, nullptr});
      n_bytes += room(variable, into.back());
    }
    return n_bytes + PIECE_ALIGNMENT;
  }

  // Bytes of a piece with the guards before and behind it.
  static std::size_t room(const VariableData &variable, const Piece &piece) {
    const std::size_t n_bytes = 2 * GUARD_BYTES + (piece.end - piece.begin) * variable.type.size();
    return (n_bytes + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
  }

  // Put a piece and its guards into the bytes from `at` on.
  static void fill(const VariableData &variable, Piece &piece, char *at) {
    const std::size_t size = variable.type.size(), n_bytes = (piece.end - piece.begin) * size;
    std::memset(at, GUARD, room(variable, piece));
    piece.address = at + GUARD_BYTES;
    if (variable.values.empty())
      std::memset(piece.address, POISON, n_bytes);
    else
      std::memcpy(piece.address, variable.values.data() + piece.begin * size, n_bytes);
  }

  // What vertices demand of the variables they are connected to.
  struct Demands {
    std::vector<bool> is_interleaved;
    std::vector<std::vector<unsigned>> apart;
  };

  Demands demands() const {
    Demands found{std::vector<bool>(pieces.size()), std::vector<std::vector<unsigned>>(pieces.size())};
    for (const VertexData &vertex : graph.vertices) {
      std::map<std::string, unsigned> variables;
      for (const EdgeData &edge : vertex.edges) {
        const unsigned variable = edge.tensor.hostRegions().at(0).variable;
        variables[vertex.type->fields[edge.field].name] = variable;
        if (vertex.type->fields[edge.field].is_interleaved)
          found.is_interleaved[variable] = true;
      }
      for (const auto &[first, second] : vertex.type->apart) {
        const unsigned a = variables.at(first), b = variables.at(second);
        std::vector<unsigned> &known = found.apart[std::max(a, b)];
        if (std::find(known.begin(), known.end(), std::min(a, b)) == known.end())
          known.push_back(std::min(a, b));
      }
    }
    return found;
  }

  void place_on_tiles(poplar_host::Tiles &tiles) {
    tiles.begin(graph.target.getNumTiles());
    const Demands wanted = demands();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const VariableData &variable = graph.variables[i];
      for (Piece &piece : pieces[i]) {
        poplar_host::Demand demand;
        demand.is_interleaved = wanted.is_interleaved[i];
        for (const unsigned other : wanted.apart[i])
          for (const Piece &there : pieces[other])
            if (there.tile == piece.tile)
              demand.apart.push_back({there.address, (there.end - there.begin) * graph.variables[other].type.size()});
        fill(variable, piece, tiles.take(piece.tile, room(variable, piece), demand));
      }
    }
  }
};

} // namespace poplar
