"""A user's cost function: products take a million cycles per compute step."""

from __future__ import annotations

from typing import Any

import numpy as np

from t10.core.expression import OperatorSpec
from t10.cost.registry import register_cost


def product_cycles(spec: OperatorSpec, boxes: Any) -> Any:
    """Return the same for every box."""
    return np.full(len(boxes), 1_000_000)


register_cost("contraction", product_cycles, version="1")
