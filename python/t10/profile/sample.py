"""Random sub-tasks of a compute step: what their code takes when it is counted and when it is run, and their bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from math import gcd
from random import Random

from t10.codelets.count import counted_cycles, run_cycles
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes
from t10.core.task import Task
from t10.core.tile import WIDE_BYTES
from t10.profile.boxes import random_boxes
from t10.profile.compute_step import ComputeStep

PART_INTERLEAVED = 0.7
PART_APART = 0.5
DISPLACED = 3
"""Of four sub-tasks the number of that whose operands begin anywhere."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A sub-task that was run, in cycles without the launch.

    `placement` says how operands lie, "" where all lie as well as they can. `counted` is None where code branches on
    data: such a sub-task was run on made-up data. A look-up has `limits`, what it takes if no index or every index is
    found, and was run with some that are. `bound` is 0 where operands begin anywhere, which a search does not price,
    and of fused ends, which it bounds together with their reductions.
    """

    box: AxisSizes
    placement: str
    run: int
    counted: int | None
    bound: int
    limits: tuple[int, int] | None = None

    @property
    def is_placed_well(self) -> bool:
        """Return whether operands lie as well as they can."""
        return not self.placement

    @property
    def cycles(self) -> int:
        """Return what the sub-task is priced at."""
        return self.limits[1] if self.limits is not None else self.run

    @property
    def bound_ratio(self) -> float:
        """Return the bound as a share of what the sub-task takes."""
        return self.bound / self.cycles

    @property
    def fault(self) -> str:
        """Return how count, run and bound contradict each other; "" where they do not."""
        place = f"extents {list(self.box)}" + (f" {self.placement}" if self.placement else "")
        if self.counted not in (None, self.run):
            return f"{place}: counted {self.counted}, run {self.run}"
        if self.limits is not None and not self.limits[0] <= self.run <= self.limits[1]:
            return f"{place}: from {self.limits[0]} to {self.limits[1]}, run {self.run}"
        return f"{place}: bounded by {self.bound}, takes {self.cycles}" if self.bound > self.cycles else ""


def samples(one: ComputeStep, n: int, seed: int) -> tuple[Sample, ...]:
    """Return `n` random sub-tasks of a step, fewer where not so many fit a core.

    Of four, two are placed as well as they can, one has larger windows, and one is placed badly as well.

    Raises `UnsupportedOpError` where no codelet computes them.
    """
    rng = Random(f"{seed} {one}")
    found = (_sample(one, box, rng, number % 4) for number, box in enumerate(random_boxes(one, rng)))
    return tuple(islice((each for each in found if each is not None), n))


def _sample(one: ComputeStep, box: AxisSizes, rng: Random, number: int) -> Sample | None:
    """Return what a sub-task takes, placed as its number says; None where its operands do not fit a tile."""
    task, offsets, placement = one.task(box), (), ""
    if number % 2:
        task = one.other_task(box, rng)
        task, offsets = _displaced(task, rng) if number == DISPLACED else (task, (0,) * len(task.operands))
        placement = _placement(task, offsets)
    bound = 0 if number == DISPLACED else one.bound(box, is_whole=number % 2 == 0)
    counted = counted_cycles(task, offsets)
    most = run_cycles(task, offsets)
    if most is None:
        return None
    if counted is not None or not task.selectors:
        return Sample(box, placement, most, counted, bound)
    least, run = (run_cycles(task, offsets, hits) for hits in ("none", "some"))
    assert least is not None
    assert run is not None
    return Sample(box, placement, run, None, bound, (least, most))


def _displaced(task: Task, rng: Random) -> tuple[Task, tuple[int, ...]]:
    """Return a task whose operands begin anywhere, some of them not interleaved or not apart, and where they begin."""
    offsets = tuple(rng.randrange(0, WIDE_BYTES, size_bytes(each.dtype)) for each in task.operands)
    operands = [
        replace(each, align_bytes=gcd(offset, WIDE_BYTES), is_interleaved=rng.random() < PART_INTERLEAVED)
        for each, offset in zip(task.operands, offsets, strict=True)
    ]
    apart = frozenset(pair for pair in sorted(task.apart) if rng.random() < PART_APART)
    return replace(task, inputs=tuple(operands[:-1]), output=operands[-1], apart=apart), offsets


def _placement(task: Task, offsets: tuple[int, ...]) -> str:
    """Return how the operands of a task lie, which begin at offsets in 16 bytes."""
    strides = " ".join("x".join(map(str, operand.strides)) or "0" for operand in task.operands)
    below = [str(number) for number, operand in enumerate(task.operands) if not operand.is_interleaved]
    apart = [f"{first}-{second}" for first, second in sorted(task.apart)]
    parts = (
        f"at bytes {' '.join(map(str, offsets))}",
        f"strides {strides}",
        f"not interleaved {' '.join(below)}" if below else "",
        f"apart {' '.join(apart)}" if apart else "",
        "" if task.initial else "adding",
    )
    return ", ".join(filter(None, parts))
