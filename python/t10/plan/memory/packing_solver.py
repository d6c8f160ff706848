"""Packing by CP-SAT: one worker, a fixed seed and deterministic time, so that every machine finds the same."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from math import gcd
from typing import Any

from t10.core.interruptible import interruptible
from t10.plan.memory.blocks import Block, peak


def least_starts(blocks: Sequence[Block], hint: Sequence[int], bound: int, time: float) -> list[int]:
    """Return starts with the least peak found in some deterministic time, no worse than the hint's."""
    unit = gcd(bound, *(block.size for block in blocks))
    top = peak(blocks, hint)
    model, starts = _model(blocks, top, unit)
    highest = model.new_int_var(min(bound, top) // unit, top // unit, "peak")
    for i, block in enumerate(blocks):
        model.add(starts[i] + block.size // unit <= highest)
        model.add_hint(starts[i], hint[i] // unit)
    model.minimize(highest)
    return _solved(model, starts, unit, time)[0] or list(hint)


def starts_below(
    blocks: Sequence[Block], top: int, fixed: Sequence[tuple[Block, int]], time: float
) -> tuple[list[int] | None, float]:
    """Return starts such that no block ends above `top` or touches what is fixed, and the deterministic time spent.

    The starts are None if there are none, or the time did not suffice. A fixed block comes with its start.
    """
    if any(block.size > top for block in blocks):
        return None, 0.0
    unit = gcd(*(block.size for block in blocks), *(n for b, start in fixed for n in (b.size, start)))
    model, starts = _model(blocks, top, unit, fixed)
    return _solved(model, starts, unit, time)


def _model(
    blocks: Sequence[Block], top: int, unit: int, fixed: Sequence[tuple[Block, int]] = ()
) -> tuple[Any, list[Any]]:
    """Return a model in which the blocks lie apart below `top`, and their starts in units."""
    cp_model = importlib.import_module("ortools.sat.python.cp_model")
    model = cp_model.CpModel()
    starts = [model.new_int_var(0, (top - block.size) // unit, f"start{i}") for i, block in enumerate(blocks)]
    lifetimes: list[Any] = []
    ranges: list[Any] = []
    addresses = [*starts, *(start // unit for _, start in fixed)]
    for i, block in enumerate([*blocks, *(block for block, _ in fixed)]):
        n_moments = block.last + 1 - block.first
        lifetimes.append(model.new_fixed_size_interval_var(block.first, n_moments, f"lifetime{i}"))
        ranges.append(model.new_fixed_size_interval_var(addresses[i], block.size // unit, f"range{i}"))
    model.add_no_overlap_2d(lifetimes, ranges)
    return model, starts


def _solved(model: Any, starts: Sequence[Any], unit: int, time: float) -> tuple[list[int] | None, float]:
    cp_model = importlib.import_module("ortools.sat.python.cp_model")
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = time
    # The solver would leave SIGINT at the default of the system, and Python would never see it again.
    solver.parameters.catch_sigint_signal = False
    status = interruptible(lambda: solver.solve(model), solver.stop_search)
    spent = float(solver.response_proto.deterministic_time)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, spent
    return [int(solver.value(start)) * unit for start in starts], spent
