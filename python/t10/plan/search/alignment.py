"""Rotating-pace alignment: one pace per axis for all tensors that rotate along it, step counts and loop order.

Source: T10 §4.2, compute-shift model §3 and theorem 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from t10.chip import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.geometry import partition_shape
from t10.core.legal import PlanRows, breaches, expression_of
from t10.core.lengths import lengths_of
from t10.errors import InfeasiblePlanError


@dataclass(frozen=True, slots=True)
class Pace:
    """Per axis: L_a after padding, elements per shift (0 where nothing rotates), sub-tasks; loops outermost first."""

    lengths: AxisSizes
    rp: AxisSizes
    steps: AxisSizes
    loop_order: AxisSizes


def sharers(operand: Operand, f_op: AxisSizes) -> int:
    """Return P_T: how many cores need the same sub-tensor of an operand."""
    own = operand.axes
    return prod(f for axis, f in enumerate(f_op) if axis not in own)


def align_pace(
    spec: OperatorSpec, f_op: AxisSizes, ft: tuple[AxisSizes, ...], lengths: AxisSizes | None = None
) -> Pace:
    """Return the pace of a partition; `ft` has one row per rotatable operand (inputs, then output).

    Its lengths are those given, or else ceil(N/F) padded so that every ft divides them; its `rp` is the smallest
    partition length of the tensors that rotate along an axis. Raises `InfeasiblePlanError` that says why a partition
    cannot be aligned.
    """
    require_legal(spec, PlanRows(f_op, ft, lengths=lengths))
    lengths = lengths or lengths_of(spec, f_op, ft)
    steps = tuple(map(max, zip(*ft, strict=True)))
    rp = tuple(length // n if n > 1 else 0 for length, n in zip(lengths, steps, strict=True))
    return Pace(lengths, rp, steps, loop_order(spec, ft, lengths, rp))


def loop_order(spec: OperatorSpec, ft: tuple[AxisSizes, ...], lengths: AxisSizes, rp: AxisSizes) -> AxisSizes:
    """Return the rotating axes, outermost first: most bytes per shift outermost, ties in axis order (theorem 3)."""
    weights = [(-advance_bytes(spec, ft, lengths, rp, axis), axis) for axis in range(len(rp)) if rp[axis]]
    return tuple(axis for _, axis in sorted(weights))


def advance_bytes(
    spec: OperatorSpec, ft: tuple[AxisSizes, ...], lengths: AxisSizes, rp: AxisSizes, axis: int
) -> int:
    """Return the bytes that a core passes on when `axis` advances, all tensors together."""
    total = 0
    for number, (operand, row) in enumerate(zip(spec.rotatable, ft, strict=True)):
        if row[axis] == 1:
            continue
        windows = tuple(length // t for length, t in zip(lengths, row, strict=True))
        n_elements = prod(partition_shape(operand, windows))
        if axis in operand.simple_axes:
            n_elements = n_elements // windows[axis] * rp[axis]
        dtype = operand.dtype if number < len(spec.inputs) else spec.acc_dtype
        total += n_elements * size_bytes(dtype)
    return total


def require_legal(spec: OperatorSpec, partition: PlanRows, chip: ChipSpec | None = None) -> None:
    """Raise `InfeasiblePlanError` with the first rule of `t10.core.legal` that a partition breaks."""
    breach = next(breaches(partition, expression_of(spec), None if chip is None else chip.n_cores), None)
    if breach is not None:
        raise InfeasiblePlanError(str(breach), operator=spec.name, location=spec.location or None)
