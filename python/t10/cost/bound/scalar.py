"""Lower bounds of scalar loops (`t10.codelets.loops`): point by point, by the shortest way through their code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, reduce
from itertools import permutations

import numpy as np

from t10.codelets.loops.family import LoopFamily
from t10.codelets.loops.picking import picked_axes
from t10.codelets.nest import simplified
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.tile import N_WORKERS
from t10.cost.bound.columns import Boxes, Column, busiest, chosen, product
from t10.cost.bound.paths import LAUNCH_CYCLES, SLOT_CYCLES, least_slots, loop, own_lines
from t10.cost.bound.walks import axis_order, united_loops
from t10.cost.work import sub_task

POINTS, TERMS, SELECTED = 48, 6, 16
"""Extents of the boxes that the generator is asked about."""
SKIP = ".LSkip"
CASTS = frozenset({"arith.index_cast", "arith.extsi"})
"""Operations of an index that leave it where it is."""


@dataclass(frozen=True, slots=True)
class LoopCosts:
    """The least slots of scalar loops once, of an output beside its terms, and of a term.

    A single output takes `alone` beside its terms, each of which takes `alone_term`. A pass of a loop around another
    one takes `row` besides.
    """

    start: int
    output: int
    term: int
    alone: int
    alone_term: int = 0
    row: int = 0


COSTS = tuple(field.name for field in fields(LoopCosts))


def scalar_bound(spec: OperatorSpec, boxes: Boxes, *, is_whole: bool = False) -> Column | None:
    """Return cycles that scalar loops over `boxes` do not fall below; None where they cannot compute a step.

    With `is_whole` operands are as large as the box, which says what is one loop.
    """
    walked = _walked(spec)
    single, costs = _costs(spec, ()), _costs(spec, walked)
    if single is None or costs is None:
        return None
    points = product(boxes, tuple(sorted(spec.output.axes)))
    outputs = -(-points // N_WORKERS)
    terms = product(boxes, walked)
    around: Column = 0
    if is_whole and axis_order(spec.output):
        order = axis_order(spec.output)
        extents = [loop.extent for loop in united_loops(boxes, order, (*spec.inputs, spec.output))]
        outputs = busiest(extents)
        longest = reduce(np.maximum, extents)
        # What begins the first row is not known to take as long as going on to the next.
        around = chosen(longest == points, 0, np.maximum(outputs // longest - 1, 0) * costs.row)
    slots = costs.start + outputs * (costs.output + terms * costs.term) + around
    if walked:
        # What has one term is no sum.
        slots = chosen(terms == 1, single.start + outputs * single.output + around, slots)
    # A single output is no loop.
    alone = (
        chosen(terms == 1, single.alone, costs.alone + terms * costs.alone_term) if walked else single.alone
    )
    slots = chosen(points == 1, np.minimum(slots, alone), slots)
    return LAUNCH_CYCLES + SLOT_CYCLES * slots


@lru_cache(maxsize=1024)
def _walked(spec: OperatorSpec) -> AxisSizes:
    """Return the reduced axes that loops walk: those that are not looked up."""
    picked = picked_axes(sub_task(spec, (2,) * len(spec.axes), simplify=False))
    return tuple(axis for axis in spec.reduction_axes if axis not in picked)


@lru_cache(maxsize=1024)
def _costs(spec: OperatorSpec, walked: AxisSizes) -> LoopCosts | None:
    """Return what scalar loops take over outputs along any axis, and over one of the `walked` ones if there are any.

    Along an axis of one point an operand may need a look at its bounds that no step of the operator takes.
    """
    order = [axis for dim in spec.output.dims for axis in dim.axes]
    axes = [axis for axis in order if spec.axes[axis].extent > 1] or order[-1:]
    never = (".LEnd", SKIP) if _is_found(spec) else (".LEnd",)
    found = [_costs_along(spec, (axis,), walked[-1:], never) for axis in axes] or [
        _costs_along(spec, (), walked[-1:], never)
    ]
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    least = LoopCosts(*(min(getattr(each, name) for each in known) for name in COSTS))
    rows = _rows(spec, order, never) if order else []
    start = min([least.start, *(start for start, _ in rows)])
    return replace(least, start=start, row=max(min((row for _, row in rows), default=0), 0))


def _costs_along(
    spec: OperatorSpec, axes: AxisSizes, walked: AxisSizes, never: Sequence[str]
) -> LoopCosts | None:
    """Return what scalar loops take over outputs along an axis, or for the only one there is."""
    many, one = (_code(spec, axes, n_points, walked) for n_points in (POINTS, 1))
    if many is None or one is None:
        return None
    total, alone = (least_slots(lines, 0, lines.index(".LEnd:"), *never) + 1 for lines in (many, one))
    alone_term = least_slots(one, *loop(one, ".LLevel0"), *never) if walked else 0
    if not axes:
        return LoopCosts(0, total - alone_term, alone_term, alone - alone_term, alone_term)
    output = least_slots(many, *loop(many, ".LLevel0"), *never)
    term = least_slots(many, *loop(many, ".LLevel1"), *never) if walked else 0
    return LoopCosts(total - output, output - term, term, alone - alone_term, alone_term)


def _rows(spec: OperatorSpec, order: Sequence[int], never: Sequence[str]) -> list[tuple[int, int]]:
    """Return the least slots once, and of a pass of a loop over outputs around another one, by pairs of axes."""
    found: list[tuple[int, int]] = []
    for outer, inner in permutations(order, 2):
        lines = _code(spec, (outer, inner), POINTS, ())
        # Where one is nothing but more of the other there is one loop.
        if lines is not None and ".LLevel1:" in lines:
            total = least_slots(lines, 0, lines.index(".LEnd:"), *never) + 1
            passed = least_slots(lines, *loop(lines, ".LLevel0"), *never)
            output = least_slots(lines, *loop(lines, ".LLevel1"), *never)
            found.append((total - passed, passed - output))
    return found


def _is_found(spec: OperatorSpec) -> bool:
    """Return whether every index finds its point where steps are priced: it is looked up as it is."""
    picked = picked_axes(sub_task(spec, (2,) * len(spec.axes), simplify=False))
    ops = [op.opcode for selector in spec.selectors for op in selector.index.ops]
    return len(spec.selectors) == 1 and spec.selectors[0].axis in picked and CASTS.issuperset(ops)


def _code(spec: OperatorSpec, rows: Sequence[int], n_points: int, sums: AxisSizes) -> list[str] | None:
    """Return the lines of loops over one axis of outputs, and one of terms."""
    extents = dict.fromkeys(range(len(spec.axes)), 1)
    extents |= dict.fromkeys((axis for axis in spec.reduction_axes if axis not in _walked(spec)), SELECTED)
    extents |= dict.fromkeys(rows, n_points) | dict.fromkeys(sums, TERMS)
    compiled = LoopFamily().compile(simplified(sub_task(spec, tuple(extents.values()), simplify=False)))
    return None if compiled is None else own_lines(compiled.codelet)
