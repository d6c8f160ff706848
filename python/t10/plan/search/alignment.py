"""Rotating-pace alignment: one pace per axis for all tensors that rotate along it, step counts and loop order.

Source: T10 §4.2, compute-shift model §3 and theorem 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm, prod

from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.geometry import partition_shape
from t10.errors import InfeasiblePlanError


@dataclass(frozen=True, slots=True)
class Pace:
    """Per axis: L_a after padding, elements per shift (0 where nothing rotates), sub-tasks; loops outermost first."""

    lengths: AxisSizes
    rp: AxisSizes
    steps: AxisSizes
    loop_order: AxisSizes


def can_rotate(spec: OperatorSpec, operand: Operand, axis: int) -> bool:
    """Return whether an operand may ever rotate along an axis.

    Not along an axis it is not indexed by, nor along a window position (a reduction axis of a compound dim): those
    are tiny and every window would need its own halo (compute-shift model R4).
    """
    if axis not in operand.axes:
        return False
    return axis in operand.simple_axes or spec.axes[axis].kind == "parallel"


def sharers(operand: Operand, f_op: AxisSizes) -> int:
    """Return P_T: how many cores need the same sub-tensor of an operand."""
    own = operand.axes
    return prod(f for axis, f in enumerate(f_op) if axis not in own)


def align_pace(spec: OperatorSpec, f_op: AxisSizes, ft: tuple[AxisSizes, ...]) -> Pace:
    """Return the pace of a partition; `ft` has one row per rotatable operand (inputs, then output).

    `lengths` are ceil(N/F) padded so that every ft divides them; `rp` is the smallest partition length of the tensors
    that rotate along an axis. Raises `InfeasiblePlanError` that says why a partition cannot be aligned.
    """
    _check_shape(spec, f_op, ft)
    for operand, row in zip(spec.rotatable, ft, strict=True):
        _check_row(spec, operand, f_op, row)
    lengths: list[int] = []
    steps: list[int] = []
    for axis, extent in enumerate(spec.extents):
        factors = [row[axis] for row in ft]
        _check_blocks(spec, axis, factors)
        multiple = lcm(*factors)
        length = -(-extent // f_op[axis])
        lengths.append(-(-length // multiple) * multiple)
        steps.append(max(factors))
    rp = tuple(length // n if n > 1 else 0 for length, n in zip(lengths, steps, strict=True))
    order = loop_order(spec, ft, tuple(lengths), rp)
    return Pace(tuple(lengths), rp, tuple(steps), order)


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


def _check_shape(spec: OperatorSpec, f_op: AxisSizes, ft: tuple[AxisSizes, ...]) -> None:
    n_axes, n_rows = len(spec.axes), len(spec.rotatable)
    if len(f_op) != n_axes or any(f < 1 for f in f_op):
        raise _refusal(spec, f"f_op is {list(f_op)}, expected {n_axes} factors of at least 1")
    if len(ft) != n_rows or any(len(row) != n_axes or any(t < 1 for t in row) for row in ft):
        raise _refusal(
            spec, f"ft is {[list(r) for r in ft]}, expected {n_rows} rows of {n_axes} factors, at least 1"
        )
    for axis, f in zip(spec.axes, f_op, strict=True):
        if f > 1 and not axis.is_splittable:
            raise _refusal(spec, f"f_op splits axis {axis.name} {f}x, but that axis may not be split")


def _check_row(spec: OperatorSpec, operand: Operand, f_op: AxisSizes, row: AxisSizes) -> None:
    for axis, t in enumerate(row):
        if t > 1 and not can_rotate(spec, operand, axis):
            raise _refusal(spec, f"{operand.name} is cut {t}x in time along axis {spec.axes[axis].name}, "
                           "along which it cannot rotate")  # fmt: skip
    if sharers(operand, f_op) % prod(row):
        raise _refusal(
            spec,
            f"ft of {operand.name} makes rings of {prod(row)} cores, which does not divide the "
            f"{sharers(operand, f_op)} cores that share each of its sub-tensors",
        )


def _check_blocks(spec: OperatorSpec, axis: int, factors: list[int]) -> None:
    """Refuse unequal ft on an axis along which a compound dim rotates: such a dim moves in whole blocks (R5)."""
    rotating = {t for t in factors if t > 1}
    has_compound = any(
        t > 1 and axis not in operand.simple_axes for operand, t in zip(spec.rotatable, factors, strict=True)
    )
    if has_compound and len(rotating) > 1:
        name = spec.axes[axis].name
        raise _refusal(spec, f"axis {name} is cut {sorted(rotating)} times in time, but a dim over several axes "
                       "rotates along it in whole blocks, so all factors must be equal")  # fmt: skip


def _refusal(spec: OperatorSpec, message: str) -> InfeasiblePlanError:
    return InfeasiblePlanError(message, operator=spec.name, location=spec.location or None)
