"""`cost_program`: what a cost model answers for one operator, in a form that native search evaluates.

A question that tracing can write down becomes a `Formula`; another stays a function that native code calls back. Both
give the numbers of the cost model's own `_many` functions: a formula that does not, on sample shapes, is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from t10.core.arrays import Floats, Ints
from t10.core.expression import OperatorSpec
from t10.cost.formula import Formula
from t10.cost.model import AlikeCosts, ChunkCosts, CostModel, FormulaCosts, WholeCosts
from t10.cost.trace import trace_table
from t10.errors import T10Error

N_SAMPLES = 128
MAX_SAMPLE_BYTES = 1 << 21
MAX_SAMPLE_MEMBERS, MAX_SAMPLE_ELEMENTS = 1 << 12, 1 << 28
KEPT_FUNCTIONS = 256


@dataclass(frozen=True, slots=True)
class CostCallable:
    """A function of an integer table (n, n_inputs) that gives (n,) cycles, called back with the interpreter lock."""

    n_inputs: int
    function: Callable[[Any], Any]

    def evaluate(self, inputs: Ints) -> Floats:
        """Return its cycles as doubles. Raises T10Error where the shape is not (n,)."""
        cycles = np.ascontiguousarray(self.function(inputs), np.float64)
        if cycles.shape != (len(inputs),):
            raise T10Error(f"a cost function gave shape {cycles.shape} for {len(inputs)} candidates")
        return cycles


CostFunction = Formula | CostCallable


@dataclass(frozen=True, slots=True)
class CostProgram:
    """A cost model's functions for one operator; inputs in this order, one row per candidate.

    `sub_task`: the box, one number per axis. `whole`: the same where operands are as large as the box and nothing adds;
    None where that makes no difference. `epilogue`: accumulated elements of a core, how many of them are a run, and how
    many cores have sums of the same window. `shift`: bytes that a core passes on. `reduce`: members,
    elements of a window. All in cycles.
    """

    sub_task: CostFunction
    whole: CostFunction | None
    epilogue: CostFunction
    shift: CostFunction
    reduce: CostFunction


def cost_program(cost: CostModel, spec: OperatorSpec, *, is_bound: bool = False) -> CostProgram:
    """Return the functions of `cost` for `spec`; where they bound other prices, those of plans without rotation too."""
    n_elements = prod(spec.output.shape)
    known = cost if isinstance(cost, AlikeCosts) else None
    extents = tuple((1, 2 * extent if extent > 1 else 1) for extent in spec.extents)
    own = cost if isinstance(cost, FormulaCosts) else None
    steps = None if known is None else (cost, known.steps_alike(spec))
    whole: CostFunction | None = None
    if is_bound and isinstance(cost, WholeCosts) and cost.sees_windows(spec):
        whole = (own and own.step_formula(spec, is_whole=True)) or _shared(
            None if steps is None else ("whole", *steps),
            lambda boxes: cost.whole_cycles_many(spec, boxes),
            extents,
        )
    return CostProgram(
        sub_task=(own and own.step_formula(spec))
        or _shared(steps, lambda boxes: cost.sub_task_cycles_many(spec, boxes), extents),
        whole=whole,
        epilogue=(own and own.end_formula(spec))
        or cost_function(
            lambda t: _epilogue(cost, spec, t[:, 0], t[:, 1], t[:, 2]),
            ((0, n_elements), (1, n_elements), (1, MAX_SAMPLE_MEMBERS)),
        ),
        shift=cost_function(lambda t: cost.shift_cycles_many(t[:, 0]), ((0, MAX_SAMPLE_BYTES),)),
        reduce=_shared(
            None if known is None else (cost, known.reductions_alike(spec)),
            lambda t: cost.reduce_cycles_many(spec, t[:, 0], t[:, 1]),
            ((1, MAX_SAMPLE_MEMBERS), (0, MAX_SAMPLE_ELEMENTS)),
        ),
    )


def _epilogue(cost: CostModel, spec: OperatorSpec, n_slots: Ints, runs: Ints, n_members: Ints) -> Ints:
    if isinstance(cost, ChunkCosts):
        return cost.chunk_cycles_many(spec, n_slots, runs, n_members)
    return cost.epilogue_cycles_many(spec, n_slots, runs)


def _shared(
    alike: Hashable | None, function: Callable[[Any], Any], ranges: tuple[tuple[int, int], ...]
) -> CostFunction:
    """Return `cost_function`'s result, once for operators that are alike; None: this one is like no other."""
    if alike is None:
        return cost_function(function, ranges)
    shared = _function_of(alike, ranges)
    if not shared:
        shared.append(cost_function(function, ranges))
    return shared[0]


@lru_cache(maxsize=KEPT_FUNCTIONS)
def _function_of(*known: Hashable) -> list[CostFunction]:
    """Return where the function of operators that are alike is kept."""
    del known
    return []


def cost_function(function: Callable[[Any], Any], ranges: tuple[tuple[int, int], ...]) -> CostFunction:
    """Return `function` of integer tables as a formula where it can be traced, else as it is.

    `ranges` has the smallest and greatest number of every column; the formula is compared with the function on
    samples of them. A column of which there is one number only is a constant in the formula.
    """
    fixed = {column: low for column, (low, high) in enumerate(ranges) if low == high}
    found, called = traced(function, len(ranges), fixed), CostCallable(len(ranges), function)
    if isinstance(found, CostCallable):
        return called
    samples = _samples(ranges)
    # A formula has a value where its branch is not taken, numpy a warning besides.
    with np.errstate(divide="ignore", invalid="ignore"):
        return found if np.array_equal(found.evaluate(samples), called.evaluate(samples)) else called


def traced(function: Callable[[Any], Any], n_columns: int, fixed: Mapping[int, int]) -> CostFunction:
    """Return `function` of integer tables as a formula where it can be traced, else as it is.

    `fixed` columns are one number.
    """
    try:
        return trace_table(function, n_columns, fixed)
    except (
        Exception
    ):  # whatever a traced array cannot do; a mistake of the function's own shows when it is called
        return CostCallable(n_columns, function)


def _samples(ranges: tuple[tuple[int, int], ...]) -> Ints:
    """Return rows in the given ranges: both ends, and numbers of every magnitude between, the same every time."""
    low, high = np.array(ranges, np.int64).reshape(-1, 2).T
    shares = np.random.default_rng(seed=0).random((N_SAMPLES, len(ranges)))
    spread = np.exp(shares * np.log(high - low + 1.0)).astype(np.int64) - 1 + low
    return np.concatenate([low[None], high[None], np.minimum(spread, high)])
