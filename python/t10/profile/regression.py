"""The linear regression of the paper (T10 §4.3.1), fitted to the same sub-tasks that are counted: what counting gains.

A model per operator, linear in what the paper names: the points of the iteration space, the tensors' sizes, and the
extents of the axes. Three quarters of the sub-tasks are fitted, the others say how far off it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from t10.core.arrays import Floats
from t10.core.expression import AxisSizes
from t10.core.geometry import partition_shape
from t10.profile.compute_step import ComputeStep
from t10.profile.sample import Sample

TEST_EVERY = 4
"""Of so many samples one is held back."""
SAMPLES_PER_COEFFICIENT = 2
"""With fewer samples nothing is fitted."""


def regressed(one: ComputeStep, samples: Sequence[Sample]) -> tuple[float | None, ...]:
    """Return the cycles that a regression gives for every sub-task, None for those that were not held back from it.

    Shapes say nothing of placement: what is placed badly is neither fitted nor held back.
    """
    placed = [number for number, each in enumerate(samples) if each.is_placed_well]
    held = set(placed[TEST_EVERY - 1 :: TEST_EVERY])
    columns = np.array([_features(one, each.box) for each in samples])
    fitted = [number for number in placed if number not in held]
    if not held or len(fitted) < SAMPLES_PER_COEFFICIENT * columns.shape[1]:
        return (None,) * len(samples)
    run = np.array([each.cycles for each in samples], np.float64)
    scale = columns.max(axis=0)
    # Rows are divided by what they take, so that relative errors are least.
    table = columns[fitted] / scale / run[fitted, None]
    solution = np.zeros(len(scale))
    solution[:] = np.linalg.lstsq(table, np.ones(len(fitted)), rcond=None)[0] / scale
    return tuple(float(row @ solution) if number in held else None for number, row in enumerate(columns))


def _features(one: ComputeStep, box: AxisSizes) -> Floats:
    """Return 1, the points of a box, the elements of its operands, and its extents."""
    spec = one.spec
    inputs = spec.epilogue_inputs if one.is_end else spec.inputs
    sizes = [prod(partition_shape(operand, box)) for operand in (*inputs, spec.output)]
    return np.array([1, prod(box), *sizes, *box], np.float64)
