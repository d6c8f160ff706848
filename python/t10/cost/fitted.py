"""Models fitted to the instruction-set simulator (T10 §4.3.1): which classes of operators have one, and what it says.

`data/ipu-fit.json` comes with T10; `t10 profile` makes it. An operator of another class is measured when it is first
asked for: a few dozen boxes of it run on the instruction-set simulator, which takes a fraction of a second.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from importlib import resources
from typing import Any

import numpy as np

from t10.core.expression import OperatorSpec
from t10.profile.classes import OperatorClass, Step, class_of

TABLE = "ipu-fit.json"
LEAST_CYCLES = 1
KEPT_OPERATORS = 4096


def predicted(spec: OperatorSpec, step: Step, boxes: Any) -> Any | None:
    """Return the modelled cycles of a step over boxes (n, axes), whole numbers; None where there is no model.

    Extents outside those that were measured are extrapolated.
    """
    one, coefficients = model_of(spec, step)
    if not coefficients:
        return None
    features = one.features(boxes)
    total: Any = 0.0
    for name, value in coefficients.items():
        total = total + value * features[name]
    return np.maximum(np.ceil(total), LEAST_CYCLES)


@lru_cache(maxsize=KEPT_OPERATORS)
def model_of(spec: OperatorSpec, step: Step) -> tuple[OperatorClass, Mapping[str, float]]:
    """Return an operator's class and the coefficients of its model by feature; none where nothing computes it."""
    one = class_of(spec, step)
    found = _table().get(one.key)
    return one, found if found is not None else _measured(one)


def table_digest() -> str:
    """Return a text that differs whenever the table that comes with T10 does."""
    return sha256(_text().encode()).hexdigest()[:16]


@lru_cache(maxsize=KEPT_OPERATORS)
def _measured_by_key(key: str, one: OperatorClass) -> Mapping[str, float]:
    from t10.profile.model import fitted_now

    del key
    return fitted_now(one)


def _measured(one: OperatorClass) -> Mapping[str, float]:
    return _measured_by_key(one.key, one)


@lru_cache(maxsize=1)
def _table() -> dict[str, Mapping[str, float]]:
    document = json.loads(_text() or '{"classes": {}}')
    return {key: each["coefficients"] for key, each in document["classes"].items()}


@lru_cache(maxsize=1)
def _text() -> str:
    file = resources.files("t10.cost") / "data" / TABLE
    return file.read_text(encoding="utf-8") if file.is_file() else ""
