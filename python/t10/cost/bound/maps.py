"""Lower bounds of maps: elementwise tasks and epilogues, which run along rows of vectors (`t10.codelets.vector`).

Workers share the columns of a row, whole rows, or all points; or rows run across the dense axis. What a turn, a row and
a beginning take is asked of the generator, once per function and per way that operands lie along a row. Operands may
lie in longer windows than the box: loops are united where they may be, which takes the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, reduce

import numpy as np

from t10.codelets.count import cycles_of
from t10.core.dtypes import size_bytes
from t10.core.expression import Operand, OperatorSpec
from t10.core.fused_ends import FLOATS, OPCODES, with_addition
from t10.core.scalar import identity
from t10.core.tile import N_WORKERS
from t10.core.vertex_nest import Lie
from t10.cost.bound.columns import Boxes, Column, chosen, product
from t10.cost.bound.paths import LAUNCH_CYCLES, SLOT_CYCLES
from t10.cost.bound.point_map import NO_AXIS, PAIR, QUAD, Map
from t10.cost.bound.row_costs import (
    BEYOND,
    LEAST_START,
    RowCosts,
    aligned_costs,
    alone_slots,
    least_apart,
    least_of,
    quads,
    row_costs,
    selected,
)
from t10.cost.bound.walks import axis_order, innermost, united_loops
from t10.cost.combine import combine_operator
from t10.cost.work import end
from t10.errors import UnsupportedOpError

WORD_BYTES = 4
"""What is longer is copied word by word."""
FLAT_ROW = 2
"""Slots of a row, beside those of a row that is not cut, where workers share all points."""
LEAST_PART = LEAST_START - 2
"""Slots before a worker's part of a row, of any code."""
TAIL_ROW, HEAD_ROW = 2, 6
"""Slots of a row with points left over at its end, and of one that may begin within a word, beside those points."""
MOST_LEVELS = 1
"""How many innermost axes of one point are looked behind."""
SHORT_SLOTS = 2
"""Slots that the addition of a few vectors may take less than rows say."""
ONE_PAIR_SLOTS = 4
"""Slots that a pair alone takes beside those of a pair among others."""
SHORT_ROWS = 2
"""Slots that rows of less than four points may take less than rows with fours and a rest say."""
ODD_CYCLES = 24
"""What an epilogue over a part of no whole vectors may take less."""


def map_bound(spec: OperatorSpec, boxes: Boxes, *, is_whole: bool = False) -> Column | None:
    """Return cycles that no sub-task falls below that computes every output from one point; None where unknown.

    With `is_whole` operands are as large as the box.
    """
    one = Map.of_sub_task(spec)
    if not _is_computed(one):
        return None
    if not spec.body.ops and size_bytes(spec.output.dtype) > WORD_BYTES:
        slots = _loose_slots(one, product(boxes, axis_order(spec.output)))
    else:
        slots = _map_slots(one, boxes, is_whole)
    return LAUNCH_CYCLES + SLOT_CYCLES * _or_alone(one, slots, product(boxes, axis_order(spec.output)))


def single_term_bound(spec: OperatorSpec, boxes: Boxes, *, is_whole: bool = False) -> Column:
    """Return cycles that no sub-task falls below whose sums have one term each: a map, of which some begin sums."""
    reduced = frozenset(spec.reduction_axes)

    single = replace(spec, inputs=tuple([_operand_without(operand, reduced) for operand in spec.inputs]))
    one, points = Map.of_sub_task(single), product(boxes, axis_order(spec.output))
    if not _is_computed(one):
        return LAUNCH_CYCLES + SLOT_CYCLES * _or_alone(one, _loose_slots(one, points), points)
    slots = _map_slots(one, boxes, is_whole)
    if not is_whole and any(reduced & operand.axes for operand in spec.inputs):
        # Windows may be longer along what is summed.
        slots = np.minimum(slots, _apart_slots(one, points))
    return LAUNCH_CYCLES + SLOT_CYCLES * _or_alone(one, slots, points)


def _or_alone(one: Map, slots: Column, points: Column) -> Column:
    """Return slots of so many points, fewer where one worker may do them alone."""
    for n_points, alone in enumerate(alone_slots(one), 1):
        slots = chosen(points == n_points, np.minimum(slots, alone), slots)
    return slots


def _operand_without(operand: Operand, axes: frozenset[int]) -> Operand:
    """Return an operand that does not move along some axes."""
    dims = [
        replace(dim, terms=tuple(term for term in dim.terms if term.axis not in axes)) for dim in operand.dims
    ]
    return replace(operand, dims=tuple(dims))


def _without(one: Map, axes: frozenset[int]) -> Map:
    """Return a map where some axes have one point."""
    return replace(one, operands=tuple([_operand_without(operand, axes) for operand in one.operands]))


def _map_slots(one: Map, boxes: Boxes, is_whole: bool, n_levels: int = MOST_LEVELS) -> Column:
    """Return slots that no code for boxes of a map falls below."""
    points = product(boxes, axis_order(one.operands[-1]))
    loose, found = _loose_slots(one, points), row_costs(one)
    if found is None:
        return loose
    row, rest = innermost(united_loops(boxes, axis_order(one.operands[-1]), one.operands))
    groups = tuple(loop.extent for loop in reversed(rest))
    some, many = found
    if some != many:
        n_loops: Column = 0
        for group in groups:
            n_loops = n_loops + chosen(group > 1, 1, 0)
        some = selected(n_loops >= len(one.chains) - 1, many, some)
    outer = [boxes[:, axis] for chain in one.chains[:-1] for axis in chain]
    slots = _slots(one, some, row.extent, groups, outer)
    last = one.chains[-1][-1]
    if one.chains[-1] == NO_AXIS:
        return slots
    if not is_whole and len(axis_order(one.operands[-1])) > 1:
        # In longer windows what is one row may be several, of which workers take one each.
        is_united = row.extent > boxes[:, last]
        slots = chosen(is_united, np.minimum(slots, _any_rows(one, some, points)), slots)
    if n_levels:
        # Along another axis than the last, windows may leave other elements between neighbours.
        inner = one.within(last)
        loose = _map_slots(inner, boxes, is_whole, n_levels - 1)
        if not is_whole:
            loose = np.minimum(loose, _apart_slots(inner, points))
    return chosen(boxes[:, last] > 1, slots, loose)


def _apart_slots(one: Map, points: Column) -> Column:
    """Return slots that no code falls below where elements of an operand are no neighbours along rows."""
    share = -(-points // N_WORKERS)
    return LEAST_START + 2 * len(one.operands) + np.maximum(share - 1, 0) * least_apart(one)


def addition_bound(spec: OperatorSpec, n_slots: Column) -> Column | None:
    """Return cycles that no addition of one part of `n_slots` elements to what is there falls below.

    Where the epilogue does it, the sum need not take the place of what was there.
    """
    part = combine_operator(spec.acc_dtype, spec.combine)
    ways = [Map.of(part.body, (part.output, part.output), part.extents, spec.combine)]
    if spec.combine in OPCODES and spec.acc_dtype in FLOATS:
        added = with_addition(identity(), spec.combine, spec.acc_dtype)
        ways.append(Map.of(added, (part.output,) * 3, part.extents, "none"))
    found: list[Column] = []
    for one in ways:
        costs = aligned_costs(one)
        if not costs:
            return None
        slots = reduce(np.minimum, [_slots(one, each, n_slots, is_aligned=True) for each in costs])
        found.append(LAUNCH_CYCLES + SLOT_CYCLES * _or_alone(one, slots - SHORT_SLOTS, n_slots))
    return reduce(np.minimum, found)


def window_map_bound(spec: OperatorSpec, n_slots: Column, runs: Column) -> Column | None:
    """Return cycles that no epilogue over a window of `n_slots` falls below, `runs` of which lie in an even row.

    Results take the place of accumulators of their type. What the loops around a row are is not said: those count for
    which it takes the least.
    """
    one = replace(Map.of_epilogue(spec), is_in_place=spec.acc_dtype == spec.output.dtype)
    if not _is_computed(one):
        return None
    cycles, point = _epilogue_cycles(one, n_slots, runs), _point_cycles(spec)
    return cycles if point is None else chosen(n_slots == 1, point, cycles)


@lru_cache(maxsize=1024)
def _point_cycles(spec: OperatorSpec) -> int | None:
    """Return the cycles of an epilogue of one point, in the place of its accumulator or not; None if not known."""
    window = (1,) * len(spec.axes)
    try:
        counts = [
            cycles_of(end(spec, window, lie)) for lie in (None, Lie.best(len(spec.epilogue_inputs) + 2))
        ]
    except UnsupportedOpError:
        return None
    known = [each for each in counts if each is not None]
    return min(known) if len(known) == len(counts) else None


def chunk_map_bound(
    spec: OperatorSpec, n_slots: Column, runs: Column, launch_cycles: int = 0
) -> Column | None:
    """Return cycles that no epilogue over chunks of windows falls below: `n_slots`, one or an even number.

    That of the first core counts, whose chunk begins with a row: whole rows, and in a launch of its own what is left of
    one. Its code is for all cores, and their chunks may begin within eight bytes.
    """
    one = Map.of_epilogue(spec)
    if not _is_computed(one):
        return None
    even = np.maximum(n_slots // one.lanes * one.lanes, 1)
    whole = _epilogue_cycles(one, even, np.minimum(runs, even))
    if len(one.chains) > 1:
        left = n_slots % runs
        rest = launch_cycles + _epilogue_cycles(one, np.maximum(left, 1), np.maximum(left, 1))
        rows = _epilogue_cycles(one, n_slots - left, runs) + chosen(left > 0, rest - ODD_CYCLES, 0)
        whole = np.minimum(rows, whole) if _may_join(one) else rows
    found = row_costs(one)
    few = 0 if found is None else _last_slots(found[0], n_slots)
    single = LAUNCH_CYCLES + SLOT_CYCLES * _or_alone(one, LEAST_START + 2 * len(one.operands) + few, n_slots)
    return chosen(n_slots < one.lanes, single, whole - chosen(n_slots % one.lanes == 0, 0, ODD_CYCLES))


def _last_slots(costs: RowCosts, points: Column) -> Column:
    """Return slots of what is less than a vector: a pair in one word may take less than a single point of it."""
    return chosen(points % PAIR == 0, np.minimum(costs.single, costs.pair + ONE_PAIR_SLOTS), costs.single)


def _epilogue_cycles(one: Map, n_slots: Column, runs: Column) -> Column:
    """Return cycles that no epilogue falls below over rows of `runs`."""
    found = () if one.may_stride(one.chains[-1][-1]) else aligned_costs(one)
    if not found:
        # Runs do not say whether an operand lies in another order.
        return LAUNCH_CYCLES + SLOT_CYCLES * _or_alone(one, _loose_slots(one, n_slots), n_slots)
    if len(one.chains) == 1:
        slots = reduce(np.minimum, [_slots(one, each, n_slots, is_aligned=True) for each in found])
        return LAUNCH_CYCLES + SLOT_CYCLES * _or_alone(one, slots, n_slots)
    costs = least_of(found)
    n_rows = np.maximum(n_slots // runs, 1)
    outer = (n_rows,) if len(one.chains) == 2 and len(one.chains[0]) == 1 else ()
    rows = _slots(one, costs, runs, (n_rows,), outer, is_aligned=True)
    slots = chosen(runs == 1, np.maximum(_loose_slots(one, n_slots), _outer_slots(one, n_slots)), rows)
    if _may_join(one):
        # Where an axis between is of one point, rows may go on further.
        slots = np.minimum(slots, _slots(one, costs, n_slots, is_aligned=True))
    return LAUNCH_CYCLES + SLOT_CYCLES * _or_alone(one, slots, n_slots)


def _outer_slots(one: Map, points: Column) -> Column:
    """Return slots that no code falls below for rows along another axis than the last, of which there is one point."""
    if len(one.chains) == 2:
        # What is left is dense: windows are no longer than what they are computed on.
        single = _without(one, frozenset(one.chains[-1]))
        aligned = () if single.may_stride(single.chains[-1][-1]) else aligned_costs(single)
        if aligned:
            return reduce(np.minimum, [_slots(single, each, points, is_aligned=True) for each in aligned])
    found: list[RowCosts] = []
    while one.chains[-1] != NO_AXIS:
        one = one.within(one.chains[-1][-1])
        costs = None if one.may_stride(one.chains[-1][-1]) else row_costs(one)
        if costs is None:
            return LEAST_START
        found += costs
    return _any_rows(one, least_of(found), points)


def _any_rows(one: Map, least: RowCosts, points: Column) -> Column:
    """Return slots that no code falls below however points make rows."""
    many = np.minimum(
        least.start + np.minimum(least.row, least.left), np.minimum(least.part, least.part_left)
    )
    once = np.minimum(np.minimum(least.one, least.one_left), many)
    evens = (least.whole, least.part_whole, least.even_quad, PAIR * least.even_pair, QUAD * least.even_point)
    quad = reduce(np.minimum, (*evens, least.odd_quad, PAIR * least.odd_pair, QUAD * least.odd_point))
    few = LEAST_START + 2 * len(one.operands) + least.single
    return np.minimum(few, once) + -(-points // N_WORKERS) // QUAD * quad


def _may_join(one: Map) -> bool:
    """Return whether rows may go on where axes between are of one point, or where all outer axes count as one."""
    outer, last = [axis for chain in one.chains[:-1] for axis in chain], one.chains[-1][-1]
    is_one_loop = all(bool(o.axes.intersection(outer)) == (last in o.axes) for o in one.operands)
    return is_one_loop or any(
        all((axis in o.axes) == (last in o.axes) for o in one.operands) for axis in outer
    )


def _slots(
    one: Map,
    costs: RowCosts,
    run: Column,
    groups: Sequence[Column] = (),
    outer: Sequence[Column] = (),
    *,
    is_aligned: bool = False,
) -> Column:
    """Return the slots of the busiest worker, whatever workers share; `outer` are the axes around rows if known.

    `is_aligned`: operands begin at whole vectors.
    """
    n_rows: Column = run * 0 + 1
    for group in groups:
        n_rows = n_rows * group
    is_one = n_rows == 1
    quad = _quad(costs, run, is_one)
    once = chosen(run % one.lanes == 0, costs.one, costs.one_left)
    once = once + _columns(costs, run, quad, costs.one_pair)
    # Less than a vector needs no pipeline, and a single point is the same along every row.
    few = costs.point if is_aligned else LEAST_START + 2 * len(one.operands) + _last_slots(costs, run)
    one_row = chosen(run < (PAIR if is_aligned else QUAD), few, once)
    if not groups:
        return one_row
    row = chosen(run % QUAD == 0, costs.row, costs.left)
    whole_row = row + _row_points(one, costs, run)
    # Shares of rows begin at whole words, and so do those of columns.
    per_word = max(QUAD // one.out_bytes, 1)
    by_rows, within = n_rows, run
    for group in reversed(groups):
        unit: Column = 1
        for n in (2, 4):
            unit = chosen(within % (per_word * 2 // n) == 0, unit, n) if n <= per_word else unit
        most = np.minimum(-(-group // (N_WORKERS * unit)) * unit, group)
        by_rows, within = np.minimum(by_rows, most * (n_rows // group)), within * group
    shared = np.minimum(
        n_rows * (row + _columns(costs, run, quad, costs.pair)),
        _flat(run, n_rows, quad, row, whole_row),
    )
    parts = _parts(one, costs, run, n_rows, quad)
    if per_word > 1:
        shared, parts = (chosen(run % per_word == 0, each, BEYOND) for each in (shared, parts))
    ways = np.minimum(costs.start + np.minimum(by_rows * whole_row, shared), parts)
    if costs.has_across:
        ways = np.minimum(ways, _across(one, costs, run, n_rows, outer))
    # Code for rows of less than four points looks for no fours (`RowNest.is_short`).
    ways = ways - chosen(run < QUAD, SHORT_ROWS, 0)
    return chosen(is_one, one_row, ways)


def _quad(costs: RowCosts, run: Column, is_one: Column) -> Column:
    """Return the slots of four points of rows that several workers share."""
    even = np.minimum(np.minimum(costs.even_quad, PAIR * costs.even_pair), QUAD * costs.even_point)
    odd = np.minimum(np.minimum(costs.odd_quad, PAIR * costs.odd_pair), QUAD * costs.odd_point)
    is_whole = np.logical_or(run % QUAD == 0, is_one)
    return chosen(is_whole, costs.whole, chosen(run % PAIR == 0, even, odd))


def _parts(one: Map, costs: RowCosts, run: Column, n_rows: Column, quad: Column) -> Column:
    """Return the slots of the busiest worker where each takes a part of one of a few rows."""
    workers = np.maximum(N_WORKERS // n_rows, 1)
    whole = chosen(run % one.lanes == 0, costs.part, costs.part_left)
    quad = chosen(run % QUAD == 0, costs.part_whole, quad)
    slots = whole + _columns(costs, run, quad, costs.pair, workers)
    few = LEAST_PART + 2 * len(one.operands) + _last_slots(costs, run)
    return chosen(n_rows > N_WORKERS, BEYOND, chosen(run < QUAD, few, slots))


def _columns(costs: RowCosts, run: Column, quad: Column, pair: Column, workers: Column = N_WORKERS) -> Column:
    """Return the slots of the points of a row for the busiest of the workers that share its columns."""

    def points(n: Column) -> Column:
        return n // QUAD * quad + n % QUAD // PAIR * pair + n % PAIR * costs.single

    share = np.minimum(-(-run // (workers * QUAD)) * QUAD, run)
    last = run - (-(-run // share) - 1) * share
    return np.maximum(points(share), points(last))


def _row_points(one: Map, costs: RowCosts, run: Column) -> Column:
    """Return the slots of the points of a whole row.

    A row of no whole vectors has a part that is done singly, and where it begins within a word, another one.
    """
    begins = TAIL_ROW + (HEAD_ROW if one.out_bytes == 2 else 0)
    quads, pairs = run // QUAD, run // PAIR
    odd = np.minimum(
        quads * costs.odd_quad + run % QUAD * costs.single, pairs * costs.odd_pair + costs.single
    )
    odd = np.minimum(odd + begins, run * costs.odd_point)
    even = np.minimum(quads * costs.even_quad + PAIR * costs.single + TAIL_ROW, pairs * costs.even_pair)
    even = np.minimum(even, run * costs.even_point)
    return chosen(run % QUAD == 0, quads * costs.whole, chosen(run % PAIR == 0, even, odd))


def _flat(run: Column, n_rows: Column, quad: Column, row: Column, whole_row: Column) -> Column:
    """Return the slots of the busiest worker where workers share all points, rows padded to whole vectors."""
    padded = -(-run // QUAD) * QUAD
    flat = -(-(n_rows * padded) // (N_WORKERS * QUAD)) * QUAD
    part = flat % padded
    crossed = flat // padded * (whole_row + FLAT_ROW)
    return crossed + chosen(part > 0, row + FLAT_ROW, 0) + part // QUAD * quad


def _across(one: Map, costs: RowCosts, run: Column, n_rows: Column, outer: Sequence[Column]) -> Column:
    """Return the slots of the busiest worker where rows run along some of the `outer` axes."""
    chunks = run // one.lanes
    if 0 < len(outer) <= 2:
        result: Column = BEYOND
        for extent in (*outer, n_rows) if len(outer) == 2 else outer:
            share = -(-(chunks * (n_rows // extent)) // N_WORKERS)
            slots = share * (costs.across_row + extent * costs.across)
            result = np.minimum(result, chosen(extent > 1, slots, BEYOND))
    else:
        result = (
            -(-chunks // N_WORKERS) * costs.across_row + -(-(chunks * n_rows) // N_WORKERS) * costs.across
        )
    return chosen(run % one.lanes == 0, costs.across_start + result, BEYOND)


def _loose_slots(one: Map, points: Column) -> Column:
    """Return slots that no code for so many points falls below, whichever axis its rows run along."""
    return LEAST_START + -(-points // N_WORKERS) * _least_quad(one) // QUAD


def _least_quad(one: Map) -> int:
    """Return the least slots of four points along rows of any axis, at least 1.

    Where elements are not neighbours, loops are drained: the first and the last turn take less than others.
    """
    return max(min((slots for slots in quads(one) if slots is not None), default=1) * 3 // 4, 1)


def _is_computed(one: Map) -> bool:
    """Return whether the generator computes a map in some way."""
    return any(slots is not None for slots in quads(one))
