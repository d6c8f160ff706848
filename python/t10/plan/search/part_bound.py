"""A lower bound of the cycles of steps that run in parts, where counting every part would take long."""

from __future__ import annotations

from math import prod

import numpy as np

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.contiguous_parts import part_lengths
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.sub_task_nest import whole_axes
from t10.plan.search._batch_function import BatchFunction, evaluate

MOST_CORES = 16
MOST_PARTS = 1 << 17
"""Cores of which parts are looked at, at most, and parts of all of them."""


def least_part_cycles(spec: OperatorSpec, plan: OperatorPlan, bound: BatchFunction) -> float:
    """Return cycles that no steps of a plan fall below that run in parts; `bound` has those of a step, by its box.

    Every part takes as long as its slowest core, so no less than any core is bound by: here the slowest of a few.
    """
    cores = _different_cores(plan)
    cores = cores[np.linspace(0, len(cores) - 1, min(len(cores), MOST_CORES)).astype(np.int64)]
    found = part_lengths(spec, plan, cores, whole_axes(spec, plan, has_zeros=True))
    n_cores = max(MOST_PARTS // prod(len(table) * table.shape[1] for table in found), 1)
    tables = [table[..., :n_cores] for table in found]
    cores = cores[:n_cores]
    numbers = np.zeros((1, len(cores)), np.int64)
    lengths: list[Ints] = []
    for table in tables:
        different, number = np.unique(table, return_inverse=True)
        number = number.reshape(-1, len(cores))
        numbers = (numbers[:, None] * len(different) + number).reshape(-1, len(cores))
        lengths.append(different)
    boxes = np.stack([each.reshape(-1) for each in np.meshgrid(*lengths, indexing="ij")])
    cycles = evaluate(bound, np.ascontiguousarray(boxes, np.float64))
    return float(np.where(boxes.all(axis=0), cycles, 0.0)[numbers].max(axis=1).sum())


def _different_cores(plan: OperatorPlan) -> Ints:
    """Return one core of each that begin at the same place."""
    key = np.zeros(plan.n_cores, np.int64)
    for axis, n_steps in enumerate(plan.steps):
        if n_steps > 1:
            key = key * plan.lengths[axis] + geometry.phases(plan)[:, axis]
    return np.unique(key, return_index=True)[1]
