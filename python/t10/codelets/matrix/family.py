"""The family of products: sums of products of two operands on the matrix engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from t10.codelets.matrix.cpp_reference import reference_text
from t10.codelets.matrix.direct import WIDE_BYTES, Direct, direct
from t10.codelets.matrix.estimate import cycles, dot_cycles
from t10.codelets.matrix.product import products
from t10.codelets.matrix.shape import Structure
from t10.codelets.matrix.staging import MOST_SCRATCH_BYTES, staged
from t10.codelets.matrix.stream import Access
from t10.codelets.matrix.supervisor import codelet_text
from t10.core.codelet import Codelet, Compiled, Field, Pointer, Scratch, Word
from t10.core.task import Task

APART: frozenset[Access] = frozenset(("pair", "triple"))
BANKED: frozenset[Access] = frozenset(("cross", "packed", "triple"))
CODELETS = 4096


@dataclass(frozen=True, slots=True)
class MatrixFamily:
    """Compiles contractions and convolutions; see `t10.codelets.family`."""

    name: str = "Matrix"

    def compile(self, task: Task) -> Compiled | None:
        """Return the task as code, None where it is no product of two operands of the engine's types."""
        best = best_way(task)
        return None if best is None else _compiled(best)


def best_way(task: Task) -> Direct | None:
    """Return the fastest way to compute a task on the engine; None where there is none or the vector unit is faster."""
    seen = tuple(products(task))
    ways = [direct(product) for product in (*seen, *(copied for one in seen for copied in staged(one)))]
    fitting = [way for way in ways if way is not None and way.scratch_bytes <= MOST_SCRATCH_BYTES]
    if not fitting:
        return None
    best = min(fitting, key=cycles)
    return best if cycles(best) <= dot_cycles(seen[0]) else None


def _compiled(found: Direct) -> Compiled:
    product, structure = found.product, found.structure
    numbers = found.numbers()
    pointers: dict[str, Word] = {"x": Pointer(product.x), "w": Pointer(product.w), "out": Pointer(2)}
    pointers["scratch"] = Scratch()
    words = tuple(pointers[name] if name in pointers else numbers[name] for name in structure.words())
    return Compiled(_codelet(structure), words, found.scratch_bytes)


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
        "out": Field("out", "inout", engine.out_dtype, out_align, bool(accesses & BANKED)),
    }
    return Codelet(
        structure.name,
        "supervisor",
        tuple(fields.get(name, Field(name, "i32")) for name in structure.words()),
        codelet_text(structure),
        reference_text(structure),
        "sums of products on the matrix engine",
        structure.stack_bytes,
        (("scratch" if structure.copies_x else "x", "out"),) if accesses & APART else (),
    )
