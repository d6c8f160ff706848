"""Types of the native module `t10.plan.search._search` (source: `_search.cpp` and the `search_*` files beside it)."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

class ShiftTable:
    """Cycles of one shift for every multiple of `granule_bytes` up to `limit_bytes`.

    `function` is a `t10.cost.formula.Formula` or `t10.cost.program.CostCallable` of the bytes that a core passes on.
    Raises ValueError where it gives anything but whole numbers from 0 on.
    """

    def __init__(self, function: object, limit_bytes: int, granule_bytes: int) -> None: ...
    @property
    def least_cycles(self) -> float:
        """Cycles such that a shift of b > 0 bytes never takes less than `least_cycles + cycles_per_byte * b`."""
    @property
    def cycles_per_byte(self) -> float:
        """The slope of the line below all shifts."""

class ComputeBound:
    """Least compute cycles of all plans under some F_op, tabulated over the lengths of their parts and steps."""

    @property
    def n_entries(self) -> int:
        """The numbers in the table, 8 bytes each."""

def compute_bound(task: object, f_op: NDArray[np.int64], sub_task: object) -> ComputeBound | None:
    """Return the bound for rows of F_op, int64 [n, axis]; None for costs that are no formula, or a table too large.

    It depends on the extents, rotating axes and padding of `task`, not on what follows the loop nest or on memory.
    """

def search(
    task: object,
    f_op: NDArray[np.int64],
    program: object,
    price: Callable[[tuple[int, ...], tuple[tuple[int, ...], ...], float, float, float, float], float] | None,
    bounds: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]] | None,
    shift: ShiftTable,
    bound: ComputeBound | None,
    place: Callable[[tuple[int, ...], tuple[tuple[int, ...], ...]], bool],
    poll: Callable[[float], object] | None,
    *,
    is_pruning: bool = True,
    is_bytes_only: bool = False,
    asks_always: bool = False,
) -> tuple[list[tuple[int, list[int], int, int]], tuple[int, int, int, int, int, int]]:
    """Return the front of all placeable plans that fit, and counts.

    These are (partitions, cases, plans priced, placed, sub-tasks, plans priced after a bound).
    `task` is a `t10.plan.search.task.SearchTask`, `program` a `t10.cost.program.CostProgram`, `f_op` int64 [n, axis] in
    lexicographic order. Where `price(f_op, ft, least_step, least_rest, waits, most)` is given, `program` has lower
    bounds only: plans that would enter the front are priced by it, fetches and shifts aside. It gets the bounds of a
    step, of what follows all steps and of what shifts take beyond the table, and may give a lower bound where that is
    above `most`. `bounds(f_op, ft)` has closer bounds of many plans, int64 [n, axis] and [n, slot, axis], than
    `program`, (n, 2): of all steps, and of what shifts take beyond the table. `bound` is that of these rows: with it
    fewer plans are looked at.
    A plan of the front, least bytes first, is (row of `f_op`, ft rows of all slots one after the other, cycles, bytes
    per core); of plans equal in both the lexicographically first. `place(f_op, ft)` says whether a plan has a placement
    that no theorem gives; with `asks_always` it is asked of all plans. `poll(done)` is called about ten times per
    second with the share of F_op that are done; what it raises ends the search. Without `is_pruning` every plan is
    priced; with `is_bytes_only` all cycles are taken to be 0. Raises ValueError for more than 16 axes or operands, and
    for costs that are not whole numbers from 0 on.
    """

def count(task: object, f_op: NDArray[np.int64]) -> float:
    """Return how many combinations of ft rows there are under all F_op, each row by itself within the constraints."""
