"""`ImportedModel`: what a front end hands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ImportedModel:
    """A model as linalg on tensors with static shapes.

    `module` is an MLIR module with one `func.func`; every argument and result carries `t10.name`, weights also
    `t10.weight`, inputs and results declared without a sign `t10.type`, and locations keep the ONNX node names.
    `weights` maps weight names to values; a name is absent if the model came without that weight's data.
    """

    module: Any
    weights: dict[str, NDArray[np.generic]]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    weight_names: tuple[str, ...]
    source: str

    @property
    def has_all_weights(self) -> bool:
        """Return whether every weight has its values."""
        return all(name in self.weights for name in self.weight_names)
