"""One description of a chip that planner, simulators and emitter all read; the bundled files are in `data/`."""

from t10.chip.load import bundled_chips, load_chip
from t10.chip.spec import ChipSpec, FloorPlan, MatrixUnit

__all__ = ["ChipSpec", "FloorPlan", "MatrixUnit", "bundled_chips", "load_chip"]
