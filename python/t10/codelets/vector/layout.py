"""The words of a vector vertex: pointers, extents, strides, constants; and what they are for one task."""

from __future__ import annotations

from dataclasses import dataclass, field

from t10.codelets.vector.access import pointer_field
from t10.codelets.vector.draft import Draft
from t10.core.codelet import Field, FieldKind, Pointer, Scratch, Word

WORKERS = 6


@dataclass(slots=True)
class Layout:
    """Fields in order, with their words."""

    fields: list[Field] = field(default_factory=list[Field])
    words: list[Word] = field(default_factory=list[Word])

    def add(
        self, name: str, word: Word, kind: FieldKind = "u32", dtype: str = "", align_bytes: int = 4
    ) -> None:
        """Add a field, unless there is one of that name."""
        if name not in {f.name for f in self.fields}:
            self.fields.append(Field(name, kind, dtype, align_bytes))
            self.words.append(word)

    def number(self, name: str) -> int:
        """Return the number of a field."""
        return [f.name for f in self.fields].index(name)


def is_moved(draft: Draft, number: int) -> bool:
    """Return whether a walk's own pointer moves along a row, and stays where the row ended."""
    walk = draft.prepared.nest.walks[number]
    return bool(walk.inner) and (draft.tail is not None or not in_pack(draft, number))


def in_pack(draft: Draft, number: int) -> bool:
    """Return whether a walk is accessed through packed addresses."""
    pack = draft.pack
    last = len(draft.prepared.nest.walks) - 1
    return pack is not None and (number in (pack.first, pack.second) or (pack.stores and number == last))


def gap_levels(draft: Draft, number: int) -> tuple[int, ...]:
    """Return the outer axes at the end of whose points a walk's pointer needs a word of its own."""
    nest = draft.prepared.nest
    walk, last = nest.walks[number], len(nest.outer) - 1
    own_move = is_moved(draft, number)
    return tuple(
        j for j, stride in enumerate(walk.outer)
        if stride or (own_move and nest.split == "rows" if j == last else walk.outer[j + 1])
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
    consumed = nest.inner * walk.inner * size if is_moved(draft, number) and nest.split == "rows" else 0
    return stride - consumed - over_bytes


def layout(draft: Draft, over_bytes: dict[int, int]) -> Layout:
    """Return the fields and words of a draft; `over_bytes` as `gap_bytes` takes it, by walk."""
    nest = draft.prepared.nest
    made = Layout()
    last = len(nest.walks) - 1
    is_read = {w.operand for w in nest.inputs}
    for number, walk in enumerate(nest.walks):
        kind: FieldKind = "in" if walk.operand != nest.output.operand else (
            "inout" if nest.output.operand in is_read else "out"
        )  # fmt: skip
        # Eight bytes at most are accessed at once: what is aligned to more shares the codelet.
        align_bytes = min(walk.align_bytes, 8)
        made.add(pointer_field(nest, number), Pointer(walk.operand), kind, walk.dtype, align_bytes)
    made.add("per_worker", nest.per_worker)
    made.add("n", nest.inner)
    if nest.split == "rows":
        made.add("n_rows", nest.outer[0])
    for j in range(1 if nest.split == "rows" else 0, len(nest.outer)):
        made.add(f"last{j}", nest.outer[j] - 1)
    for number, walk in enumerate(nest.walks):
        if walk.inner not in (0, 1):
            made.add(f"stride{number}", walk.inner, "i32")
        if nest.split == "rows" and walk.outer[0]:
            made.add(f"row{number}", walk.outer[0] * walk.size_bytes, "i32")
        for j in gap_levels(draft, number):
            over = over_bytes.get(number, 0) if j == len(nest.outer) - 1 else 0
            made.add(f"gap{number}_{j}", gap_bytes(draft, number, j, over), "i32")
    for (axis, _), origin in zip(nest.axes, nest.origin, strict=True):
        made.add(f"origin{axis}", origin)
    if not draft.constants.in_pool:
        for i, bits in enumerate(draft.constants.bits):
            made.add(f"c{i}", bits)
    if draft.scratch.n_words:
        made.add("scratch", Scratch(), "scratch", "", 8)
    assert last >= 0
    return made


def scratch_bytes(draft: Draft) -> int:
    """Return the scratch memory of all workers."""
    return WORKERS * scratch_bytes_per_worker(draft)


def scratch_bytes_per_worker(draft: Draft) -> int:
    """Return the scratch memory of one worker, a multiple of eight bytes."""
    return -(-draft.scratch.n_words * 4 // 8) * 8
