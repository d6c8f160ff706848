"""The family of products: sums of products of two operands, on the matrix engine, as dot products or as windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from t10.codelets.counter import cycles_where_it_lies, least_counted
from t10.codelets.matrix.cpp_reference import reference_text
from t10.codelets.matrix.direct import WIDE_BYTES, Direct, directs
from t10.codelets.matrix.dots import dots
from t10.codelets.matrix.engine import WORD_BYTES
from t10.codelets.matrix.product import products
from t10.codelets.matrix.shape import Structure
from t10.codelets.matrix.staging import MOST_SCRATCH_BYTES, staged
from t10.codelets.matrix.stream import Access
from t10.codelets.matrix.supervisor import codelet_text
from t10.codelets.matrix.windows import windows
from t10.codelets.reduce.family import ReduceFamily
from t10.codelets.reduce.shape import estimated_slots, shapes
from t10.codelets.room import beside_room, has_room, without_room
from t10.core.codelet import Codelet, Compiled, Field, Pointer, Scratch, Word
from t10.core.dtypes import size_bytes
from t10.core.task import Task
from t10.core.tile import N_WORKERS

APART: frozenset[Access] = frozenset(("pair", "triple"))
BANKED: frozenset[Access] = frozenset(("cross", "packed", "triple"))
CODELETS = 4096
VECTOR_UNIT = ReduceFamily()
POINTS_SHARE = 0.8
"""The part of its estimate that a reduction takes at least, one element at a time: 0.92 of 2,189 were the least."""
OUTPUT_SLOTS = 4
"""Slots of an output of the vector unit besides its products, at least."""


@dataclass(frozen=True, slots=True)
class MatrixFamily:
    """Compiles contractions and convolutions; see `t10.codelets.family`."""

    name: str = "Matrix"

    def compile(self, task: Task) -> Compiled | None:
        """Return the task as code, None where it is no product of two operands of the engine's types."""
        best = least_counted(task, (*map(compiled, ways(task)), *dots(task), *windows(task)))
        if best is None or task.first is not None:
            return best
        cycles = cycles_where_it_lies(task, best)
        if not _may_take_less(task, cycles):
            return best
        other = VECTOR_UNIT.compile(without_room(task)) if has_room(task) else VECTOR_UNIT.compile(task)
        if other is not None and has_room(task):
            other = beside_room(other)
        return best if other is None or cycles <= cycles_where_it_lies(task, other) else None


def ways(task: Task) -> Iterator[Direct]:
    """Yield the ways to compute a task on the engine."""
    seen = tuple(products(task))
    for product in (*seen, *(copied for one in seen for copied in staged(one))):
        yield from (found for found in directs(product) if found.scratch_bytes <= MOST_SCRATCH_BYTES)


def _may_take_less(task: Task, cycles: int) -> bool:
    """Return whether the vector unit may take fewer cycles: two loads for a word of products, a few slots per output.

    One element at a time it takes about what is estimated, or less where pieces are shared more evenly.
    """
    n_outputs = prod(task.extents[a] for a in task.parallel_axes)
    n_words = -(-task.n_points // n_outputs * size_bytes(task.inputs[0].dtype) // WORD_BYTES)
    if N_WORKERS * -(-n_outputs // N_WORKERS) * (2 * n_words + OUTPUT_SLOTS) >= cycles:
        return False
    found = shapes(without_room(task) if has_room(task) else task)
    if len(found) != 1 or found[0].mode != "points":
        return True
    estimated = N_WORKERS * estimated_slots(found[0], task) / max(found[0].unevenness, 1.0)
    return POINTS_SHARE * estimated < cycles


def compiled(found: Direct) -> Compiled:
    """Return a way as a codelet and its words."""
    product, structure = found.product, found.structure
    numbers = found.numbers()
    n_inputs = len(product.task.inputs)
    pointers: dict[str, Word] = {"x": Pointer(product.x), "w": Pointer(product.w), "out": Pointer(n_inputs)}
    pointers |= {"sums": Pointer(n_inputs - 1), "scratch": Scratch()}
    pointers |= {
        "first": Pointer(n_inputs - 1 - bool(structure.engine.rounding)),
        "first_room": Scratch(found.first_at),
    }
    codelet = _codelet(structure)
    words = tuple([pointers.get(one.name) or numbers[one.name] for one in codelet.fields])
    return Compiled(codelet, words, found.scratch_bytes)


@lru_cache(maxsize=CODELETS)
def _codelet(structure: Structure) -> Codelet:
    """Return the code of a structure; what it demands of its operands' places follows from how it accesses them."""
    engine = structure.engine
    accesses = structure.accesses
    wide_weights = any(kind.load.width_bytes == WIDE_BYTES for kind in structure.passes)
    is_cross = "cross" in accesses
    # What is copied may begin in the middle of a word: its copy does not.
    copied = engine.in_bytes
    out_align = 16 if is_cross or structure.is_wide else 4 if "word" in accesses else 8
    fields = {
        "x": Field(
            "x", "in", engine.in_dtype, copied if structure.copies_x else 16 if is_cross else 8, is_cross
        ),
        "w": Field(
            "w",
            "in",
            engine.in_dtype,
            copied if structure.copies_w else 16 if wide_weights else 8,
            wide_weights,
        ),
        "scratch": Field("scratch", "scratch", "", 8),
        "first_room": Field("first_room", "scratch", "", 8),
        "out": Field("out", "inout", engine.out_dtype, out_align, bool(accesses & BANKED)),
    }
    apart = (("scratch" if structure.copies_x else "x", "out"),) if accesses & APART else ()
    if structure.has_first:
        fields["first"] = Field("first", "in", engine.in_dtype, 8)
        apart += _first_apart(structure)
    if engine.rounding:
        fields["sums"] = Field("sums", "inout", "f32", 16 if structure.is_wide else 8, "triple" in accesses)
        fields["out"] = Field("out", "inout", engine.out_dtype, 8)
        apart = _rounding_apart(structure) + _first_apart(structure)
    return Codelet(
        structure.name,
        "supervisor",
        tuple(fields.get(name, Field(name, "i32")) for name in structure.words()),
        codelet_text(structure),
        reference_text(structure),
        "sums of products on the matrix engine",
        structure.stack_bytes,
        apart,
    )


def _first_apart(structure: Structure) -> tuple[tuple[str, str], ...]:
    """Return which fields lie apart, besides, where sums begin with a row of partials in scratch memory."""
    if not structure.has_first:
        return ()
    pairs = (("first_room", "x"), ("first_room", "sums" if structure.engine.rounding else "out"))
    return {"triple": pairs, "pair": pairs[:1]}.get(structure.begin or "", ())


def _rounding_apart(structure: Structure) -> tuple[tuple[str, str], ...]:
    """Return which fields lie apart where sums grow in a place of their own."""
    x = "scratch" if structure.copies_x else "x"
    if structure.end is None:
        return ((x, "out"),) if structure.begin in APART else ()
    begun = ((x, "sums"),) if structure.accesses & APART else ()
    return (*begun, (x, "out"), ("sums", "out")) if structure.end in APART else begun
