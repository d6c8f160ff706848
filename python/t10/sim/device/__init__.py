"""The device simulator: device programs executed vertex by vertex, exchange by exchange (docs/device-simulator.md)."""

from t10.sim.device.result import DevicePhase, DeviceResult, TileSample, VertexRecord
from t10.sim.device.run import Trace, run_device

__all__ = ["DevicePhase", "DeviceResult", "TileSample", "Trace", "VertexRecord", "run_device"]
