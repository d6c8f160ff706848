// Targets: only their sizes matter on a host.
#pragma once

#include "Basics.hpp"

namespace poplar {

enum class TargetType { IPU, IPU_MODEL, CPU };

class Target {
public:
  static constexpr unsigned TILES_OF_MK2 = 1472, WORKERS = T10_WORKERS;
  Target(TargetType type = TargetType::CPU, unsigned n_tiles = TILES_OF_MK2) : type(type), n_tiles(n_tiles) {}
  static Target createIPUTarget(unsigned n_ipus, StringRef, const OptionFlags & = {}) {
    return Target(TargetType::IPU, TILES_OF_MK2 * n_ipus);
  }
  TargetType getTargetType() const { return type; }
  unsigned getNumTiles() const { return n_tiles; }
  unsigned getNumWorkerContexts() const { return WORKERS; }
  std::size_t getTypeSize(const Type &of) const { return of.size(); }

private:
  TargetType type;
  unsigned n_tiles;
};

} // namespace poplar
