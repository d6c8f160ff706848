"""Loops over boxes as formulas: axes that operands walk on evenly are one loop, those of one point none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np

from t10.core.expression import AffineDim, Operand, OperatorSpec
from t10.core.tile import N_WORKERS
from t10.cost.bound.columns import Boxes, Column, both, chosen, either, never, product

Strides = Mapping[int, Column]
"""Elements from one point of an axis to the next in an operand's part of a box, by axis."""


@dataclass(frozen=True, slots=True)
class WalkLoop:
    """A loop: its extent (n,), and the elements from one point to the next in every operand."""

    extent: Column
    steps: tuple[Column, ...]


def strides_of(operand: Operand, boxes: Boxes) -> Strides:
    """Return the strides of an operand's axes."""
    behind = product(boxes, ())
    result: dict[int, Column] = {}
    for dim in reversed(operand.dims):
        for term in dim.terms:
            result[term.axis] = behind * term.coefficient
        if dim.terms:
            behind = behind * dim_extent(dim, boxes)
    return result


def dim_extent(dim: AffineDim, boxes: Boxes) -> Column:
    """Return the extent of an operand's dim, halo included."""
    if dim.is_simple:
        return boxes[:, dim.terms[0].axis]
    extent: Column = 1
    for term in dim.terms:
        extent = extent + term.coefficient * (boxes[:, term.axis] - 1)
    return extent


def may_step_evenly(spec: OperatorSpec, boxes: Boxes, extents: Boxes) -> Column | None:
    """Return where windows with strides may end where the next one would begin; None of no such windows.

    Axes of the operator have `extents` (n, axes).

    Loops that are apart in a box may then be one. Windows of two positions have 38 rows where 19 places are two rows
    apart, and the next image follows evenly.
    """
    found: list[Column] = []
    for outer, dim in (
        pair for operand in spec.inputs for pair in pairwise(d for d in operand.dims if d.terms)
    ):
        # Around a window of strides, what steps by several of its rows never follows evenly.
        if len(dim.terms) < 2 or all(
            term.coefficient > 1 or term.axis not in spec.output.axes for term in outer.terms
        ):
            continue
        far, near = sorted(dim.terms, key=lambda term: -term.coefficient)[:2]
        if far.coefficient > 1 and far.axis in spec.output.axes:
            positions = boxes[:, near.axis]
            fits = positions <= (far.coefficient - 1) // near.coefficient + 1
            found.append(both(fits, positions < extents[:, near.axis]))
    return either(*found) if found else None


def axis_order(operand: Operand) -> tuple[int, ...]:
    """Return the axes of an operand, outermost first."""
    return tuple(axis for dim in operand.dims for axis in dim.axes)


def united_loops(
    boxes: Boxes, order: Sequence[int], operands: Sequence[Operand], windows: Sequence[Boxes] = ()
) -> list[WalkLoop]:
    """Return loops over axes, innermost first (`order` has the outermost first); united ones leave loops of one point.

    An operand that lacks an axis stands still along it. Operands are as large as the box, or as their `windows`.
    """
    strides = [
        strides_of(operand, windows[number] if windows else boxes) for number, operand in enumerate(operands)
    ]
    chains = [[axis] for axis in order] if windows else chains_of(order, operands)
    current = boxes[:, 0] * 0 + 1
    steps = tuple(current * 0 for _ in strides)
    result: list[WalkLoop] = []
    for number, chain in enumerate(reversed(chains)):
        extent, own = product(boxes, chain), [each.get(chain[-1], 0) for each in strides]
        begins = current == 1
        walks = both(*(stride == current * step for stride, step in zip(own, steps, strict=True)))
        unites = either(extent == 1, begins, walks)
        if number:
            result.append(WalkLoop(chosen(unites, 1, current), steps))
        keeps = either(extent == 1, both(unites, np.logical_not(begins)))
        steps = tuple(chosen(keeps, step, stride) for step, stride in zip(steps, own, strict=True))
        current = chosen(unites, current * extent, extent)
    return [*result, WalkLoop(current, steps)]


def chains_of(order: Sequence[int], operands: Sequence[Operand]) -> list[list[int]]:
    """Return axes in chains that all operands walk on evenly whatever their extents, outermost first."""
    result: list[list[int]] = []
    for axis in order:
        if result and all(_follows(operand, result[-1][-1], axis) for operand in operands):
            result[-1].append(axis)
        else:
            result.append([axis])
    return result


def _follows(operand: Operand, outer: int, inner: int) -> bool:
    """Return whether an operand steps evenly from one axis into the other, or has neither."""
    axes = [dim.terms[0].axis if dim.is_simple else -1 for dim in operand.dims if dim.terms]
    if outer not in operand.axes and inner not in operand.axes:
        return True
    return outer in axes and inner in axes and axes.index(inner) == axes.index(outer) + 1


def innermost(loops: Sequence[WalkLoop]) -> tuple[WalkLoop, list[WalkLoop]]:
    """Return the first of loops (innermost first) that has points, and all of them with one point in its place."""
    first = loops[-1]
    for loop in reversed(loops[:-1]):
        is_first = loop.extent > 1
        steps = tuple(chosen(is_first, own, old) for own, old in zip(loop.steps, first.steps, strict=True))
        first = WalkLoop(chosen(is_first, loop.extent, first.extent), steps)
    rest: list[WalkLoop] = []
    is_found = never(first.extent)
    for loop in loops:
        is_it = both(np.logical_not(is_found), loop.extent > 1)
        rest.append(WalkLoop(chosen(is_it, 1, loop.extent), loop.steps))
        is_found = either(is_found, is_it)
    return first, rest


def busiest_share(extents: Sequence[Column]) -> Column:
    """Return the points of the busiest worker where workers share the loop that is dealt out best."""
    shares = [
        -(-extent // N_WORKERS) * product_of([other for j, other in enumerate(extents) if j != i])
        for i, extent in enumerate(extents)
    ]
    return reduce(np.minimum, shares)


def product_of(columns: Sequence[Column]) -> Column:
    """Return the product of columns, 1 of none."""
    result: Column = columns[0] if columns else 1
    for column in columns[1:]:
        result = result * column
    return result


def has_plain_loops(operand: Operand, reduced: frozenset[int]) -> bool:
    """Return whether no axis is in two dims of an operand, and no dim has two axes that are reduced."""
    axes = [axis for dim in operand.dims for axis in dim.axes]
    n_reduced = max((len(reduced.intersection(dim.axes)) for dim in operand.dims), default=0)
    return len(axes) == len(set(axes)) and n_reduced < 2


def is_cut_evenly(extent: Column, n: int) -> Column:
    """Return whether a loop can be cut in n pieces of several points; of whole fours, in pieces of whole fours."""
    is_even = both(extent % n == 0, extent >= 2 * n)
    return both(is_even, either(extent % 4 != 0, extent % (4 * n) == 0))


def follow_evenly(row: WalkLoop, cut: WalkLoop) -> list[Column]:
    """Return where each input walks on evenly from the end of one loop to the next point of the one around it."""
    return [outer == cut.extent * inner for outer, inner in zip(row.steps[:-1], cut.steps[:-1], strict=True)]
