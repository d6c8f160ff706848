"""What nests take of the core that has most to do, counted from code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from t10.codelets.body.picks import picking_axes
from t10.codelets.compile import own_digest
from t10.codelets.count import cycles_of
from t10.core.task import Task
from t10.core.vertex_nest import Lie, VertexNest, Work, different_offsets, tasks
from t10.cost.counts import KEPT_BOXES


def task_cycles(task: Task, offsets_bytes: tuple[int, ...] = ()) -> int | None:
    """Return what `cycles_of` does, once: tasks of different operators may be the same."""
    return _cycles(task, own_digest(), offsets_bytes)


@lru_cache(maxsize=KEPT_BOXES)
def _cycles(task: Task, own: str, offsets_bytes: tuple[int, ...]) -> int | None:
    del own
    return cycles_of(task, offsets_bytes)


def sum_of_slowest(nests: Iterable[tuple[VertexNest, Work]], lie: Lie, launch_cycles: int) -> int | None:
    """Return the cycles of nests in a row, launches included, each as long as the core with most to do."""
    total = 0
    for nest, work in nests:
        cycles = slowest(nest, work, lie)
        if cycles is None:
            return None
        total += launch_cycles + cycles
    return total


def slowest(nest: VertexNest, work: Work, lie: Lie) -> int | None:
    """Return the cycles of the core with most to do; None if not known.

    Where a core begins is a word of its vertex: code asks how far indices reach, so all are taken to begin last. But
    what a body picks by its place has a code for every place.
    """
    if work.origin is not None:
        picking = picking_axes(nest.body)
        is_picking = [axis in picking for axis in range(work.origin.shape[1])]
        work = replace(work, origin=np.where(is_picking, work.origin, work.origin.max(axis=0)))
    most = 0
    for chosen, task in tasks(nest, work, lie):
        for offsets in different_offsets(work, chosen):
            cycles = task_cycles(task, tuple(offsets))
            if cycles is None:
                return None
            most = max(most, cycles)
    return most
