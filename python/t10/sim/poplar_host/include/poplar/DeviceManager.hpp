#pragma once

#include "Device.hpp"

namespace poplar {

class DeviceManager {
public:
  static DeviceManager createDeviceManager() { return {}; }
  std::vector<Device> getDevices(TargetType, unsigned) const { return {}; }
};

} // namespace poplar
