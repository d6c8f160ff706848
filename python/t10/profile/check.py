"""Counted against run: random sub-tasks of classes of operators, placed as well as can be and placed badly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd
from random import Random

from t10.codelets.count import counted_cycles, run_cycles
from t10.core.dtypes import size_bytes
from t10.core.task import Task
from t10.core.tile import WIDE_BYTES
from t10.cost.classes import OperatorClass
from t10.errors import UnsupportedOpError
from t10.profile.boxes import random_boxes
from t10.profile.model import task_of

PART_INTERLEAVED = 0.7
PART_APART = 0.5


@dataclass(frozen=True, slots=True)
class Checked:
    """Sub-tasks of a class: how many were run, how many of these were counted, and those that were counted wrongly.

    The others branch on data, which a count does not know.
    """

    one: OperatorClass
    n_run: int
    n_counted: int
    wrong: tuple[str, ...]


def check(one: OperatorClass, n_samples: int, seed: int) -> Checked:
    """Return what counting and running `n_samples` random sub-tasks of a class gives, half of them placed badly.

    Nothing is run of a class that no codelet computes.
    """
    n_run = n_counted = 0
    wrong: list[str] = []
    for task, offsets in _random_tasks(one, n_samples, seed):
        try:
            run = run_cycles(task, offsets)
        except UnsupportedOpError:
            break
        if run is None:
            continue
        n_run += 1
        counted = counted_cycles(task, offsets)
        n_counted += counted is not None
        if counted not in (None, run):
            wrong.append(f"extents {list(task.extents)} at {list(offsets)}: counted {counted}, run {run}")
    return Checked(one, n_run, n_counted, tuple(wrong))


def _random_tasks(one: OperatorClass, n: int, seed: int) -> Iterator[tuple[Task, tuple[int, ...]]]:
    """Yield tasks with the bytes at which operands begin in 16, every second one placed badly."""
    rng = Random(f"{seed} {one.key} check")
    for number, box in enumerate(random_boxes(one, seed, n)[:n]):
        task = task_of(one, box)
        yield displaced(task, rng) if number % 2 else (task, ())


def displaced(task: Task, rng: Random) -> tuple[Task, tuple[int, ...]]:
    """Return a task whose operands begin anywhere, some of them not interleaved or not apart, and where they begin."""
    offsets = tuple(rng.randrange(0, WIDE_BYTES, size_bytes(each.dtype)) for each in task.operands)
    operands = [
        replace(each, align_bytes=gcd(offset, WIDE_BYTES), is_interleaved=rng.random() < PART_INTERLEAVED)
        for each, offset in zip(task.operands, offsets, strict=True)
    ]
    apart = frozenset(pair for pair in sorted(task.apart) if rng.random() < PART_APART)
    return replace(task, inputs=tuple(operands[:-1]), output=operands[-1], apart=apart), offsets
