"""The space of temporal partitions: the ft rows of an operator's operands under an F_op (compute-shift model §3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.legal import expression_of
from t10.core.lengths import line_axes
from t10.core.part_lengths import part_lengths


@dataclass(frozen=True, slots=True)
class TemporalSpace:
    """What of an operator decides its ft rows, read off once: there are many F_op to ask about.

    Per rotatable operand (inputs, then output): `rotating` axes along which it may rotate, `missing` axes that tell its
    sharers apart. `blocks` are (operand, axis) where a dim over several axes may rotate, in whole blocks only.
    """

    extents: AxisSizes
    lines: frozenset[int]
    rotating: tuple[AxisSizes, ...]
    missing: tuple[AxisSizes, ...]
    blocks: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, spec: OperatorSpec) -> TemporalSpace:
        """Return the space of an operator. Window positions (kh, kw) are too short to be worth rotating along (R4).

        What is never split does not rotate, either.
        """
        whole = {number for number, axis in enumerate(spec.axes) if not axis.is_splittable}
        windows, expression = spec.window_positions | whole, expression_of(spec)
        axes = range(len(spec.axes))
        own = [operand.axes for operand in spec.rotatable]
        simple = [operand.simple_axes for operand in spec.rotatable]
        rotating = tuple(
            tuple(a for a in axes if a in mine and a not in windows and expression.may_rotate(i, a))
            for i, mine in enumerate(own)
        )
        return cls(
            extents=spec.extents,
            lines=line_axes(spec),
            rotating=rotating,
            missing=tuple(tuple(a for a in axes if a not in mine) for mine in own),
            blocks=tuple((i, a) for i, mine in enumerate(rotating) for a in mine if a not in simple[i]),
        )

    def rows(self, slot: int, f_op: AxisSizes, padding: float) -> Ints:
        """Return the ft rows of one operand under an F_op, shape (n, axes), in lexicographic order."""
        n_sharers = prod(f_op[a] for a in self.missing[slot])
        lengths = self._lengths(np.array(f_op))
        axes = [a for a in self.rotating[slot] if lengths[a] > 1]
        if n_sharers == 1 or not axes:
            return np.ones((1, len(f_op)), np.int64)
        rows = np.ones((len(_divisor_array(n_sharers, len(axes))), len(f_op)), np.int64)
        rows[:, axes] = _divisor_array(n_sharers, len(axes))
        return rows[(rows <= lengths).all(axis=1) & self._is_padding_kept(np.array(f_op), rows, padding)]

    def partitions(self, f_op: AxisSizes, padding: float) -> Ints:
        """Return the combinations of ft rows under an F_op, shape (n, operands, axes), in lexicographic order."""
        per_slot = [self.rows(slot, f_op, padding) for slot in range(len(self.rotating))]
        counts = [len(rows) for rows in per_slot]
        combined = np.empty((prod(counts), len(counts), len(f_op)), np.int64)
        for slot, rows in enumerate(per_slot):
            repeated = np.repeat(rows, prod(counts[slot + 1 :]), axis=0)
            combined[:, slot] = np.tile(repeated, (prod(counts[:slot]), 1))
        if len(combined) == 1:
            return combined
        keep = self._is_padding_kept(np.array(f_op), np.lcm.reduce(combined, axis=1), padding)
        return combined[keep & self._has_whole_blocks(combined)]

    def _lengths(self, f_op: Ints) -> Ints:
        return part_lengths(self.extents, self.lines, f_op)

    def _is_padding_kept(self, f_op: Ints, multiple: Ints, padding: float) -> Bools:
        """Return which parts, rounded up to multiples (n, axes), are not padded or useful enough on every axis."""
        extents, lengths = np.array(self.extents), self._lengths(f_op)
        padded = -(-lengths // multiple) * multiple
        return ((padded == lengths) | (extents >= padding * (padded * f_op))).all(axis=1)

    def _has_whole_blocks(self, ft: Ints) -> Bools:
        """Return which combinations move compound dims in whole blocks: equal factors along their axes."""
        keep = np.ones(len(ft), np.bool_)
        for slot, axis in self.blocks:
            own = ft[:, slot, axis]
            equal = ((ft[:, :, axis] == 1) | (ft[:, :, axis] == own[:, None])).all(axis=1)
            keep &= (own == 1) | equal
        return keep


@lru_cache(maxsize=4096)
def divisor_rows(number: int, n_axes: int) -> tuple[tuple[int, ...], ...]:
    """Return all rows of `n_axes` factors whose product divides `number`, in lexicographic order."""
    if n_axes == 0:
        return ((),)
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    return tuple((d, *rest) for d in divisors for rest in divisor_rows(number // d, n_axes - 1))


@lru_cache(maxsize=4096)
def _divisor_array(number: int, n_axes: int) -> Ints:
    rows = np.array(divisor_rows(number, n_axes), np.int64)
    rows.flags.writeable = False
    return rows
