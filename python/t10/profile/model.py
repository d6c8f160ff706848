"""From a class of operators to its fitted model: boxes drawn, measured, split, fitted, and how far off it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t10.codelets.count import codelet_of, cycles_of
from t10.core.arrays import Bools, Floats, Ints
from t10.core.expression import AxisSizes
from t10.core.task import Task
from t10.cost.classes import OperatorClass
from t10.cost.work import epilogue, sub_task
from t10.errors import UnsupportedOpError
from t10.profile.boxes import further_boxes, random_boxes
from t10.profile.fit_variants import Model, fit_variants, predicted
from t10.profile.variant_of_codelet import variants_of

SEED = 0
TEST_EVERY = 4
"""Of so many samples one is held back for the test."""
PRODUCT_SAMPLES = 3
"""Products get so many times more: their code has more cases."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What was measured of a class, and its model: `boxes` (n, axes), `cycles` and `modelled` (n,), `is_test` (n,)."""

    one: OperatorClass
    boxes: Ints
    cycles: Floats
    modelled: Floats
    is_test: Bools
    model: Model

    @property
    def errors(self) -> Floats:
        """Return the relative errors, signed."""
        return self.modelled / self.cycles - 1


def profile(one: OperatorClass, n_samples: int, seed: int = SEED) -> Profile | None:
    """Return the fitted model of a class; None where no codelet computes it or too few boxes fit a core."""
    n = n_samples * (PRODUCT_SAMPLES if one.matrix is not None else 1)
    boxes, further = random_boxes(one, seed, n), further_boxes(one, seed, n)
    found: list[tuple[AxisSizes, int, str, bool]] = []
    try:
        for number, box in enumerate((*boxes, *further)):
            task = task_of(one, box)
            measured = cycles_of(task)
            if measured is not None:
                is_test = number < len(boxes) and number % TEST_EVERY == TEST_EVERY - 1
                found.append((box, measured, variants_of(codelet_of(task).codelet), is_test))
    except UnsupportedOpError:
        return None
    if len(found) < TEST_EVERY:
        return None
    table = np.array([box for box, *_ in found], np.int64)
    cycles = np.array([measured for _, measured, *_ in found], np.float64)
    is_test = np.array([held for *_, held in found], np.bool_)
    model = fit_variants(
        one.variants(table[~is_test]),
        cycles[~is_test],
        [variant for _, _, variant, held in found if not held],
    )
    return Profile(one, table, cycles, predicted(one.variants(table), model, len(table)), is_test, model)


def task_of(one: OperatorClass, box: AxisSizes) -> Task:
    """Return the task of a class's step over a box, its operands as they lie best."""
    if one.step == "epilogue":
        return epilogue(one.spec, box)
    return sub_task(one.spec, box, initial=one.step == "sub_task")
