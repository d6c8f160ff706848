"""The vector family: tasks that compute every output element from a few input elements, along dense rows.

Integers of 64 bits are computed as words; tasks whose values are not proved to fit are left to scalar loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from t10.codelets.body.select import Unselectable
from t10.codelets.body.words import is_in_words
from t10.codelets.counter import least_counted
from t10.codelets.digest import named
from t10.codelets.vector.access import Pack, pointer_field
from t10.codelets.vector.cpp_reference import cpp_reference
from t10.codelets.vector.draft import Draft, Prepared, by_fours, draft, packs, prepare
from t10.codelets.vector.emit import Emitter
from t10.codelets.vector.layout import scratch_bytes
from t10.codelets.vector.nest import Effort, RowNest, Rows, Split, across_nest, rows_of, skeleton
from t10.codelets.vector.registers import PACK_REGISTERS, least_left
from t10.codelets.vector.schedule import Scheduled, least_cost, schedule
from t10.core.codelet import Codelet, Compiled
from t10.core.task import Task
from t10.errors import UnsupportedOpError

LANES_NARROW, LANES_WIDE = (4, 2, 1), (2, 4, 1)
"""Points at a time to try, the best first among equals: with operands below four bytes, and without."""
REFUSED = frozenset({"f64", "bf16"})
PLACEHOLDER = "Vector_codelet"


class VectorFamily:
    """Elementwise tasks, fills, copies, casts, accumulation into the output."""

    name = "Vector"

    def compile(self, task: Task) -> Compiled | None:
        """Return the task as code, None where the family cannot compute it."""
        if (
            task.reduction_axes
            or REFUSED & {operand.dtype for operand in task.operands}
            or not is_in_words(task)
        ):
            return None
        rows = rows_of(task)
        if rows is None:
            return None
        seen = _Seen(rows, (across_nest(task), rows.alone(), rows.parts()))
        try:
            ways = dict.fromkeys(way for apart in accessed_together(task) for way in _ways(seen, apart))
            return least_counted(task, dict.fromkeys(map(_compiled, ways)))
        except (Unselectable, UnsupportedOpError):
            return None


def accessed_together(task: Task) -> Iterator[frozenset[tuple[int, int]]]:
    """Generate the pairs that code may access together: all that lie apart, those of one instruction, none.

    The estimate that chooses among them leaves out what is done once. No task may take longer where more lies apart.
    """
    yield task.apart
    output = len(task.inputs)
    for i, j in sorted(task.apart):
        yield frozenset([(i, j)])
        if {(i, output), (j, output)} <= task.apart:
            yield frozenset([(i, j), (i, output), (j, output)])
    if task.apart:
        yield frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """The instructions of a skeleton, and the nest that is computed by them; one object of each."""

    pattern: Scheduled
    applied: Scheduled


@dataclass(slots=True)
class _Seen:
    """A task along rows, and across them, for one worker and in parts, with the nests' skeletons and ways."""

    rows: Rows
    others: tuple[RowNest | None, ...]
    nests: dict[tuple[Effort, frozenset[Split]], RowNest | None] = field(
        default_factory=dict[tuple[Effort, frozenset[Split]], "RowNest | None"]
    )
    skeletons: dict[int, RowNest] = field(default_factory=dict[int, RowNest])
    ways: dict[tuple[int, int], _Way] = field(default_factory=dict[tuple[int, int], _Way])

    def nest(self, effort: Effort, refused: frozenset[Split]) -> RowNest | None:
        """Return the best nest along rows; see `Rows.nest`."""
        key = effort, refused
        if key not in self.nests:
            self.nests[key] = self.rows.nest(effort, refused)
        return self.nests[key]

    def way(self, nest: RowNest, apart: frozenset[tuple[int, int]]) -> _Way | None:
        """Return the best way to compute a nest, None if it cannot be computed. Nests are compared by identity."""
        found = self.skeletons.get(id(nest))
        if found is None:
            found = self.skeletons[id(nest)] = skeleton(nest)
        pattern = best_way(found, apart)
        if pattern is None:
            return None
        key = id(nest), id(pattern)
        if key not in self.ways:
            self.ways[key] = _Way(pattern, pattern.applied(nest))
        return self.ways[key]


def _ways(seen: _Seen, apart: frozenset[tuple[int, int]]) -> Iterator[_Way]:
    """Generate ways to compute a task along rows and otherwise; none if it cannot be along rows."""
    first = _best(seen, apart, Effort())
    if first is None:
        return
    # What a point takes decides how points are shared, and is known only now.
    yield _best(seen, apart, Effort(first.applied.cost, first.applied.slots_per_row)) or first
    for nest in seen.others:
        way = None if nest is None else seen.way(nest, apart)
        if way is not None:
            yield way


def _best(seen: _Seen, apart: frozenset[tuple[int, int]], effort: Effort) -> _Way | None:
    """Return the best way to compute a task whose points take an effort; None where there is no way."""
    refused: frozenset[Split] = frozenset()
    # A way to share that takes more registers than there are leaves the next best.
    while (nest := seen.nest(effort, refused)) is not None:
        if _can_index(nest.axes, len(nest.outer), nest.split):
            way = seen.way(nest, apart)
            if way is not None:
                return way
        refused |= frozenset((nest.split,))
    return None


@lru_cache(maxsize=4096)
def best_way(nest: RowNest, apart: frozenset[tuple[int, int]]) -> Scheduled | None:
    """Return the first of the cheapest ways that fit in the registers; a frugal one if no other does."""
    prepared = prepared_nest(nest)
    for is_frugal in (False, True):
        best: Scheduled | None = None
        for one in _drafts(prepared, apart, is_frugal=is_frugal):
            if best is not None and least_cost(one) >= best.cost:
                continue
            way = _scheduled(one)
            if way is not None and (best is None or way.cost < best.cost):
                best = way
        if best is not None:
            return best
    return None


@lru_cache(maxsize=4096)
def prepared_nest(nest: RowNest) -> Prepared:
    """Return a skeleton ready for selection, which all its drafts begin with."""
    return prepare(nest)


@lru_cache(maxsize=4096)
def _scheduled(way: Draft) -> Scheduled | None:
    """Return a draft with times and registers, None where registers do not suffice."""
    try:
        return schedule(way)
    except Unselectable:
        return None


def _can_index(axes: tuple[tuple[int, int], ...], n_outer: int, split: str) -> bool:
    """Return whether indices can be kept: where every row begins alike."""
    return not axes or n_outer == 0 or split == "rows"


def _drafts(prepared: Prepared, apart: frozenset[tuple[int, int]], *, is_frugal: bool) -> Iterator[Draft]:
    """Generate the ways to compute a nest, without times and registers."""
    nest = prepared.nest
    is_narrow = any(walk.size_bytes < 4 for walk in nest.walks)
    most = nest.inner if nest.is_short else max(LANES_WIDE)
    left = least_left(prepared, is_frugal=is_frugal)
    if left < 0:
        return
    for lanes in (nest.across,) if nest.across else LANES_NARROW if is_narrow else LANES_WIDE:
        if lanes > most and not nest.across:
            continue
        for pack in packs(prepared, lanes, apart):
            if pack is not None and left < PACK_REGISTERS:
                continue
            for reloaded in dict.fromkeys((frozenset[int](), prepared.constant_values)):
                one = drafted(nest, lanes, pack, reloaded, is_frugal=is_frugal)
                if one is not None:
                    yield one
                    wide = drafted_by_fours(one)
                    if wide is not None:
                        yield wide


@lru_cache(maxsize=4096)
def drafted(
    nest: RowNest, lanes: int, pack: Pack | None, reloaded: frozenset[int], *, is_frugal: bool = False
) -> Draft | None:
    """Return a skeleton's code, None where there is none: with operands apart and without, drafts are the same."""
    try:
        return draft(prepared_nest(nest), lanes, pack, reloaded, is_frugal=is_frugal)
    except Unselectable:
        return None


@lru_cache(maxsize=4096)
def drafted_by_fours(plain: Draft) -> Draft | None:
    """Return `by_fours` of a draft."""
    return by_fours(plain)


def _compiled(way: _Way) -> Compiled:
    codelet = _codelet(way.pattern, way.applied.draft.prepared.nest.alike)
    return Compiled(codelet, tuple(way.applied.layout().words), scratch_bytes(way.applied.draft))


@lru_cache(maxsize=4096)
def _codelet(pattern: Scheduled, alike: tuple[int, ...]) -> Codelet:
    """Return the code of a pattern's nests whose walks are alike; the name tells codelets apart by their text."""
    way = pattern.applied(replace(pattern.draft.prepared.nest, alike=alike))
    emitter = Emitter(way)
    assembly = emitter.run()
    body = cpp_reference(way.draft, emitter.layout)
    text = assembly.text(PLACEHOLDER, "multi")
    name = named(f"Vector_{_words(way.draft)}", emitter.layout.fields, text, body)
    return Codelet(
        name=name,
        kind="multi",
        fields=emitter.layout.fields,
        assembly=text.replace(PLACEHOLDER, name),
        cpp_reference=body,
        summary=_summary(way.draft),
        apart=_apart(way.draft),
    )


def _words(way: Draft) -> str:
    """Return operations and types for a name."""
    nest = way.prepared.nest
    opcodes = [op.opcode.split(".")[-1] for op in nest.function.ops if op.opcode != "const"]
    what = opcodes[:3] or ["fill" if not nest.inputs else "copy"]
    return "_".join([*what, *(walk.dtype for walk in nest.walks)])


def _summary(way: Draft) -> str:
    nest = way.prepared.nest
    opcodes = ", ".join(op.opcode.split(".")[-1] for op in nest.function.ops if op.opcode != "const")
    if nest.split == "alone":
        return f"{opcodes or 'copy'} of a few points, one worker alone"
    shares = "take a part of a row each" if nest.split == "parts" else f"share {nest.split}"
    return f"{opcodes or 'copy'} along rows, {way.lanes} points at a time, workers {shares}"


def _apart(way: Draft) -> tuple[tuple[str, str], ...]:
    """Return the fields that one instruction accesses together."""
    if way.pack is None:
        return ()
    nest = way.prepared.nest
    numbers = [way.pack.first, *([way.pack.second] if way.pack.second is not None else [])]
    last = len(nest.walks) - 1
    if way.pack.stores:
        numbers.append(last)
    names = [pointer_field(nest, n) for n in numbers]
    return tuple((a, b) for i, a in enumerate(names) for b in names[i + 1 :])
