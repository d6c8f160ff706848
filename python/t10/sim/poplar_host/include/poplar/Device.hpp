// Devices: there is no IPU on a host, only a model of one.
#pragma once

#include "Target.hpp"

namespace poplar {

class Device {
public:
  explicit Device(Target target = {}) : target(target) {}
  const Target &getTarget() const { return target; }
  bool attach() const { return false; }
  void detach() const {}
  unsigned getId() const { return 0; }

private:
  Target target;
};

} // namespace poplar
