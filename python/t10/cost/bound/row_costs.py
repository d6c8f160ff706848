"""What code of maps takes along rows, asked of its generator (`t10.codelets.vector`): issue slots by parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import combinations

from t10.codelets.body.select import Unselectable
from t10.codelets.body.virtual import Instruction
from t10.codelets.body.words import is_in_words
from t10.codelets.vector.draft import Draft, packs
from t10.codelets.vector.emit import Emitter, turn
from t10.codelets.vector.family import (
    LANES_NARROW,
    REFUSED,
    accessed_together,
    best_way,
    drafted,
    drafted_by_fours,
    prepared_nest,
)
from t10.codelets.vector.nest import (
    MOST_ALONE,
    Effort,
    RowNest,
    Split,
    across_nest,
    nest_of,
    rows_of,
    skeleton,
)
from t10.codelets.vector.schedule import Scheduled, least_cost
from t10.core.expression import AxisSizes
from t10.cost.bound.columns import Column, chosen
from t10.cost.bound.point_map import OUTER_POINTS, PAIR, QUAD, Map, box_of, task_of
from t10.errors import UnsupportedOpError

BEYOND = 1 << 40
"""Slots of a way that cannot be taken."""
SPLITS: frozenset[Split] = frozenset(("columns", "rows", "flat"))
SLACK = 2
"""Slots by which the same code may be shorter among other loops."""
LEAST_ALONE = 7
"""Slots of what one worker does alone: its number, a branch on it, a pointer, a store and the end."""
LEAST_START, LEAST_ROW = 10, 1
"""Slots before rows, and of a row beside its points, of any code."""
MOST_SUBSET = 2
"""Of more loops around rows, as many are asked about at once."""
LESS_IN_PARTS = 3
"""Slots by which a worker's part of a row is found sooner than its columns."""
PART_POINTS = 2
"""Extents of the loops around rows that are asked about in parts."""
ANOTHER_START = 4
"""Slots of a pointer that begins where the shared loop says, beside those of one that does not."""
MOST_SLOTS = 16
"""Slots of four points up to which it is worth asking how single ones are left over."""
ANOTHER_ROW = 3
"""Slots of a pointer that moves in the innermost loop, and of another one for which it leaves no register."""
ANOTHER_FILL = 4
"""Slots of what fills a pipeline by which schedules of the same instructions differ."""
TURN = ".Lturn"
"""What the label of a loop along a row begins with."""
Lie = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class RowCosts:
    """Issue slots of tasks along rows: none takes fewer.

    `one` and `start` are once, for a single row (`one_left`: not of whole vectors) and for many; `point` is all of a
    single point. `row` is of a row beside its points where it is whole vectors, `left` where it is not. `whole` is of
    four points there; `even_quad` and so on are of turns of four points, two and one in rows of other even lengths,
    `odd_...` in odd ones. `pair` and `single` are of what is left over, `one_pair` in a single row. Those of `across`
    are of rows across the dense axis. `part` and `part_left` are once where every worker takes a part of a row,
    `part_whole` of four points of whole vectors there.
    """

    one: Column = LEAST_START
    one_left: Column = LEAST_START
    point: Column = LEAST_START
    start: Column = LEAST_START
    row: Column = LEAST_ROW
    left: Column = LEAST_ROW
    whole: Column = BEYOND
    even_quad: Column = BEYOND
    even_pair: Column = BEYOND
    even_point: Column = BEYOND
    odd_quad: Column = BEYOND
    odd_pair: Column = BEYOND
    odd_point: Column = BEYOND
    pair: Column = BEYOND
    single: Column = BEYOND
    one_pair: Column = BEYOND
    across_start: Column = BEYOND
    across_row: Column = BEYOND
    across: Column = BEYOND
    part: Column = BEYOND
    part_left: Column = BEYOND
    part_whole: Column = BEYOND

    @property
    def has_across(self) -> bool:
        """Return whether rows may run across the dense axis."""
        return type(self.across) is not int or self.across < BEYOND


FIELDS = tuple(field.name for field in fields(RowCosts))


def row_costs(one: Map) -> tuple[RowCosts, RowCosts] | None:
    """Return what code takes along rows of the last axis: within any of the loops around it, and within all.

    None where the generator does not compute some of that.
    """
    found = [_costs_of(each) for each in _accesses(one)]
    some = [each[0] for each in found if each is not None]
    many = [each[1] for each in found if each is not None]
    return (least_of(some), least_of(many)) if len(some) == len(found) else None


def _accesses(one: Map) -> tuple[Map, ...]:
    """Return a map with every choice of the operands that code accesses at once: none is always the fastest."""
    task = task_of(one, (1,) * len(one.extents))
    return tuple(replace(one, accessed=apart) for apart in dict.fromkeys(accessed_together(task)))


@lru_cache(maxsize=4096)
def _costs_of(one: Map) -> tuple[RowCosts, RowCosts] | None:
    """Return what `row_costs` does for one way to access operands."""
    *outer, axis = (chain[-1] for chain in one.chains)
    try:
        single = _single_row(one, axis)
        subsets = [
            each for n in range(1, min(len(outer), MOST_SUBSET + 1)) for each in combinations(outer, n)
        ]
        found = [each for each in (_rows(one, axis, subset) for subset in subsets) if each is not None]
        many = _rows(one, axis, tuple(outer)) if outer else None
    except (Unselectable, UnsupportedOpError):
        return None
    points_only = RowCosts(
        start=BEYOND, row=BEYOND, left=BEYOND, whole=single.whole, pair=single.pair, single=single.single
    )
    once = {name: getattr(single, name) for name in ("one", "one_left", "one_pair")}
    some = replace(least_of([*found, many or single, points_only]), **once)
    if one.may_stride(axis):
        some, many = _without_strides(some, single), many and _without_strides(many, single)
    if many is None:
        return some, some
    across = {name: getattr(some, name) for name in ("across_start", "across_row", "across")}
    return some, replace(many, **once, **across)


def _without_strides(costs: RowCosts, single: RowCosts) -> RowCosts:
    """Return costs whose parts of rows take no more than a single row does: elements may be neighbours in both."""
    if costs.part == BEYOND:
        return costs
    return replace(
        costs,
        part=min(costs.part, single.one),
        part_left=min(costs.part_left, single.one_left),
        part_whole=min(costs.part_whole, single.whole),
    )


def aligned_costs(one: Map) -> tuple[RowCosts, ...]:
    """Return what code takes whatever loops are around rows, where operands begin at whole vectors, by ways of access.

    There are none where the generator does not compute some of that.
    """
    rows: dict[RowCosts, None] = {}
    for each in _accesses(one):
        found = _costs_of(each)
        if found is None:
            return ()
        rows[replace(found[0], **_aligned_row(each, found[0]))] = None
    return tuple(rows)


@lru_cache(maxsize=4096)
def quads(one: Map) -> tuple[int | None, ...]:
    """Return the least slots of four points along rows of every axis, alone and within loops; None where none are.

    There are none of a map that the generator does not compute.
    """
    axes = [chain[-1] for chain in one.chains]
    is_refused = bool(REFUSED & {each.dtype for each in (*one.operands, *one.function.ops)})
    if is_refused or not is_in_words(task_of(one, box_of(one, axes[-1]))):
        return ()
    boxes = [box_of(one, axis, 0, tuple(axes[:place])) for place, axis in enumerate(axes)]
    found: list[int | None] = []
    for box in dict.fromkeys([*boxes, *(box_of(one, axis) for axis in axes)]):
        nest = _nest(one, box, "rows") or _nest(one, box, "columns")
        try:
            turns = {} if nest is None else _turns(nest)
        except (Unselectable, UnsupportedOpError):
            turns = {}
        found.append(min((slots * QUAD // lanes for lanes, slots in turns.items()), default=None))
    return tuple(found)


@lru_cache(maxsize=4096)
def least_apart(one: Map) -> int:
    """Return the least slots of a point along rows of any axis in which an operand's elements are no neighbours.

    At least 1; of bodies that cannot be computed so nothing more is known.
    """
    found: list[float] = []
    for chain in one.chains:
        for number, operand in enumerate(one.operands):
            if chain[-1] not in operand.axes:
                continue
            task = task_of(one, box_of(one, chain[-1]), apart_operand=number)
            nest = nest_of(task, Effort(), SPLITS - {"columns"})
            try:
                turns = {} if nest is None else _turns((nest, task.apart))
            except (Unselectable, UnsupportedOpError):
                continue
            found += [slots / lanes for lanes, slots in turns.items()]
    return max(int(min(found, default=1)), 1)


@lru_cache(maxsize=4096)
def alone_slots(one: Map) -> tuple[int, ...]:
    """Return the least slots in which one worker does 1, 2, ... points by itself, along rows of any axis."""
    least: list[int] = []
    for n_points in range(1, MOST_ALONE + 1):
        boxes = [
            tuple(n_points if a == chain[-1] else 1 for a in range(len(one.extents))) for chain in one.chains
        ]
        found = [_written_out(each, box) for each in _accesses(one) for box in dict.fromkeys(boxes)]
        least.append(min(found) - SLACK)
    return tuple(least)


def _written_out(one: Map, box: AxisSizes) -> int:
    """Return the slots of code for a few points without loops, at least what any has where there is none."""
    task = task_of(one, box)
    rows = rows_of(task)
    nest = None if rows is None or REFUSED & {operand.dtype for operand in task.operands} else rows.alone()
    try:
        way = None if nest is None else best_way(skeleton(nest), task.apart)
    except (Unselectable, UnsupportedOpError):
        way = None
    if nest is None or way is None:
        return LEAST_ALONE + SLACK
    lines = Emitter(way.applied(nest)).run().lines
    return sum(line.startswith("  ") for line in lines[: lines.index("  exitz $mzero") + 1])


def selected(condition: Column, first: RowCosts, second: RowCosts) -> RowCosts:
    """Return the first where a condition holds, else the second."""
    pairs = [(getattr(first, name), getattr(second, name)) for name in FIELDS]
    return RowCosts(
        *(
            a if a is b or (type(a) is int and type(b) is int and a == b) else chosen(condition, a, b)
            for a, b in pairs
        )
    )


def least_of(costs: Sequence[RowCosts]) -> RowCosts:
    """Return the least of every part."""
    return RowCosts(*(min(getattr(each, name) for each in costs) for name in FIELDS))


@lru_cache(maxsize=4096)
def _aligned_row(one: Map, costs: RowCosts) -> dict[str, Column]:
    """Return what is different along a single row that begins at a whole vector: what is left over is done singly."""
    if costs.whole > MOST_SLOTS:
        return {}
    axis = one.chains[-1][-1]
    cut, pairs = (_nest(one, box_of(one, axis, left), "columns") for left in (1, 2))
    way = None if cut is None else _way(cut)
    if cut is None or pairs is None or way is None or way.draft.lanes != one.lanes or way.draft.tail is None:
        return {}
    if one.lanes == QUAD and _turns(pairs).get(PAIR, BEYOND) < way.cost * PAIR:
        return {}
    start, row, _ = _overheads(way, cut[0])
    single = len(way.single) + _longer(way.draft.tail.instructions) + 1
    pair = 2 * single if one.lanes == QUAD else costs.pair
    left = max(start - LESS_IN_PARTS + row - len(way.single) - 2, 0)
    point = _nest(one, (1,) * len(one.extents), "columns")
    alone = None if point is None else _way(point)
    if point is None or alone is None or alone.draft.tail is None:
        return {"one_left": left, "one_pair": pair}
    start, row, _ = _overheads(alone, point[0])
    return {"one_left": left, "one_pair": pair, "point": start + row + _longer(alone.draft.tail.instructions)}


def _single_row(one: Map, axis: int) -> RowCosts:
    """Return what code takes along a single row of an axis."""
    nest = _nest(one, box_of(one, axis), "columns")
    if nest is None:
        raise Unselectable("no row")
    costs = _turn_costs(one, axis, (), nest)
    start, row, fill = _overheads(_way(nest), nest[0])
    if one.may_stride(axis):
        # Where loads must not run ahead, there is less to begin with.
        strided = _nest(one, box_of(one, axis), "columns", is_wide=True)
        if strided is None:
            raise Unselectable("no row of elements apart")
        other = _overheads(_way(strided), strided[0])
        start, row = min((start, row), other[:2], key=sum)
    start -= LESS_IN_PARTS
    return replace(costs, one=start + row, one_left=max(start + row - fill, 0))


def _rows(one: Map, axis: int, outer: AxisSizes) -> RowCosts | None:
    """Return what code takes along rows of an axis within loops over `outer`; None where there are no such rows."""
    nest = _nest(one, box_of(one, axis, 0, outer), "rows")
    if nest is None:
        return None
    start, row, fill = _overheads(_way(nest), nest[0])
    costs = _turn_costs(one, axis, outer, nest)
    left = max(row - fill, LEAST_ROW)
    if len([n for chain in one.chains[:-1] for n in chain]) > 1:
        # More loops leave fewer registers, and another schedule may begin with less.
        row -= min(fill, ANOTHER_FILL)
    costs = replace(costs, start=start, row=row, left=left, **_part_costs(one, axis, outer, costs.whole))
    task = task_of(one, box_of(one, axis, 0, outer))
    across = across_nest(task)
    if across is None:
        return costs
    try:
        turns = _turns((across, task.apart))
    except (Unselectable, UnsupportedOpError):
        return costs
    start, row, _ = _overheads(_way((across, task.apart)), across)
    return replace(costs, across_start=start, across_row=row, across=turns[across.across])


def _part_costs(one: Map, axis: int, outer: AxisSizes, whole: int) -> dict[str, int]:
    """Return what workers take that have a part of a row each; four points take no more than `whole`."""
    task = task_of(one, box_of(one, axis, 0, outer, PART_POINTS))
    rows = rows_of(task)
    nest = None if rows is None else rows.parts()
    if nest is None:
        return {}
    way = _way((nest, task.apart))
    start, row, fill = _overheads(way, nest)
    # In longer windows all may lie alike, and where an axis has one point, an operand may not move.
    start -= len(nest.moved) - 1 + sum(not walk.inner and any(walk.outer) for walk in nest.walks)
    quad = whole if way is None else min(whole, way.slots * QUAD // way.draft.lanes)
    return {"part": start + row, "part_left": max(start + row - fill, 0), "part_whole": quad}


def _turn_costs(one: Map, axis: int, outer: AxisSizes, nest: tuple[RowNest, Lie]) -> RowCosts:
    """Return the slots of points along rows."""
    split: Split = "rows" if outer else "columns"
    slots = [_turns(nest)]
    for left in (2, 1):
        cut = _nest(one, box_of(one, axis, left, outer), split) if one.is_simple else None
        turns = slots[0] if cut is None else _turns(cut)
        # Where loops are odd, too, odd rows of all operands may begin at the same part of a word.
        odd = (
            _nest(one, box_of(one, axis, left, outer, OUTER_POINTS + 1), split) if cut and left == 1 else None
        )
        for lanes, n in () if odd is None else _turns(odd).items():
            turns = {**turns, lanes: min(n, turns.get(lanes, n))}
        slots.append(turns)
    way = _way(nest)
    if way is None:
        whole = min(n * QUAD // lanes for lanes, n in slots[0].items())
    else:
        # Other rows of whole vectors are computed by the same instructions.
        whole = way.slots * QUAD // way.draft.lanes
    cut = _nest(one, box_of(one, axis, 1), "columns")
    tails = [] if cut is None else [_straight(each) + 1 for each in _drafts(cut) if each.tail is not None]
    single = min([*tails, *(each[1] for each in slots if 1 in each)])
    pair = min([2 * single, *(each[2] for each in slots if 2 in each)])
    return RowCosts(
        whole=whole,
        even_quad=slots[1].get(QUAD, BEYOND),
        even_pair=slots[1].get(PAIR, BEYOND),
        even_point=slots[1].get(1, BEYOND),
        odd_quad=slots[2].get(QUAD, BEYOND),
        odd_pair=slots[2].get(PAIR, BEYOND),
        odd_point=slots[2].get(1, BEYOND),
        pair=pair,
        single=single,
        one_pair=pair,
    )


def _drafts(nest: tuple[RowNest, Lie]) -> tuple[Draft, ...]:
    return _shortest(skeleton(nest[0]), nest[1])


@lru_cache(maxsize=4096)
def _shortest(nest: RowNest, lie: Lie) -> tuple[Draft, ...]:
    """Return the shortest code of a skeleton for every number of points at a time.

    What is accessed together saves most.
    """
    prepared = prepared_nest(nest)
    found: list[Draft] = []
    for lanes in (nest.across,) if nest.across else LANES_NARROW:
        ways = (drafted(nest, lanes, pack, frozenset[int]()) for pack in packs(prepared, lanes, lie))
        first = next((way for way in ways if way is not None), None)
        if first is not None:
            wide = drafted_by_fours(first)
            found += [first] if wide is None else [first, wide]
    return tuple(found)


def _turns(nest: tuple[RowNest, Lie]) -> dict[int, int]:
    """Return the least slots of a turn of the loop along a row, by the points of a turn."""
    result: dict[int, int] = {}
    for one in _drafts(nest):
        slots = round(least_cost(one) * one.lanes)
        result[one.lanes] = min(slots, result.get(one.lanes, slots))
    if not result:
        raise Unselectable("no code")
    return result


def _straight(draft: Draft) -> int:
    """Return the least slots of one point left over."""
    assert draft.tail is not None
    kinds = [i.is_main for i in draft.tail.instructions]
    return max(sum(kinds), len(kinds) - sum(kinds)) + _longer(draft.tail.instructions)


def _longer(instructions: Sequence[Instruction]) -> int:
    """Return by how many slots instructions are longer than a bundle each."""
    return sum(i.slots - 1 for i in instructions)


def _overheads(way: Scheduled | None, nest: RowNest) -> tuple[int, int, int]:
    """Return the slots once, of a row without the turns of its loop, and of these what fills a pipeline."""
    if way is None:
        return LEAST_START, LEAST_ROW, 0
    lines = Emitter(way.applied(nest)).run().lines
    end = lines.index("  exitz $mzero")
    first, last = 0, end
    if nest.outer and nest.split != "parts":
        label = f".Lrow{len(nest.outer) - 1}"
        first = lines.index(f"{label}:")
        last = next(i for i in range(first, end) if lines[i].endswith(f", {label}")) + 1
    code = [line for line in lines[first:last] if line.startswith("  ")]
    start = sum(line.startswith("  ") for line in lines[:end]) + 1 - len(code) - SLACK
    body = next((int(line.split(", ")[1].split()[0]) + 1 for line in code if "rpt " in line), 0)
    body = body or sum(line.startswith("  ") for line in _turn(lines[first:last]))
    pipeline, made = way.pipeline, way.draft
    row, stages = len(code) - body, pipeline.n_stages - 1
    fill = sum(bool(m or a) for block in range(stages) for m, a in turn(pipeline, 0, block))
    fill += made.pack is not None
    once, per_row = _longer(made.once.instructions), _longer(made.per_row.instructions)
    long = sum((stages - pipeline.stage(i)) * (i.slots - 1) for i in pipeline.instructions if i.slots > 1)
    if made.is_drained:
        drained = fill + sum(bool(m or a) for m, a in turn(pipeline, stages, stages))
        row -= max(drained, way.slots)
        fill = long = 0
    start, row, fill = start + once, row + per_row + long, fill + long
    # Loops may stand in another order: what does not vary along all of them may not move in the innermost.
    for walk in nest.inputs:
        if any(walk.outer) and not all(walk.outer):
            start -= ANOTHER_START if walk.outer[0] else 0
            row -= ANOTHER_ROW if walk.outer[-1] else 0
    return max(start, 0), max(row, 0), fill


def _turn(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines of a loop along a row that is too long to be repeated."""
    first = next(
        (i for i, line in enumerate(lines) if line.startswith(TURN) and line.endswith(":")), len(lines)
    )
    ends = (i for i in range(first, len(lines)) if lines[i].endswith(f", {lines[first][:-1]}"))
    return lines[first : next(ends, first - 1) + 1]


def _way(nest: tuple[RowNest, Lie]) -> Scheduled | None:
    return best_way(skeleton(nest[0]), nest[1])


def _nest(one: Map, box: AxisSizes, split: Split, *, is_wide: bool = False) -> tuple[RowNest, Lie] | None:
    """Return the nest of a map over a box, and which operands are apart; None where workers cannot share it so."""
    task = task_of(one, box, is_wide=is_wide)
    nest = nest_of(task, Effort(), SPLITS - {split})
    return None if nest is None else (nest, task.apart)
