"""The device simulator: device programs executed vertex by vertex, exchange by exchange (docs/device-simulator.md)."""

from t10.sim.device.result import DevicePhase, DeviceResult, TileSample, VertexRecord
from t10.sim.device.run import run_device

__all__ = ["DevicePhase", "DeviceResult", "TileSample", "VertexRecord", "run_device"]
