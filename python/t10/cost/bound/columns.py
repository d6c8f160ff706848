"""Formulas over columns of extents: arrays of numbers, or what records formulas that native search evaluates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from t10.core.tile import N_WORKERS

Boxes = Any
"""An integer array (n, axes), or what records how formulas are made of one."""
Column = Any
"""An integer or boolean array (n,), or what records how one is made."""


class Table:
    """Columns side by side, numbers or what records how formulas are made of some: `table[:, number]` is one."""

    __slots__ = ("_columns",)

    def __init__(self, *columns: Column) -> None:
        """Keep the columns."""
        self._columns = columns

    def __getitem__(self, place: tuple[slice, int]) -> Column:
        """Return a column."""
        return self._columns[place[1]]


def chosen(condition: Column, first: Column, second: Column) -> Column:
    """Return `first` where a condition holds, else `second`."""
    result: Column = cast("Any", np).where(condition, first, second)
    return result


def always(like: Column) -> Column:
    """Return a condition that holds for all rows of a column."""
    return like * 0 == 0


def never(like: Column) -> Column:
    """Return a condition that holds for no row of a column."""
    return like * 0 != 0


def both(*conditions: Column) -> Column:
    """Return where all conditions hold."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = np.logical_and(result, condition)
    return result


def either(*conditions: Column) -> Column:
    """Return where any condition holds."""
    result = conditions[0]
    for condition in conditions[1:]:
        result = np.logical_or(result, condition)
    return result


def product(boxes: Boxes, axes: Sequence[int]) -> Column:
    """Return the product of the extents of some axes; ones where there are none."""
    result = boxes[:, 0] * 0 + 1 if not axes else boxes[:, axes[0]]
    for axis in axes[1:]:
        result = result * boxes[:, axis]
    return result


def busiest(extents: Sequence[Column], unit: Column = 1) -> Column:
    """Return the points of the busiest worker where workers share one of several loops, whichever is dealt out best.

    Shares are multiples of `unit`.
    """
    total = extents[0]
    for extent in extents[1:]:
        total = total * extent
    result = total
    for extent in extents:
        share = np.minimum(-(-extent // (N_WORKERS * unit)) * unit, extent)
        result = np.minimum(result, share * (total // np.maximum(extent, 1)))
    return result
