"""A lower bound of the cycles of steps that run in parts, where counting every part would take long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from t10.core.arrays import Ints
from t10.core.contiguous_parts import moduli
from t10.core.expression import OperatorSpec
from t10.core.geometry import window_lengths
from t10.core.plan import OperatorPlan
from t10.core.sub_task_nest import whole_axes
from t10.cost._batch_function import BatchFunction, read
from t10.cost.program import CostCallable
from t10.plan.search._part_bound import least_part_cycles as native_cycles

MOST_CORES = 16
MOST_PARTS = 1 << 17
"""Cores of which parts are looked at, at most, and parts of all of them."""


def least_part_cycles(spec: OperatorSpec, plan: OperatorPlan, bound: BatchFunction) -> float:
    """Return cycles that no steps of a plan fall below that run in parts; `bound` has those of a step, by its box.

    Every part takes as long as its slowest core, so no less than any core is bound by: here the slowest of a few.
    """
    return native_cycles(bound, _parted(spec, plan), plan.core_order, MOST_CORES, MOST_PARTS)


def least_part_cycles_of(
    spec: OperatorSpec, plans: Sequence[OperatorPlan], step_cycles: Callable[[Ints, Ints], Ints]
) -> list[float]:
    """Return what `least_part_cycles` does of several plans, asked at once.

    `step_cycles` bounds steps over boxes (n, axes) in windows (n, rotatable operands, axes).
    """
    if not plans:
        return []
    axes = [_parted(spec, plan) for plan in plans]
    asked: list[Ints] = []

    def bounded(answer: Callable[[Ints], Ints]) -> list[float]:
        function = read(CostCallable(len(spec.axes), answer))
        return [
            native_cycles(function, each, plan.core_order, MOST_CORES, MOST_PARTS)
            for each, plan in zip(axes, plans, strict=True)
        ]

    def noted(boxes: Ints) -> Ints:
        asked.append(boxes)
        return np.zeros(len(boxes), np.int64)

    bounded(noted)
    # An empty box is none, whatever it is said to take.
    boxes = np.maximum(np.concatenate(asked), 1).astype(np.int64)
    slots = range(len(spec.rotatable))
    windows: Ints = np.array([[window_lengths(plan, slot) for slot in slots] for plan in plans], np.int64)
    found = step_cycles(boxes, np.repeat(windows, [len(each) for each in asked], axis=0))
    known = iter(np.split(found, np.cumsum([len(each) for each in asked])[:-1]))
    return bounded(lambda _: next(known))


def _parted(spec: OperatorSpec, plan: OperatorPlan) -> list[Any]:
    """Return the axes of a plan as native code reads them."""
    whole = whole_axes(spec, plan, has_zeros=True)
    slots = range(len(spec.rotatable))
    return [
        (
            spec.axes[axis].extent,
            plan.f_op[axis],
            plan.lengths[axis],
            plan.steps[axis],
            plan.rp[axis],
            sorted(moduli(spec, plan, axis, slots)),
            [
                (
                    term.sharer_axes,
                    term.divisor,
                    -term.modulus if term.is_folded else term.modulus,
                    term.stride,
                )
                for term in plan.phases[axis]
            ],
            axis in whole,
            axis in spec.reduction_axes,
        )
        for axis in range(len(plan.f_op))
    ]
