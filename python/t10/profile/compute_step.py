"""A compute step of operators: a sub-task, an epilogue, adding what other cores send, or the last two as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod
from random import Random
from typing import Literal

import numpy as np

from t10.core.epilogue_nest import epilogue_axes
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.fused_ends import may_fuse
from t10.core.graph import Graph
from t10.core.runs import epilogue_run
from t10.core.task import Task
from t10.core.task_nest import simplified
from t10.cost.bound.step import combine_bound, epilogue_bound, sub_task_bound
from t10.cost.combine import combine_operator
from t10.cost.work import end, rows, step, sub_task
from t10.profile.fused_end import fused_task, members_of

PART_OTHERWISE, PART_ADDED = 0.3, 0.3
WINDOWS = (1, 1, 2, 3)
"""How many boxes long a window is."""


@dataclass(frozen=True, slots=True)
class ComputeStep:
    """A step of operators like `spec`, over boxes of at most its extents; a combination's is a `combine_operator`."""

    spec: OperatorSpec
    step: Literal["sub_task", "epilogue", "combine", "fused end"] = "sub_task"

    @property
    def is_end(self) -> bool:
        """Return whether the step makes results of sums."""
        return self.step in ("epilogue", "fused end")

    @property
    def kind(self) -> str:
        """Return what tables of results call steps like this one."""
        return self.spec.kind if self.step == "sub_task" else self.step

    @property
    def title(self) -> str:
        """Return what messages call the step."""
        if self.step == "combine":
            return f"combine {self.spec.acc_dtype}, {self.spec.combine}"
        return self.spec.name if self.step == "sub_task" else f"{self.step} of {self.spec.name}"

    def task(self, box: AxisSizes) -> Task:
        """Return the task of a box whose operands are exactly as large and lie as well as they can."""
        if self.step == "epilogue":
            return end(self.spec, box)
        if self.step == "fused end":
            return fused_task(self.spec, box, members_of(box, is_first=True))
        return sub_task(self.spec, box, initial=self.step == "sub_task")

    def other_task(self, box: AxisSizes, rng: Random) -> Task:
        """Return the task of a box in larger windows, some that add to their outputs, or of the rows of an epilogue.

        The parts of a fused end are those of other numbers of cores.
        """
        if self.step == "fused end":
            return fused_task(self.spec, box, members_of(box, is_first=False))
        if self.step == "epilogue":
            is_in_rows = rng.random() < PART_OTHERWISE and not epilogue_axes(self.spec)
            return rows(self.spec, *self._slots(box)) if is_in_rows else self.task(box)
        windows = tuple(
            tuple(n * rng.choice(WINDOWS) for n in box) if rng.random() < PART_OTHERWISE else box
            for _ in self.spec.rotatable
        )
        return simplified(
            step(self.spec, box, windows, initial=self.step == "sub_task" and rng.random() > PART_ADDED)
        )

    def bound(self, box: AxisSizes, *, is_whole: bool) -> int:
        """Return the cycles that no code for a box falls below, in windows that are longer or (`is_whole`) are not.

        0 for fused ends: a search bounds them and their reductions together.
        """
        row = np.array([box], np.int64)
        if self.step == "sub_task":
            return int(sub_task_bound(self.spec, row, is_whole=is_whole)[0])
        if self.step == "combine":
            return int(combine_bound(self.spec, row[:, 0], row[:, 1])[0])
        if self.step == "fused end":
            return 0
        n_slots, run = (np.array([n]) for n in self._slots(box))
        ways = [epilogue_bound(self.spec, n_slots, run, n) for n in ((1,) if is_whole else (1, 2))]
        return min(int(each[0]) for each in ways)

    def _slots(self, box: AxisSizes) -> tuple[int, int]:
        """Return the elements of an epilogue's box, and how many of them lie in a row that all operands walk evenly."""
        n_slots = prod(box)
        return n_slots, epilogue_run(self.spec, box, n_slots)


def steps_of(graphs: Iterable[Graph]) -> tuple[ComputeStep, ...]:
    """Return the different compute steps of graphs' operators; names and epilogues make no sub-task different."""
    found: dict[ComputeStep, ComputeStep] = {}
    for graph in graphs:
        for spec in graph.operators:
            for one in _steps(spec):
                found.setdefault(replace(one, spec=_unnamed(one)), one)
    return tuple(found.values())


def _steps(spec: OperatorSpec) -> Iterator[ComputeStep]:
    yield ComputeStep(spec)
    if spec.combine != "none":
        yield ComputeStep(combine_operator(spec.acc_dtype, spec.combine), "combine")
    if spec.epilogue is not None:
        yield ComputeStep(spec, "epilogue")
    if spec.epilogue is not None and may_fuse(spec):
        yield ComputeStep(spec, "fused end")


def _unnamed(one: ComputeStep) -> OperatorSpec:
    """Return an operator without names, and without what its step does not depend on."""
    spec = one.spec

    def unnamed(operand: Operand) -> Operand:
        return replace(operand, name="", role="activation")

    inputs, output = tuple(map(unnamed, spec.inputs)), unnamed(spec.output)
    axes = tuple(replace(axis, name="") for axis in spec.axes)
    plain = replace(spec, name="", location="", axes=axes, inputs=inputs, output=output)
    if one.is_end:
        return replace(plain, epilogue_inputs=tuple(map(unnamed, spec.epilogue_inputs)))
    return replace(plain, output=replace(output, dtype=spec.acc_dtype), epilogue=None, epilogue_inputs=())
