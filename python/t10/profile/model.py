"""From a class of operators to its fitted model: boxes drawn, measured, split, fitted, and how far off it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t10.core.expression import AxisSizes
from t10.errors import UnsupportedOpError
from t10.profile.classes import OperatorClass, random_boxes
from t10.profile.fit import Fit, fit
from t10.profile.measure import cycles_of
from t10.profile.work import epilogue, sub_task

Floats = NDArray[np.float64]
SEED = 0
TEST_EVERY = 4
"""Of so many samples one is held back for the test."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What was measured of a class, and its model: `boxes` (n, axes), `cycles` and `modelled` (n,), `is_test` (n,)."""

    one: OperatorClass
    boxes: NDArray[np.int64]
    cycles: Floats
    modelled: Floats
    is_test: NDArray[np.bool_]
    model: Fit

    @property
    def errors(self) -> Floats:
        """Return the relative errors, signed."""
        return self.modelled / self.cycles - 1


def profile(one: OperatorClass, n_samples: int, seed: int = SEED) -> Profile | None:
    """Return the fitted model of a class; None where no codelet computes it or too few boxes fit a core."""
    boxes: list[AxisSizes] = []
    cycles: list[int] = []
    try:
        for box in random_boxes(one, seed, n_samples):
            task = epilogue(one.spec, box) if one.step == "epilogue" else sub_task(one.spec, box)
            measured = cycles_of(task)
            if measured is not None:
                boxes.append(box)
                cycles.append(measured)
    except UnsupportedOpError:
        return None
    if len(boxes) < TEST_EVERY:
        return None
    table = np.array(boxes, np.int64)
    found = np.array(cycles, np.float64)
    is_test = np.arange(len(found)) % TEST_EVERY == TEST_EVERY - 1
    features = {name: np.asarray(column, np.float64) for name, column in one.features(table).items()}
    model = fit({name: column[~is_test] for name, column in features.items()}, found[~is_test])
    return Profile(one, table, found, model.predict(features), is_test, model)
