"""From a class of operators to its fitted model: boxes drawn, measured, split, fitted, and how far off it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t10.core.expression import AxisSizes
from t10.core.task import Task
from t10.cost.classes import OperatorClass
from t10.errors import UnsupportedOpError
from t10.profile.boxes import random_boxes
from t10.profile.fit import fit
from t10.profile.measure import cycles_of
from t10.profile.work import epilogue, sub_task

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Coefficients = Mapping[str, Mapping[str, float]]
"""By regime, in the order in which their conditions are asked, coefficients by feature."""

SEED = 0
TEST_EVERY = 4
"""Of so many samples one is held back for the test."""
LEAST_SAMPLES = 10
"""A regime with fewer shapes than this to be fitted on is not kept apart from those after it."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What was measured of a class, and its model: `boxes` (n, axes), `cycles` and `modelled` (n,), `is_test` (n,)."""

    one: OperatorClass
    boxes: NDArray[np.int64]
    cycles: Floats
    modelled: Floats
    is_test: Bools
    model: Coefficients

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
            measured = cycles_of(_task(one, box))
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
    model = fitted(one, table, found, ~is_test)
    return Profile(one, table, found, predict(one, model, table), is_test, model)


def _task(one: OperatorClass, box: AxisSizes) -> Task:
    if one.step == "epilogue":
        return epilogue(one.spec, box)
    return sub_task(one.spec, box, initial=one.step == "sub_task")


def fitted(one: OperatorClass, boxes: NDArray[np.int64], cycles: Floats, chosen: Bools) -> Coefficients:
    """Return the model of a class fitted on the chosen boxes, regime by regime."""
    features = {name: np.asarray(column, np.float64) for name, column in one.features(boxes).items()}
    model: dict[str, Mapping[str, float]] = {}
    rest = chosen.copy()
    regimes = one.regimes(boxes)
    for number, (name, condition) in enumerate(regimes):
        here = rest & np.asarray(condition, np.bool_)
        if number == len(regimes) - 1:
            # Nothing may be left to the last one: then any shape will do.
            here = rest if rest.any() else chosen
        elif here.sum() < LEAST_SAMPLES:
            continue
        model[name] = fit({key: column[here] for key, column in features.items()}, cycles[here])
        rest &= ~here
    return model


def predict(one: OperatorClass, model: Coefficients, boxes: NDArray[np.int64]) -> Floats:
    """Return the modelled cycles of boxes, shape (n,)."""
    features = one.features(boxes)
    result = np.zeros(len(boxes))
    for name, condition in reversed(one.regimes(boxes)):
        if name in model:
            total = np.sum([value * features[key] for key, value in model[name].items()], axis=0)
            result = np.where(condition, total, result)
    return result
