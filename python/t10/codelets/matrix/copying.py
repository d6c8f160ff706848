"""Operands copied into scratch memory line by line: aligned, contiguous along the inner axis, filled up with zeros.

A line is the inner axis at one point of the others. Lines lie at even distances, in planes at even distances; the copy
has them one after another, `pitch_bytes` apart:

```
target[plane * lines + line][k] = source[plane * plane_step + line * line_step + k * element_step], 0 behind the last k
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from t10.codelets.matrix.code import Bundle, WorkerCode
from t10.codelets.matrix.engine import WORD_BYTES, Engine
from t10.codelets.matrix.shape import (
    FRAME_LINES,
    FRAME_SOURCE,
    FRAME_TARGET,
    LINE_WORDS,
    Stage,
)
from t10.core.tile import N_WORKERS

MOST_SLACK = 2
"""Lines that are copied, at most, per line that is needed."""

COUNT, PLANES, LINE_STEP, PLANE_STEP, ELEMENT_STEP, GROUPS, LEFT, ZEROS, PITCH = range(len(LINE_WORDS))


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of an operand; `strides` are where its loops find theirs in the copy, in bytes, in the order given.

    `in_line_chain` of the loops go from line to line, the others from plane to plane.
    """

    count: int
    planes: int
    line_step: int
    plane_step: int
    element_step: int
    elements: int
    pitch_bytes: int
    strides: tuple[int, ...]
    in_line_chain: int

    @property
    def size_bytes(self) -> int:
        """Return the bytes of the copy."""
        return self.planes * self.count * self.pitch_bytes

    def words(self, engine: Engine) -> tuple[int, ...]:
        """Return the numbers that describe the lines to workers, in the order of `LINE_WORDS`."""
        return (
            self.count,
            self.planes,
            self.line_step,
            self.plane_step - self.count * self.line_step,
            self.element_step // engine.in_bytes,
            self.elements // engine.word_elements,
            self.elements % engine.word_elements,
            self.pitch_bytes // WORD_BYTES - -(-self.elements // engine.word_elements),
            self.pitch_bytes,
        )


@dataclass(frozen=True, slots=True)
class WeightLines:
    """Lines of the weights of a block of columns: those of every column, walked by loops of (extent, bytes)."""

    column_step: int
    loops: tuple[tuple[int, int], ...]
    element_step: int
    elements: int
    pitch_bytes: int
    in_line_chain: int

    def block(self, columns: int) -> Lines | None:
        """Return the lines of a block of so many columns."""
        loops = [(columns, self.column_step), *self.loops]
        return lines_of(loops, self.element_step, self.elements, self.pitch_bytes, self.in_line_chain)


_Cut = tuple[int, int, int, int, int]
"""Number and distance of lines, those of planes, and how many loops go from line to line."""


@dataclass(frozen=True, slots=True)
class Copies:
    """What of a product is copied: all lines of the streaming input, the weights block by block."""

    stage: Stage
    x: Lines | None
    w: WeightLines | None


def lines_of(
    loops: Sequence[tuple[int, int]],
    element_step: int,
    elements: int,
    pitch_bytes: int,
    in_line_chain: int | None = None,
) -> Lines | None:
    """Return how to copy the lines that loops of (extent, bytes) walk; None where they lie in no two even distances.

    The loops of shortest steps go from line to line, the others from plane to plane: `in_line_chain` of them, or as
    many as it takes to copy the fewest lines.
    """
    needed = 1
    for extent, stride in loops:
        needed *= extent if stride else 1
        if stride < 0:
            return None
    walking = [i for i, (_, stride) in enumerate(loops) if stride]
    order = sorted(walking, key=lambda i: loops[i][1])
    if not order:
        return Lines(1, 1, 0, 0, element_step, elements, pitch_bytes, (0,) * len(loops), 0)
    cuts = range(len(order), 0, -1) if in_line_chain is None else (in_line_chain,)
    best: _Cut | None = None
    for cut in cuts:
        found = (*_chain([loops[i] for i in order[:cut]]), *_chain([loops[i] for i in order[cut:]]), cut)
        if best is None or found[0] * found[2] < best[0] * best[2]:
            best = found
    if best is None or best[0] * best[2] > MOST_SLACK * needed:
        return None
    count, line_step, planes, plane_step, cut = best
    strides = [0] * len(loops)
    for place, i in enumerate(order):
        number = loops[i][1] // line_step if place < cut else loops[i][1] // plane_step * count
        strides[i] = number * pitch_bytes
    return Lines(
        count, planes, line_step, plane_step, element_step, elements, pitch_bytes, tuple(strides), cut
    )


def _chain(loops: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the number of lines that loops reach in steps of their common distance, and that distance."""
    step = span = 0
    for extent, stride in loops:
        step = gcd(step, stride)
        span += (extent - 1) * stride
    return (span // step + 1, step) if step else (1, 0)


def copy_code(engine: Engine, stage: Stage) -> WorkerCode:
    """Return the workers' code: line by line in turns. The frame says from where to where, and where the numbers are.

    $m0, $m1 are addresses of the line and its copy, $m2 its number in the plane, $m3 the planes to come, $m11 where the
    numbers are.
    """
    code = WorkerCode()
    op = code.op
    code.label(".Lcopy")
    for register, number in (("$m11", FRAME_LINES), ("$m0", FRAME_SOURCE), ("$m1", FRAME_TARGET)):
        op(f"ld32 {register}, $mvertex_base, $mzero, {number}")
    op("get $m2, $WSR")
    op("and $m2, $m2, 7")
    for register, number in (
        ("$m3", PLANES),
        ("$m5", LINE_STEP),
        ("$m6", ELEMENT_STEP),
        ("$m7", GROUPS),
        ("$m8", PITCH),
    ):
        op(f"ld32 {register}, $m11, $mzero, {number}")
    for register, address in (("$m5", "$m0"), ("$m8", "$m1")):
        op(f"mul $m10, $m2, {register}")
        op(f"add {address}, {address}, $m10")
        op(f"mul {register}, {register}, {N_WORKERS}")
    code.label(".Lcopy_plane")
    op(f"ld32 $m4, $m11, $mzero, {COUNT}")
    op("cmpslt $m9, $m2, $m4")
    op("brnz $m9, .Lcopy_line")
    op(f"ld32 $m9, $m11, $mzero, {PLANE_STEP}")
    op("sub $m2, $m2, $m4")
    op("add $m0, $m0, $m9")
    op("add $m3, $m3, -1")
    op("brnz $m3, .Lcopy_plane")
    op("exitz $mzero")
    code.label(".Lcopy_line")
    op("mov $m9, $m0")
    op("mov $m10, $m1")
    if stage.in_runs and engine.in_dtype == "f16":
        _runs(code)
    else:
        code.repeat("$m7", _group(engine))
    _left(code, engine, "1" if stage.in_runs else "$m6")
    op(f"add $m2, $m2, {N_WORKERS}")
    op("add $m0, $m0, $m5")
    op("add $m1, $m1, $m8")
    op("bri .Lcopy_plane")
    return code


def _group(engine: Engine) -> list[Bundle]:
    """Return the bundles that copy one word of eight bytes, element by element."""
    load, nothing = "ldb16step" if engine.in_dtype == "f16" else "ld32step", "fnop"
    loads = [f"{load} $a{i}, $mzero, $m9+=, $m6" for i in range(4)]
    if engine.in_dtype == "f32":
        return [(loads[0], nothing), (loads[1], nothing), ("st64step $a0:1, $mzero, $m10+=, 1", nothing)]
    return [
        (loads[0], nothing),
        (loads[1], nothing),
        (loads[2], "sort4x16lo $a4, $a0, $a1"),
        (loads[3], nothing),
        ("nop", "sort4x16lo $a5, $a2, $a3"),
        ("st64step $a4:5, $mzero, $m10+=, 1", nothing),
    ]


def _runs(code: WorkerCode) -> None:
    """Add what copies contiguous f16 by 32-bit words; where a line begins in the middle of one, halves are joined."""
    load, nothing = "ld32step $a{}, $mzero, $m9+=, 1", "fnop"
    store = "st64step {}, $mzero, $m10+=, 1"
    code.op("and $m4, $m9, 2")
    code.op("brnz $m4, .Lcopy_odd")
    code.repeat(
        "$m7", [(load.format(0), nothing), (load.format(1), nothing), (store.format("$a0:1"), nothing)]
    )
    code.op("bri .Lcopy_left")
    code.label(".Lcopy_odd")
    code.op("add $m9, $m9, -2")
    code.op(load.format(3))
    code.repeat(
        "$m7",
        [
            (load.format(0), nothing),
            (load.format(1), "roll16 $a4, $a3, $a0"),
            ("nop", "roll16 $a5, $a0, $a1"),
            (store.format("$a4:5"), "mov $a3, $a1"),
        ],
    )
    code.op("add $m9, $m9, -2")
    code.label(".Lcopy_left")


def _left(code: WorkerCode, engine: Engine, step: str) -> None:
    """Add what copies the last, partial word, if there is one, and the words of zeros behind it."""
    op = code.op
    op(f"ld32 $m4, $m11, $mzero, {LEFT}")
    op("brz $m4, .Lcopy_zeros")
    if engine.in_dtype == "f32":
        code.bundles([(f"ld32step $a0, $mzero, $m9+=, {step}", "mov $a1, $azero")])
        op("st64step $a0:1, $mzero, $m10+=, 1")
    else:
        code.bundles([(f"ldb16step $a0, $mzero, $m9+=, {step}", "mov $a1, $azero")])
        code.bundles([("add $m4, $m4, -1", "mov $a2, $azero")])
        op("brz $m4, .Lcopy_word")
        op(f"ldb16step $a1, $mzero, $m9+=, {step}")
        op("add $m4, $m4, -1")
        op("brz $m4, .Lcopy_word")
        op(f"ldb16step $a2, $mzero, $m9+=, {step}")
        code.label(".Lcopy_word")
        op("sort4x16lo $a4, $a0, $a1")
        op("sort4x16lo $a5, $a2, $azero")
        op("st64step $a4:5, $mzero, $m10+=, 1")
    code.label(".Lcopy_zeros")
    op(f"ld32 $m4, $m11, $mzero, {ZEROS}")
    code.repeat("$m4", [("st64step $azeros, $mzero, $m10+=, 1", "fnop")])
