"""Products of a matrix and a vector on the vector unit: a dot product per row of the matrix, one row after the other.

```
six workers, each a share of the rows:
    row:   four elements of both in one load, beside the products of the four before
           the sum leaves the accumulators beside the first load of the next row, and is stored beside its last products
```

A row of n elements takes n / 4 + 3 slots, where the engine takes as long for a column as for eight. Vector and matrix
lie in different memory elements. Nothing is read beyond either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from t10.codelets.assembly import Assembly
from t10.codelets.digest import named_codelet
from t10.codelets.nest import Level, levels
from t10.core.codelet import Codelet, Compiled, Field, Pointer, Word
from t10.core.dtypes import size_bytes
from t10.core.products import is_product
from t10.core.task import Task
from t10.core.tile import N_WORKERS

PER_LOAD, LOAD_BYTES = 4, 8
LEAST_LOADS = 3
"""The loop of a row begins behind its first load and ends before its last one."""
JUMPS = range(-512, 512)
"""Words of eight bytes that a field of the stride register holds."""
MOST_REPEATED = 0xFFF
NUMBERS = ("share", "rest", "row", "pace", "turns")
LOAD = "ld2x64pace $a0:1, $a2:3, $m4:5+=, $m9,"
ADD = "f16v4cmac $a0:1, $a2:3"
NEXT, JUMP = 0, 1 | 2 << 2
"""Selectors: both pointers one word on; the first one to the vector's beginning, the second one to the next row."""


@dataclass(frozen=True, slots=True)
class Dots:
    """Rows of a matrix (input `matrix`), `n_rows` of `n_loads` words of eight bytes, `row_bytes` apart."""

    matrix: int
    n_rows: int
    n_loads: int
    row_bytes: int

    @property
    def pace(self) -> int:
        """Return the stride register: jumps from the last word of the vector, and of a row, to the next first one."""
        back = 1 - self.n_loads
        on = self.row_bytes // LOAD_BYTES + back
        return (back & 0x3FF) | (on & 0x3FF) << 10

    def compiled(self) -> Compiled:
        """Return the code and its words."""
        share, rest = divmod(self.n_rows, N_WORKERS)
        numbers = share, rest, self.row_bytes, self.pace, self.n_loads - 2
        pointers: tuple[Word, ...] = (Pointer(1 - self.matrix), Pointer(self.matrix), Pointer(2))
        return Compiled(_codelet(), (*pointers, *numbers))


def dots(task: Task) -> tuple[Compiled, ...]:
    """Return a product of a matrix and a vector as dot products, nothing where the task is something else."""
    found = _dots(task)
    return () if found is None else (found.compiled(),)


def _dots(task: Task) -> Dots | None:
    if not task.initial or task.combine != "sum" or task.selectors or not task.are_apart(0, 1):
        return None
    if len(task.inputs) != 2 or not is_product(task.body) or task.output.dtype != "f32":
        return None
    if any(operand.dtype != "f16" or operand.align_bytes < LOAD_BYTES for operand in task.inputs):
        return None
    loops = levels(task)
    if [loop.is_reduction for loop in loops] != [False, True]:
        return None
    return _rows(*loops)


def _rows(rows: Level, terms: Level) -> Dots | None:
    """Return the rows of two loops, None where they are none that the code takes."""
    if rows.out_stride != 1 or terms.strides[:2] != (1, 1) or terms.extent % PER_LOAD:
        return None
    if 0 not in rows.strides[:2] or rows.strides[:2] == (0, 0):
        return None
    matrix = 1 if rows.strides[0] == 0 else 0
    row_bytes = rows.strides[matrix] * size_bytes("f16")
    n_loads = terms.extent // PER_LOAD
    jumps = 1 - n_loads, row_bytes // LOAD_BYTES + 1 - n_loads
    if row_bytes % LOAD_BYTES or n_loads < LEAST_LOADS or any(jump not in JUMPS for jump in jumps):
        return None
    return Dots(matrix, rows.extent, n_loads, row_bytes)


@lru_cache(maxsize=1)
def _codelet() -> Codelet:
    """Return the code of all of them."""
    fields = (
        Field("vector", "in", "f16", LOAD_BYTES),
        Field("matrix", "in", "f16", LOAD_BYTES),
        Field("out", "out", "f32", 4),
        *(Field(name, "i32") for name in NUMBERS),
    )
    text, summary = _assembly(), "dot products of a vector and the rows of a matrix"
    apart = (("vector", "matrix"),)
    return named_codelet("Matrix_dots_f16_f32", "multi", fields, text, CPP_REFERENCE, summary, apart)


def _assembly() -> Assembly:
    text = Assembly()
    _share(text)
    text.bundle(f"{LOAD} {NEXT}", "uput $FP_CLR, $a7")
    _row(text, ("", ADD))
    text.op("brz $m3, .LLast")
    text.op("add $m3, $m3, -1")
    text.align()
    text.label(".LRow")
    text.bundle(f"{LOAD} {NEXT}", "f32v2gina $a4:5, $azeros, 0")
    _row(text, ("st32step $a6, $mzero, $m8+=, 1", ADD), "f32add $a6, $a4, $a5")
    text.op("brnzdec $m3, .LRow")
    text.label(".LLast")
    text.op("f32v2gina $a4:5, $azeros, 0")
    text.op("f32add $a6, $a4, $a5")
    text.op("st32 $a6, $m8, $mzero, 0")
    text.label(".LEnd")
    text.op("exitz $mzero")
    return text


def _row(text: Assembly, last: tuple[str, str], beside: str = "") -> None:
    """Add the products of a row whose first word is loaded; `beside` goes with the beginning of the loop."""
    text.align()
    text.bundle("rpt $m10, 0", beside)
    text.bundle(f"{LOAD} {NEXT}", ADD)
    text.bundle(f"{LOAD} {JUMP}", ADD)
    text.bundle(*last)


def _share(text: Assembly) -> None:
    """Add what finds a worker's rows: $m3 of them but one, $m4:5 where they begin, $m8 where their sums go."""
    for line in (
        "get $m0, $WSR",
        "and $m0, $m0, 7",
        "ld32 $m1, $mvertex_base, $mzero, 3",
        "ld32 $m2, $mvertex_base, $mzero, 4",
        "cmpult $m3, $m0, $m2",
        "add $m3, $m1, $m3",
        "add $m3, $m3, -1",
        "brneg $m3, .LEnd",
        "min $m2, $m0, $m2",
        "mul $m1, $m0, $m1",
        "add $m1, $m1, $m2",
        "ld32 $m8, $mvertex_base, $mzero, 5",
        "mul $m8, $m8, $m1",
        "ld32 $m6, $mvertex_base, $mzero, 0",
        "ld32 $m7, $mvertex_base, $mzero, 1",
        "add $m7, $m7, $m8",
        "ld32 $m8, $mvertex_base, $mzero, 2",
        "shl $m1, $m1, 2",
        "add $m8, $m8, $m1",
        "ld32 $m9, $mvertex_base, $mzero, 6",
        "ld32 $m10, $mvertex_base, $mzero, 7",
    ):
        text.op(line)
    text.bundle("tapack $m4:5, $m6, $m7, $m7", "setzi $a7, 8")


CPP_REFERENCE = f"""\
const long mine = long(share) + (long(worker) < long(rest) ? 1 : 0);
const long first = long(worker) * share + (long(worker) < long(rest) ? long(worker) : long(rest));
(void)pace;
for (long i = first; i < first + mine; ++i) {{
  float sum = 0.0f;
  for (long k = 0; k < {PER_LOAD} * (long(turns) + 2); ++k)
    sum += float(vector[k]) * float(matrix[i * (row / {size_bytes("f16")}) + k]);
  out[i] = sum;
}}
return true;
"""
"""The same rows by the same workers."""
