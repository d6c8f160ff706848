"""The words of a vector vertex: pointers, extents, strides, constants; and what they are for one task."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from t10.codelets.vector.access import point_parts, pointer_field
from t10.codelets.vector.draft import Draft
from t10.codelets.vector.nest import RowNest
from t10.core.codelet import Field, FieldKind, Pointer, Scratch, Word
from t10.core.tile import N_WORKERS


@dataclass(slots=True)
class WordLayout:
    """Fields in order, with their words."""

    by_name: dict[str, Field] = field(default_factory=dict[str, Field])
    words: list[Word] = field(default_factory=list[Word])

    @property
    def fields(self) -> tuple[Field, ...]:
        """Return the fields."""
        return tuple(self.by_name.values())

    def add(
        self, name: str, word: Word, kind: FieldKind = "u32", dtype: str = "", align_bytes: int = 4
    ) -> None:
        """Add a field, unless there is one of that name."""
        if name not in self.by_name:
            self.by_name[name] = Field(name, kind, dtype, align_bytes)
            self.words.append(word)

    def number(self, name: str) -> int:
        """Return the number of a field."""
        return list(self.by_name).index(name)


def is_moved(draft: Draft, number: int) -> bool:
    """Return whether a walk's own pointer moves along a row, and stays where the row ended."""
    walk = draft.prepared.nest.walks[number]
    nest = draft.prepared.nest
    return bool(walk.inner) and (draft.tail is not None or nest.split == "flat" or not in_pack(draft, number))


def in_pack(draft: Draft, number: int) -> bool:
    """Return whether a walk is accessed through packed addresses."""
    pack = draft.pack
    last = len(draft.prepared.nest.walks) - 1
    return pack is not None and (number in (pack.first, pack.second) or (pack.stores and number == last))


def gap_levels(draft: Draft, number: int) -> tuple[int, ...]:
    """Return the outer axes at the end of whose points a walk's pointer needs a word of its own."""
    nest = draft.prepared.nest
    if nest.split == "parts":
        return ()
    walk, last = nest.walks[number], len(nest.outer) - 1
    own_move = is_moved(draft, number)
    return tuple(
        j for j, stride in enumerate(walk.outer)
        if stride or (own_move and nest.split != "columns" if j == last else walk.outer[j + 1])
    )  # fmt: skip


def gap_bytes(draft: Draft, number: int, level: int, over_bytes: int) -> int:
    """Return what is added to a walk's pointer at the end of a point of an outer axis.

    `over_bytes` is how far loads ran ahead of the row's end.
    """
    nest = draft.prepared.nest
    walk = nest.walks[number]
    size = walk.size_bytes
    stride = walk.outer[level] * size
    if level < len(nest.outer) - 1:
        return stride - nest.outer[level + 1] * walk.outer[level + 1] * size
    consumed = nest.inner * walk.inner * size if is_moved(draft, number) and nest.split != "columns" else 0
    return stride - consumed - over_bytes


def layout(draft: Draft, over_bytes: dict[int, int]) -> WordLayout:
    """Return the fields and words of a draft; `over_bytes` as `gap_bytes` takes it, by walk."""
    nest = draft.prepared.nest
    made = WordLayout()
    is_read = {w.operand for w in nest.inputs}
    for number, walk in enumerate(nest.walks):
        kind: FieldKind = "in" if walk.operand != nest.output.operand else (
            "inout" if nest.output.operand in is_read else "out"
        )  # fmt: skip
        # Eight bytes at most are accessed at once: what is aligned to more shares the codelet.
        align_bytes = min(walk.align_bytes, 8)
        made.add(pointer_field(nest, number), Pointer(walk.operand), kind, walk.dtype, align_bytes)
    if nest.split != "alone":
        _add_shares(made, draft)
    for j in range(0 if nest.split == "columns" else 1, len(nest.outer)):
        made.add(f"last{j}", nest.outer[j] - 1)
    _add_steps(made, draft, over_bytes)
    for (axis, _), origin in zip(nest.axes, nest.origin, strict=True):
        made.add(f"origin{axis}", origin)
    if not draft.constants.in_pool:
        for i, bits in enumerate(draft.constants.bits):
            made.add(f"c{i}", bits)
    if draft.scratch.n_words:
        made.add("scratch", Scratch(), "scratch", "", 8)
    return made


def _add_shares(made: WordLayout, draft: Draft) -> None:
    """Add what says which points a worker does."""
    nest = draft.prepared.nest
    if nest.split == "parts":
        _add_starts(made, nest)
        return
    made.add("per_worker", nest.per_worker)
    if counts_turns(draft):
        made.add("turns", nest.inner // draft.points_per_turn)
        if draft.tail is not None:
            made.add("rest", nest.inner % draft.points_per_turn)
    else:
        made.add("n", nest.inner)
    if nest.split == "rows":
        made.add("n_rows", nest.outer[0])
    if nest.split == "flat":
        made.add("total", prod(nest.outer) * nest.padded)
        made.add("padded", nest.padded)
        if nest.padded != nest.inner:
            made.add("pad", nest.padded - nest.inner)
        _add_starts(made, nest)


def _add_steps(made: WordLayout, draft: Draft, over_bytes: dict[int, int]) -> None:
    """Add strides along rows, and the bytes between rows."""
    nest = draft.prepared.nest
    for number, walk in enumerate(nest.walks):
        if walk.inner not in (0, 1):
            made.add(f"stride{number}", stride_word(nest, number), "i32")
        for j in start_levels(nest, number):
            made.add(f"row{number}_{j}", walk.outer[j] * walk.size_bytes, "i32")
        for j in gap_levels(draft, number):
            over = over_bytes.get(number, 0) if j == len(nest.outer) - 1 else 0
            made.add(f"gap{number}_{j}", gap_bytes(draft, number, j, over), "i32")


def counts_turns(draft: Draft) -> bool:
    """Return whether the points of a row are counted in turns of the loop and a rest: they are the same for all."""
    return draft.prepared.nest.split == "rows" and not draft.has_head


def stride_word(nest: RowNest, number: int) -> int:
    """Return the word of a walk's stride: in elements; of points of several, the last step in units of eight bytes."""
    walk = nest.walks[number]
    return walk.inner * walk.size_bytes // 8 - point_parts(nest, number) + 1 if nest.across else walk.inner


def start_levels(nest: RowNest, number: int) -> tuple[int, ...]:
    """Return the outer axes along which workers begin at different points of a walk, each with a word of its own.

    Walks that lie alike have the words of the first of them.
    """
    if nest.split in ("columns", "parts") or nest.alike[number] != number:
        return ()
    outer = nest.walks[number].outer
    return tuple(j for j in range(1 if nest.split == "rows" else len(outer)) if outer[j])


def start_halves(nest: RowNest) -> int:
    """Return how many 16-bit numbers say where a worker begins: an even number, the last perhaps unused."""
    return (len(nest.starts[0]) + 1) // 2 * 2


def _add_starts(made: WordLayout, nest: RowNest) -> None:
    """Add where every worker begins, two numbers a word."""
    for worker, numbers in enumerate(nest.starts):
        padded = [*numbers, *[0] * (start_halves(nest) - len(numbers))]
        for i in range(0, len(padded), 2):
            made.add(f"start{worker}_{i // 2}", padded[i] | padded[i + 1] << 16)


def scratch_bytes(draft: Draft) -> int:
    """Return the scratch memory of all workers."""
    return N_WORKERS * scratch_bytes_per_worker(draft)


def scratch_bytes_per_worker(draft: Draft) -> int:
    """Return the scratch memory of one worker, a multiple of eight bytes."""
    return -(-draft.scratch.n_words * 4 // 8) * 8
