"""A nest's code on virtual registers: what is computed once, once per row, in the loop along a row, and after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from t10.codelets.body.code import Code, Numbering
from t10.codelets.body.expand import expand, value_dtypes
from t10.codelets.body.far import FAR_MARK, FRAME_WORDS
from t10.codelets.body.forms import RULES, constant_bits
from t10.codelets.body.quads import in_quads
from t10.codelets.body.rewrite import rewritten
from t10.codelets.body.select import FORM_BY_DTYPE, Form, Selector, Unselectable, natural_form
from t10.codelets.body.virtual import Fusion, Instruction, Register
from t10.codelets.vector.access import (
    MOST_WORD_CONSTANTS,
    AcrossSources,
    Constants,
    HeldSources,
    Pack,
    Parked,
    RowSources,
    Scratch,
    VectorSources,
    store,
)
from t10.codelets.vector.nest import RowNest, Walk
from t10.core.scalar import ScalarFunction

ONCE, PER_ROW, ALONG_ROW = range(3)
WIDE_READERS = frozenset({"arith.sitofp", "arith.uitofp", "arith.bitcast"})
"""Operations that read 32-bit integers as floats lie."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A nest's function as it is selected: primitive, rewritten, with the level and type of every value."""

    nest: RowNest
    function: ScalarFunction
    dtypes: tuple[str, ...]
    levels: tuple[int, ...]
    input_forms: tuple[Form, ...]

    @property
    def constant_values(self) -> frozenset[int]:
        """Return the values that are constants."""
        n = self.function.n_inputs
        return frozenset(n + i for i, op in enumerate(self.function.ops) if op.opcode == "const")


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Code of a nest for `lanes` points at a time; `tail` is for the points that are left, one at a time."""

    prepared: Prepared
    lanes: int
    pack: Pack | None
    once: Code
    per_row: Code
    main: Code
    stores: frozenset[Instruction]
    fusions: tuple[Fusion, ...]
    tail: Code | None
    constants: Constants
    scratch: Scratch
    parked: Parked
    has_head: bool
    far_frame: int | None
    """The first word of the slow path's scratch memory, None without far arguments."""

    @property
    def is_drained(self) -> bool:
        """Return whether the loop along a row loads nothing past its end: where steps are far, memory may end."""
        return any(walk.inner not in (0, 1) for walk in self.prepared.nest.walks)

    @property
    def steps_back(self) -> bool:
        """Return whether pointers that ran ahead are brought back after the loop; else the words of gaps do it."""
        nest = self.prepared.nest
        return self.tail is not None or bool(nest.outer and nest.split == "columns")

    @property
    def points_per_turn(self) -> int:
        """Return how many points a turn of the loop along a row takes."""
        return self.lanes // self.prepared.nest.point_elements

    @property
    def invariants(self) -> tuple[Register, ...]:
        """Return the virtual registers that outlive the code that writes them."""
        inner = [self.main, *([self.tail] if self.tail else [])]
        read = _read(inner)
        kept = [r for r in _written(self.per_row) if r in read]
        read_later = read | _read([self.per_row])
        return tuple(dict.fromkeys([*(r for r in _written(self.once) if r in read_later), *kept]))


def _written(code: Code) -> list[Register]:
    return [slice_.register for i in code.instructions for slice_ in i.writes]


def _read(codes: Iterable[Code]) -> set[Register]:
    return {slice_.register for code in codes for i in code.instructions for slice_ in i.reads}


def prepare(nest: RowNest) -> Prepared:
    """Return a nest's function ready for selection."""
    input_dtypes = tuple(walk.dtype for walk in nest.inputs)
    primitive = expand(nest.function, input_dtypes)
    index_levels = _index_levels(nest)
    function, levels = rewritten(primitive, input_dtypes, [_level(w) for w in nest.inputs], index_levels)
    dtypes = value_dtypes(function, input_dtypes)
    return Prepared(nest, function, dtypes, levels, _input_forms(function, dtypes))


def _level(walk: Walk) -> int:
    if not walk.lane:
        return ONCE
    return ALONG_ROW if walk.inner else PER_ROW if any(walk.outer) else ONCE


def _index_levels(nest: RowNest) -> list[int]:
    found = [ONCE] * (max((axis for axis, _ in nest.axes), default=-1) + 1)
    for axis, position in nest.axes:
        found[axis] = ALONG_ROW if position == len(nest.outer) else ONCE if position < 0 else PER_ROW
    return found


def _input_forms(function: ScalarFunction, dtypes: tuple[str, ...]) -> tuple[Form, ...]:
    """Return in which form every input is loaded: as those want it who use it."""
    forms: list[Form] = []
    for number in range(function.n_inputs):
        dtype = dtypes[number]
        users = [op for op in function.ops if number in op.operands]
        form: Form = natural_form(dtype)
        if dtype in ("i32", "ui32") and (not users or any(op.opcode in WIDE_READERS for op in users)):
            form = "w"
        if dtype == "i1":
            floats: list[Form] = [natural_form(d) for op in users for d in (op.dtype, *(dtypes[v] for v in op.operands))
                      if d in FORM_BY_DTYPE]  # fmt: skip
            form = floats[0] if floats else "m"
        forms.append(form)
    return tuple(forms)


def by_fours(plain: Draft) -> Draft | None:
    """Return a draft whose loop rounds four numbers of f32 at once to f16; None where it rounds none so."""
    places = in_quads(plain.main, plain.main.numbering, plain.invariants)
    if not places:
        return None
    main = Code(plain.main.numbering)
    main.instructions = [each for each in places.values() if each is not None]

    def placed(each: Instruction) -> Instruction:
        return places[each] or each

    fusions = tuple(replace(f, load=placed(f.load), store=placed(f.store)) for f in plain.fusions)
    return replace(plain, main=main, stores=frozenset(map(placed, plain.stores)), fusions=fusions)


def draft(
    prepared: Prepared, lanes: int, pack: Pack | None, reloaded: frozenset[int], *, is_frugal: bool = False
) -> Draft:
    """Return a nest's code; `reloaded` constants live in no register, nor, if frugal, what only rows need.

    Raises `Unselectable` where there is none.
    """
    nest, function = prepared.nest, prepared.function
    numbering, constants, scratch = Numbering(), Constants(), Scratch()
    parked = parked_in(prepared, scratch) if is_frugal else Parked({}, {})
    ops = [op for op in function.ops if op.opcode == "const"]
    constants.in_pool = len({constant_bits(op, "w") for op in ops}) > MOST_WORD_CONSTANTS
    row_sources = RowSources(nest, constants, scratch, parked)
    if nest.across and (lanes != nest.across or pack is not None):
        raise Unselectable("rows across the dense axis have as many lanes as a point has elements")
    once, per_row, main = Code(numbering), Code(numbering), Code(numbering)

    def selector(code: Code, lanes: int, sources: RowSources, level: int, outer: Selector | None) -> Selector:
        return Selector(
            code, function, prepared.dtypes, lanes, sources, RULES, prepared.levels, prepared.input_forms, level,
            outer, reloaded if level == ALONG_ROW else frozenset(), min(level, PER_ROW) if nest.across else None,
        )  # fmt: skip

    outermost = selector(once, 1, row_sources, ONCE, None)
    has_head = needs_head(nest, lanes)
    if has_head and nest.split == "alone":
        raise Unselectable("points that are written out begin at a word")
    if has_head and pack is not None:
        raise Unselectable("after a point by itself nothing lies at multiples of eight bytes")
    if nest.across:
        held = HeldSources(nest, constants, scratch, parked)
        row = selector(per_row, lanes, held, PER_ROW, outermost)
        sources: VectorSources = AcrossSources(nest, constants, scratch, lanes, None)
    else:
        row = selector(per_row, 1, row_sources, PER_ROW, outermost)
        sources = VectorSources(_after_head(nest) if has_head else nest, constants, scratch, lanes, pack)
    along = selector(main, lanes, sources, ALONG_ROW, row)
    dtype = nest.output.dtype
    stores = store(along, sources, function.result, dtype)
    tail = None
    if (nest.inner % lanes and not nest.across) or has_head:
        tail = Code(numbering)
        one = VectorSources(nest, constants, scratch, 1, None)
        store(selector(tail, 1, one, ALONG_ROW, row), one, function.result, dtype)
    has_far = any(i.text.startswith(FAR_MARK) for c in (once, per_row, main) for i in c.instructions)
    return Draft(
        prepared, lanes, pack, once, per_row, main, frozenset(stores), sources.fusions(stores), tail, constants,
        scratch, parked, has_head, scratch.take(FRAME_WORDS)[1] if has_far else None,
    )  # fmt: skip


def needs_head(nest: RowNest, lanes: int) -> bool:
    """Return whether a row's first point is done by itself where it lies in the upper half of a word."""
    is_whole = nest.split == "rows" or nest.per_worker >= nest.inner
    output = nest.output
    return lanes > 1 and output.size_bytes == 2 and output.inner == 1 and output.align_bytes == 2 and is_whole


def _after_head(nest: RowNest) -> RowNest:
    """Return the nest as it is when the output stands on a word."""
    walks = [
        walk
        if walk.inner != 1
        else replace(walk, align_bytes=4 if walk.follows_output or walk.size_bytes == 4 else walk.size_bytes)
        for walk in nest.inputs
    ]
    return replace(nest, walks=(*walks, replace(nest.output, align_bytes=4)))


def parked_in(prepared: Prepared, scratch: Scratch) -> Parked:
    """Return scratch words for pointers of values that are the same along a row and for all counters but the last."""
    nest = prepared.nest
    pointers = {n: scratch.take(1)[1] for n in range(len(nest.inputs)) if prepared.levels[n] == PER_ROW}
    first = 1 if nest.split == "flat" else 0
    return Parked(pointers, {j: scratch.take(1)[1] for j in range(first, len(nest.outer) - 1)})


def packs(prepared: Prepared, lanes: int, apart: frozenset[tuple[int, int]]) -> tuple[Pack | None, ...]:
    """Return the ways of accessing operands together that memory allows, the widest first; at last none."""
    nest = prepared.nest
    if any(walk.inner not in (0, 1) for walk in nest.walks):
        return (None,)
    able = [i for i, walk in enumerate(nest.walks) if _can_pack(prepared, i, walk, lanes)]
    out = len(nest.walks) - 1
    inputs = [i for i in able if i != out]

    def are_apart(i: int, j: int) -> bool:
        a, b = nest.walks[i].operand, nest.walks[j].operand
        return (min(a, b), max(a, b)) in apart

    found: list[Pack | None] = []
    pairs = [
        (i, j) for i in inputs for j in inputs
        if i < j and are_apart(i, j) and nest.walks[i].dtype == nest.walks[j].dtype
    ]  # fmt: skip
    if out in able:
        found += [Pack(i, j, stores=True) for i, j in pairs if are_apart(i, out) and are_apart(j, out)]
        found += [Pack(i, None, stores=True) for i in inputs if are_apart(i, out)]
    found += [Pack(i, j, stores=False) for i, j in pairs]
    return (*found, None)


def _can_pack(prepared: Prepared, number: int, walk: Walk, lanes: int) -> bool:
    """Return whether an operand is accessed eight bytes at a time, one after the other."""
    if (
        walk.inner != 1
        or walk.align_bytes % 8
        or walk.size_bytes * lanes < 8
        or walk.size_bytes not in (2, 4)
    ):
        return False
    if number == len(prepared.nest.walks) - 1:
        return walk.dtype in FORM_BY_DTYPE or prepared.dtypes[prepared.function.result] in FORM_BY_DTYPE
    return prepared.levels[number] == ALONG_ROW and prepared.input_forms[number] != "m" and walk.dtype != "i1"
