"""The space of partitions of one operator: every F_op worth trying, and for each the ft rows of its operands.

Source: T10 §4.3.1 and its two constraints (parallelism, padding); compute-shift model §2, §3, §7.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from t10.core.expression import AxisSizes, OperatorSpec
from t10.plan.alignment import can_rotate, sharers

Ints = NDArray[np.int64]
RELAXATION_STEP = 0.1


def axis_factors(extent: int, most: int, padding: float) -> tuple[int, ...]:
    """Return the parts an axis may be cut in: per part length the smallest F, at most `most`, padding respected."""
    factors: list[int] = []
    f = 1
    while f <= min(extent, most):
        length = -(-extent // f)
        f = -(-extent // length)
        if f <= most and extent >= padding * f * length:
            factors.append(f)
        if length == 1:
            break
        f = -(-extent // (length - 1))
    return tuple(factors)


def operator_partitions(spec: OperatorSpec, n_cores: int, *, parallelism: float, padding: float) -> Ints:
    """Return every F_op, shape (n, axes), with at most `n_cores` parts that satisfies both constraints."""
    per_axis = [
        axis_factors(axis.extent, n_cores, padding) if axis.is_splittable else (1,) for axis in spec.axes
    ]
    rows = np.ones((1, 0), np.int64)
    products = np.ones(1, np.int64)
    # What the axes still to come can contribute at most decides early which rows cannot reach the parallelism.
    rest = [prod(max(f, default=1) for f in per_axis[i + 1 :]) for i in range(len(per_axis))]
    least = least_cores(spec, n_cores, parallelism)
    for number, factors in enumerate(per_axis):
        choices = np.array(factors or (1,), np.int64)
        product = products[:, None] * choices
        keep = (product <= n_cores) & (product * rest[number] >= least)
        parent, chosen = np.nonzero(keep)
        rows = np.column_stack([rows[parent], choices[chosen]])
        products = product[parent, chosen]
    return rows


def least_cores(spec: OperatorSpec, n_cores: int, parallelism: float) -> float:
    """Return how many cores must work at least: a part of those that could each make results of their own.

    Cores that would only add up partial sums may be used but are not demanded: a reduction of few rows is fastest on
    few cores.
    """
    usable = prod(axis.extent for axis in spec.axes if axis.is_splittable and axis.kind == "parallel")
    return parallelism * min(n_cores, usable)


def relaxed_partitions(
    spec: OperatorSpec, n_cores: int, *, parallelism: float, padding: float
) -> tuple[Ints, float]:
    """Return every F_op and the padding constraint it satisfies, constraints relaxed in steps until there is one.

    First parallelism is lowered, then padding; without constraints F_op = 1 always remains.
    """
    while True:
        floor = parallelism
        while True:
            rows = operator_partitions(spec, n_cores, parallelism=floor, padding=padding)
            if len(rows):
                return rows, padding
            if floor <= 0.5 * parallelism:
                break
            floor = max(floor - RELAXATION_STEP, 0.0)
        if padding <= 0:
            rows = operator_partitions(spec, n_cores, parallelism=0.0, padding=0.0)
            return rows, 0.0
        padding = max(padding - RELAXATION_STEP, 0.0)


@lru_cache(maxsize=4096)
def divisor_rows(number: int, n_axes: int) -> tuple[tuple[int, ...], ...]:
    """Return all rows of `n_axes` factors whose product divides `number`, smallest product first."""
    if n_axes == 0:
        return ((),)
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    rows = [(d, *rest) for d in divisors for rest in divisor_rows(number // d, n_axes - 1)]
    return tuple(sorted(rows, key=lambda row: (prod(row), row)))


def temporal_rows(spec: OperatorSpec, slot: int, f_op: AxisSizes, padding: float) -> Ints:
    """Return the ft rows of one rotatable operand under an F_op, shape (n, axes); the first is all ones."""
    operand = spec.rotatable[slot]
    lengths = [-(-extent // f) for extent, f in zip(spec.extents, f_op, strict=True)]
    windows = window_positions(spec)
    axes = [
        a
        for a in sorted(operand.axes)
        if lengths[a] > 1 and a not in windows and can_rotate(spec, operand, a)
    ]
    n_sharers = sharers(operand, f_op)
    if n_sharers == 1 or not axes:
        return np.ones((1, len(f_op)), np.int64)
    rows = np.array(divisor_rows(n_sharers, len(axes)), np.int64)
    own = np.array([lengths[a] for a in axes])
    limit = np.array([spec.extents[a] for a in axes]) / np.array([f_op[a] for a in axes])
    padded = -(-own // rows) * rows
    keep = ((rows <= own) & ((padded == own) | (limit >= padding * padded))).all(axis=1)
    result = np.ones((int(keep.sum()), len(f_op)), np.int64)
    result[:, axes] = rows[keep]
    return result


def window_positions(spec: OperatorSpec) -> frozenset[int]:
    """Return the reduction axes of dims over several axes (kh, kw): too short to be worth rotating along (R4)."""
    return frozenset(
        axis
        for operand in spec.inputs
        for dim in operand.dims
        if len(dim.terms) > 1
        for axis in dim.axes
        if spec.axes[axis].kind == "reduction"
    )


def temporal_partitions(spec: OperatorSpec, f_op: AxisSizes, padding: float, most: int) -> Ints:
    """Return the combinations of ft rows under an F_op, shape (n, rotatable operands, axes), about `most` at most.

    Where there are more, rows are thinned evenly over their ring lengths, the extremes kept.
    """
    n_slots = len(spec.rotatable)
    per_slot = [temporal_rows(spec, slot, f_op, padding) for slot in range(n_slots)]
    per_slot = _thinned(per_slot, most)
    combined = np.ones((1, 0, len(f_op)), np.int64)
    for rows in per_slot:
        left = np.repeat(combined, len(rows), axis=0)
        right = np.tile(rows, (len(combined), 1))[:, None, :]
        combined = np.concatenate([left, right], axis=1)
    return combined[_can_align(spec, np.array(f_op), combined, padding)]


def _thinned(per_slot: list[Ints], most: int) -> list[Ints]:
    """Return rows of which there are at most about `most` combinations."""
    while prod(len(rows) for rows in per_slot) > most:
        longest = max(range(len(per_slot)), key=lambda i: (len(per_slot[i]), i))
        rows = per_slot[longest]
        if len(rows) <= 2:
            break
        keep = np.unique(np.linspace(0, len(rows) - 1, max(2, len(rows) * 2 // 3)).astype(np.int64))
        per_slot = [rows[keep] if i == longest else other for i, other in enumerate(per_slot)]
    return per_slot


def _can_align(spec: OperatorSpec, f_op: Ints, ft: Ints, padding: float) -> NDArray[np.bool_]:
    """Return which combinations keep the padding constraint and move compound dims in whole blocks."""
    lengths = -(-np.array(spec.extents) // f_op)
    multiple = np.lcm.reduce(ft, axis=1)
    padded = -(-lengths // multiple) * multiple
    keep = ((padded == lengths) | (np.array(spec.extents) >= padding * padded * f_op)).all(axis=1)
    most = ft.max(axis=1)
    for slot, operand in enumerate(spec.rotatable):
        for axis in operand.axes - operand.simple_axes:
            rotates = ft[:, slot, axis] > 1
            equal = ((ft[:, :, axis] == 1) | (ft[:, :, axis] == most[:, None, axis])).all(axis=1)
            keep &= ~rotates | equal
    return keep
