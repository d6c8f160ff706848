"""The lower bound of a step: the least over the codelet families that may compute it. Launches are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from t10.codelets.body.picks import picked, picking_axes
from t10.codelets.reduce.picked import MOST_PLACES
from t10.core.dtypes import size_bytes
from t10.core.epilogue_nest import epilogue_axes
from t10.core.expression import OperatorSpec
from t10.core.products import hands_on_rounded, summed
from t10.core.scalar import ScalarFunction
from t10.core.tile import N_WORKERS
from t10.cost.bound.columns import Boxes, Column, Table, chosen, product
from t10.cost.bound.dots import dots_bound
from t10.cost.bound.gather import gather_bound
from t10.cost.bound.maps import (
    addition_bound,
    chunk_map_bound,
    map_bound,
    single_term_bound,
    window_map_bound,
)
from t10.cost.bound.point_map import QUAD
from t10.cost.bound.product import product_bound
from t10.cost.bound.reduction import reduction_bound
from t10.cost.bound.scalar import scalar_bound
from t10.cost.bound.windows import windows_bound
from t10.cost.combine import combine_operator

LEAST_CYCLES = 54
"""No codelet takes fewer: `runall` and `sync`, and a worker's share, pointers and end."""
VECTOR_RATE = 8
"""Points a cycle on the vector unit that no code exceeds."""
WORD_BYTES = 4
PLACE_CYCLES = 240
"""How much less sums at another place take than those at the first one, at most."""
EVEN_SLOTS = 8
"""So many elements of any type make whole words of eight bytes."""
SINGLE_SHARE = 12
"""How much less a look-up takes at least where columns to look up are rows, since there is one."""
SLACK_CYCLES, SLACK_PART = 24, 64
"""What code may take less than families' formulas say, in cycles and as one of so many parts."""


def sub_task_bound(
    spec: OperatorSpec,
    boxes: Boxes,
    *,
    is_whole: bool = False,
    windows: Sequence[Boxes] | None = None,
    extents: Boxes | None = None,
    adds: bool = False,
) -> Column:
    """Return cycles that no sub-task over `boxes`, (n, axes), falls below, whatever windows they lie in.

    With `is_whole` windows are as large as the box, and sums begin: what plans do in which nothing rotates. Rotatable
    operands lie in `windows`, (n, axes) of each, where those are known. Where it `adds`, sums go on; else they may.
    Axes have `extents`, (n, axes), those of the operator where they are left out; otherwise the bound asks only which
    of its axes have one point.
    """
    if spec.selectors:
        return _selected(spec, boxes, is_whole)
    if not spec.reduction_axes:
        rows = map_bound(spec, boxes, is_whole=is_whole)
        rows = scalar_bound(spec, boxes, is_whole=is_whole) if rows is None else rows
        return _loosely(spec, boxes) if rows is None else rows
    placeless = replace(spec, body=_without_places(spec.body))
    whole = None if is_whole else Table(*spec.extents) if extents is None else extents
    picking = picking_axes(spec.body)
    if picking:
        sums = _picked_sums(spec, boxes, whole, windows, picking, adds=adds)
    else:
        sums = _sums(placeless, boxes, whole, windows, adds=adds)
    rows = _loosely(spec, boxes) if sums is None else sums
    # What sums one term is no sum.
    is_single = product(boxes, spec.reduction_axes) == 1
    return chosen(is_single, single_term_bound(spec, boxes, is_whole=is_whole), rows)


def _loosely(spec: OperatorSpec, boxes: Boxes) -> Column:
    return LEAST_CYCLES + product(boxes, tuple(range(len(spec.axes)))) // VECTOR_RATE


def in_registers(spec: OperatorSpec) -> OperatorSpec:
    """Return an operator as it is computed without the matrix engine: a sum in registers is rounded once."""
    return replace(spec, body=summed(spec.body)) if hands_on_rounded(spec) else spec


def _without_places(body: ScalarFunction) -> ScalarFunction:
    """Return a body that takes no longer: where it asks where it is, it is told a constant.

    Of what it picks by a place, the shortest counts.
    """
    for axis in picking_axes(body):
        body = min(
            (picked(body, axis, place) for place in range(MOST_PLACES)), key=lambda each: len(each.ops)
        )
    ops = [replace(op, opcode="const", attribute="0") if op.opcode == "index" else op for op in body.ops]
    return replace(body, ops=tuple(ops))


def _sums(
    spec: OperatorSpec, boxes: Boxes, extents: Boxes | None, windows: Sequence[Boxes] | None, *, adds: bool
) -> Column | None:
    """Return the bound of sums on the matrix engine, the vector unit or in scalar loops, None where none is known."""
    plain = in_registers(spec)
    reduced = reduction_bound(plain, boxes, initial=not adds, extents=extents)
    ways = [
        product_bound(spec, boxes, extents=extents, windows=windows, adds=adds),
        None if adds else dots_bound(spec, boxes),
        None if adds else windows_bound(spec, boxes),
        scalar_bound(plain, boxes) if reduced is None else reduced,
    ]
    cycles = _least(ways)
    if cycles is None:
        return None
    cycles = np.maximum(cycles - cycles // SLACK_PART - SLACK_CYCLES, LEAST_CYCLES)
    if size_bytes(spec.acc_dtype) > 1:
        return cycles
    # Less than a word of bytes is written in ways of its own.
    n_results = product(
        boxes, tuple(axis for axis in range(len(spec.axes)) if axis not in spec.reduction_axes)
    )
    return chosen(n_results < WORD_BYTES, LEAST_CYCLES, cycles)


def _picked_sums(
    spec: OperatorSpec,
    boxes: Boxes,
    extents: Boxes | None,
    windows: Sequence[Boxes] | None,
    picking: Sequence[int],
    *,
    adds: bool,
) -> Column | None:
    """Return the bound of sums that are others at every place along some axes: one after another, or side by side."""

    def at_one(table: Boxes) -> Table:
        return Table(*(1 if axis in picking else table[:, axis] for axis in range(len(spec.axes))))

    bodies = [spec.body]
    for axis in picking:
        bodies = [picked(body, axis, place) for body in bodies for place in range(MOST_PLACES)]
    some = None if windows is None else [at_one(each) for each in windows]
    whole = None if extents is None else at_one(extents)
    placeless = [replace(spec, body=_without_places(body)) for body in dict.fromkeys(bodies)]
    found = [_sums(each, at_one(boxes), whole, some, adds=adds) for each in placeless]
    one = None if any(each is None for each in found) else _least(found)
    if one is None:
        return None
    n_places = product(boxes, tuple(picking))
    n_results = product(boxes, tuple(a for a in range(len(spec.axes)) if a not in spec.reduction_axes))
    more = np.maximum(one - PLACE_CYCLES, 0) * (n_places - 1)
    return one + chosen(n_results <= N_WORKERS, 0, more)


def _least(bounds: Sequence[Column | None]) -> Column | None:
    """Return the least of those bounds that there are, None where there are none."""
    found = [bound for bound in bounds if bound is not None]
    return reduce(np.minimum, found) if found else None


def _selected(spec: OperatorSpec, boxes: Boxes, is_whole: bool) -> Column:
    """Return the bound of a sub-task with selectors."""
    scalar = scalar_bound(spec, boxes, is_whole=is_whole)
    if scalar is None:
        return LEAST_CYCLES + boxes[:, 0] * 0
    rows = gather_bound(spec, boxes, is_whole=is_whole)
    if rows is not None:
        return chosen(rows[0], rows[1], scalar)
    selected = frozenset(selector.axis for selector in spec.selectors)
    if not any(selected & operand.axes and operand.axes - selected for operand in spec.inputs):
        return scalar
    # A table of one column is one of rows.
    is_single = product(boxes, tuple(selected)) == 1
    return chosen(is_single, scalar // SINGLE_SHARE, scalar)


def epilogue_bound(
    spec: OperatorSpec, n_slots: Column, runs: Column, n_members: Column, launch_cycles: int = 0
) -> Column:
    """Return cycles that no epilogue on `n_slots` elements falls below, `runs` of which lie in an even row.

    They are all of a window that a core has alone, or a chunk of one that `n_members` cores have sums of. Launches are
    left out but for those between the parts of a chunk.
    """
    has_places = spec.epilogue is not None and bool(epilogue_axes(spec))
    if spec.epilogue is not None and has_places:
        # What ends a row of such code is not known: rows are taken to be one, of whole vectors.
        spec = replace(spec, epilogue=_without_places(spec.epilogue))
        n_slots = chosen(n_slots < QUAD, 1, n_slots // QUAD * QUAD)
        runs = n_slots
    window, chunk = window_map_bound(spec, n_slots, runs), chunk_map_bound(spec, n_slots, runs, launch_cycles)
    if window is None or chunk is None:
        return LEAST_CYCLES + n_slots // VECTOR_RATE
    cycles = np.maximum(chosen(n_members == 1, window, chunk), LEAST_CYCLES)
    # An index is there already where a constant in its place would have to be loaded.
    return chosen(n_slots == 1, LEAST_CYCLES, cycles) if has_places else cycles


def combine_bound(spec: OperatorSpec, n_parts: Column, n_slots: Column, *, is_whole: bool = False) -> Column:
    """Return cycles that no combining of `n_parts` parts of `n_slots` elements with what is there falls below.

    With `is_whole` a core's own part is one of several, and their sum replaces what is there.
    """
    one = combine_operator(spec.acc_dtype, spec.combine)
    # Whole parts begin at even places: what is odd about them is left out.
    boxes = Table(n_parts, n_slots // EVEN_SLOTS * EVEN_SLOTS if is_whole else n_slots)
    sums = reduction_bound(one, boxes, initial=is_whole, extents=Table(*one.extents))
    addition = addition_bound(spec, n_slots)
    if sums is None or addition is None:
        return LEAST_CYCLES + n_parts * n_slots // VECTOR_RATE
    if is_whole:
        sums = chosen(n_slots < EVEN_SLOTS, LEAST_CYCLES, sums)
    least = chosen(n_parts == 1, addition, sums)
    # Less than a word of bytes is read and written in ways of its own.
    return chosen(n_slots < WORD_BYTES, LEAST_CYCLES, least) if size_bytes(spec.acc_dtype) == 1 else least
