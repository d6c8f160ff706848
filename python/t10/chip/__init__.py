"""The description of a chip, and the bundled chips."""

from t10.chip.load import DEFAULT_CHIP, bundled_chips, load_chip, sources_of
from t10.chip.spec import ChipSpec, FloorPlan, MatrixUnit

__all__ = ["DEFAULT_CHIP", "ChipSpec", "FloorPlan", "MatrixUnit", "bundled_chips", "load_chip", "sources_of"]
