"""Kernel variants of a step: codelets take the fastest, so its time is the least of several linear functions.

Every variant says what its time is a linear function of, as formulas over boxes that native search evaluates as well,
and for which boxes it can be taken at all. Coefficients are found by `t10.profile` (T10 §4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from t10.core.tile import N_WORKERS

IMPOSSIBLE = 1 << 50
"""The time of a variant that cannot be taken, in thousandths of a cycle."""
PER_CYCLE = 1000
OTHER = "other"
"""Coefficients for boxes of which no variant is fitted, of the first variant's features."""
Boxes = Any
"""An integer array (n, axes), or what records how formulas are made of one."""
Column = Any
Coefficients = Mapping[str, Mapping[str, int]]
"""Thousandths of a cycle by variant and feature."""


@dataclass(frozen=True, slots=True)
class KernelVariant:
    """One way to compute a step: where it can be taken (n,), and its features by name (n,), once asked for.

    Variants of one `family` have the same features, and coefficients of their own where there is enough to fit them to.
    `guess` are rough coefficients in cycles, to begin a fit with.
    """

    name: str
    when: Callable[[], Column]
    features: Callable[[], Mapping[str, Column]]
    guess: Mapping[str, float]
    family: str = ""


def coefficients_of(variant: KernelVariant, coefficients: Coefficients) -> Mapping[str, int] | None:
    """Return the coefficients of a variant, or else of its family; None where neither is fitted."""
    own = coefficients.get(variant.name)
    return coefficients.get(variant.family) if own is None else own


def least(coefficients: Coefficients, variants: Sequence[KernelVariant]) -> Column | None:
    """Return the whole cycles of the fastest variant that is fitted, at least one; None where none is."""
    result: Column = None
    for variant in variants:
        own = coefficients_of(variant, coefficients)
        if own is None:
            continue
        total = chosen(variant.when(), weighted(variant.features(), own), IMPOSSIBLE)
        result = total if result is None else np.minimum(result, total)
    if result is None or OTHER not in coefficients:
        return None
    other = weighted(variants[0].features(), coefficients[OTHER])
    return np.maximum(-(-chosen(result < IMPOSSIBLE, result, other) // PER_CYCLE), 1)


def weighted(features: Mapping[str, Column], coefficients: Mapping[str, int]) -> Column:
    """Return the sum of features times their coefficients."""
    total: Column = next(iter(features.values())) * 0
    for name, value in coefficients.items():
        total = total + value * features[name]
    return total


def chosen(condition: Column, first: Column, second: Column) -> Column:
    """Return `first` where a condition holds, else `second`."""
    result: Column = cast("Any", np).where(condition, first, second)
    return result


def narrowed(variant: KernelVariant, when: Callable[[], Column], prefix: str = "") -> KernelVariant:
    """Return a variant that can be taken only where a further condition holds, too."""
    return replace(variant, name=f"{prefix}{variant.name}", when=lambda: both(when(), variant.when()))


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
