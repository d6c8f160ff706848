"""The description of a chip, and the bundled chips."""

from t10.chip.load import bundled_chips, load_chip
from t10.chip.spec import ChipSpec, FloorPlan, MatrixUnit

__all__ = ["ChipSpec", "FloorPlan", "MatrixUnit", "bundled_chips", "load_chip"]
