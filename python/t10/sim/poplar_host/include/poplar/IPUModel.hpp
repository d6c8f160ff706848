#pragma once

#include "Device.hpp"

namespace poplar {

struct IPUModel {
  explicit IPUModel(const char *) {}
  Device createDevice(const OptionFlags & = {}, bool = false, unsigned = 0) const {
    return Device(Target(TargetType::IPU_MODEL, tilesPerIPU * numIPUs));
  }
  unsigned numIPUs = 1;
  unsigned tilesPerIPU = Target::TILES_OF_MK2;
  bool compileIPUCode = true;
};

} // namespace poplar
