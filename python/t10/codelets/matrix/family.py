"""The family of products: sums of products of two operands on the matrix engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from t10.codelets.matrix.direct import WIDE_BYTES, Direct, direct
from t10.codelets.matrix.product import products
from t10.codelets.matrix.shape import Structure
from t10.codelets.matrix.stream import Access
from t10.codelets.matrix.supervisor import codelet_text
from t10.codelets.matrix.twin import twin_text
from t10.core.codelet import Codelet, Compiled, Field, Pointer, Word
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
        for product in products(task):
            found = direct(product)
            if found is not None:
                return _compiled(found)
        return None


def _compiled(found: Direct) -> Compiled:
    product, structure = found.product, found.structure
    numbers = found.numbers()
    pointers = {"x": Pointer(product.x), "w": Pointer(product.w), "out": Pointer(2)}
    words: list[Word] = [pointers[name] if name in pointers else numbers[name] for name in structure.words()]
    return Compiled(_codelet(structure), tuple(words))


@lru_cache(maxsize=CODELETS)
def _codelet(structure: Structure) -> Codelet:
    """Return the code of a structure; what it demands of its operands' places follows from how it accesses them."""
    engine = structure.engine
    accesses = frozenset(access for kind in structure.passes for access in kind.accesses)
    wide_weights = any(kind.load.width_bytes == WIDE_BYTES for kind in structure.passes)
    is_cross = "cross" in accesses
    fields = {
        "x": Field("x", "in", engine.in_dtype, 16 if is_cross else 8, is_cross),
        "w": Field("w", "in", engine.in_dtype, 16 if wide_weights else 8, wide_weights),
        "out": Field("out", "inout", engine.out_dtype, 16 if is_cross else 8, bool(accesses & BANKED)),
    }
    return Codelet(
        structure.name,
        "supervisor",
        tuple(fields.get(name, Field(name, "i32")) for name in structure.words()),
        codelet_text(structure),
        twin_text(structure),
        "sums of products on the matrix engine",
        structure.stack_bytes,
        (("x", "out"),) if accesses & APART else (),
    )
