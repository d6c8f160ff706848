"""Who holds what at step 0: the rings of every tensor, and the part of it that lies on every core."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from t10.core import geometry
from t10.core.dtypes import size_bytes
from t10.core.expression import Operand, OperatorSpec
from t10.core.movement import operand_of
from t10.core.plan import OperatorPlan

MOST_DRAWN = 64
"""Cores that a picture in text shows one by one."""
MOST_IN_RING = 12


@dataclass(frozen=True, slots=True)
class Holding:
    """How one tensor lies at step 0.

    `use` is input, epilogue or output; `ring` the cores of one ring, `rings` how many there are on the chip and
    `replicas` how many for every sub-tensor; `partition` the extents a core holds; `first_ring` the cores of the first
    ring in the order in which a partition travels; `parts` what every core holds, by core number.
    """

    name: str
    use: str
    dtype: str
    sub_tensors: int
    ring: int
    rings: int
    replicas: int
    partition: tuple[int, ...]
    n_bytes: int
    first_ring: tuple[int, ...]
    parts: tuple[str, ...]


def holdings(spec: OperatorSpec, plan: OperatorPlan) -> tuple[Holding, ...]:
    """Return what every tensor of an operator looks like on the cores when its first sub-task starts."""
    return tuple(_holding(spec, plan, number) for number in range(len(spec.operands) + 1))


def _holding(spec: OperatorSpec, plan: OperatorPlan, number: int) -> Holding:
    operand = operand_of(spec, number)
    n_inputs = len(spec.inputs)
    is_output = number == len(spec.operands)
    slot = number if number < n_inputs else n_inputs
    use = "output" if is_output else "input" if number < n_inputs else "epilogue"
    lengths = geometry.window_lengths(plan, slot)
    ring = prod(plan.ft[slot]) if use != "epilogue" else 1
    partition = geometry.partition_shape(operand, lengths)
    dtype = spec.acc_dtype if is_output else operand.dtype
    return Holding(
        name=operand.name,
        use=use,
        dtype=dtype,
        sub_tensors=prod(plan.f_op[axis] for axis in operand.axes),
        ring=ring,
        rings=max(1, plan.n_cores // ring),
        replicas=max(1, geometry.n_sharers(operand, plan) // ring),
        partition=partition,
        n_bytes=prod(partition) * size_bytes(dtype),
        first_ring=first_ring(spec, plan, slot) if ring > 1 else (0,),
        parts=_parts(spec, plan, operand, slot),
    )


def first_ring(spec: OperatorSpec, plan: OperatorPlan, slot: int) -> tuple[int, ...]:
    """Return the cores of core 0's ring along the first axis it turns around, each before the one it passes to."""
    axis = next(axis for axis in plan.loop_order if plan.ft[slot][axis] > 1)
    sources = geometry.shift_sources(spec, plan, slot, axis, 1)
    ring = [0]
    while (source := int(sources[ring[-1]])) not in (-1, 0) and len(ring) <= plan.n_cores:
        ring.append(source)
    # A core receives from its source: travelling goes the other way.
    return (0, *reversed(ring[1:]))


def _parts(spec: OperatorSpec, plan: OperatorPlan, operand: Operand, slot: int) -> tuple[str, ...]:
    """Return the ranges of every cut axis of an operand that each core holds, as text; empty where nothing is cut."""
    where = geometry.coordinates(plan)
    starts = geometry.window_starts(plan, slot, (0,) * len(plan.f_op))
    lengths = geometry.window_lengths(plan, slot)
    cut = [a for a in sorted(operand.axes) if plan.f_op[a] > 1 or plan.ft[slot][a] > 1]
    columns: list[list[str]] = []
    for axis in cut:
        base, length = where[:, axis] * plan.lengths[axis], plan.lengths[axis]
        first = base + starts[:, axis]
        last = base + (starts[:, axis] + lengths[axis] - 1) % length
        extent = spec.axes[axis].extent
        columns.append(
            [
                f"{spec.axes[axis].name} {index_range(int(a), int(b), extent)}"
                for a, b in zip(first, np.asarray(last), strict=True)
            ]
        )
    return tuple(" ".join(cells) for cells in zip(*columns, strict=True)) if columns else ("",) * plan.n_cores


def index_range(first: int, last: int, extent: int) -> str:
    """Return an index range; one that wraps around the part names its end after its start; padding is `-`."""
    if first >= extent and last >= first:
        return "-"
    if first == last:
        return str(first)
    return f"{first}..{min(last, extent - 1) if last >= first else last}"
