"""Small complete device programs, made by hand: a ring that shifts, a reduction over tiles, a strided relayout.

Every program comes with what it computes in numpy, so that every engine can be held against the same truth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.codelet import ENTRY_PREFIX, Codelet, Field
from t10.core.device import (
    ComputeSet,
    Copy,
    CopyKind,
    DeviceProgram,
    Exchange,
    Execute,
    HostPiece,
    HostTensor,
    MemoryMap,
    OperatorProgram,
    Pattern,
    PerTile,
    Reference,
    Repeat,
    Variable,
    VertexGroup,
    VertexKind,
)
from t10.emit.patterns import received_bytes

Array = NDArray[Any]
STATE, DATA = 0x80000, 0x84000
MEMORY = MemoryMap(
    base=0x4C000, code=0x4C000, state=STATE, scratch=0x81000, stack=0x82000, exchange=0x83000, free=DATA, data=DATA,
    end=0xE8000,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A program, values for its weights and inputs, and what its outputs must be."""

    program: DeviceProgram
    weights: Mapping[str, Array]
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]


def _elementwise(
    name: str, fields: tuple[Field, ...], lines: str, cpp_reference: str, summary: str
) -> Codelet:
    """Return a codelet that computes element i on worker i % 6; its last field is the number of elements."""
    entry = ENTRY_PREFIX + name
    loads = "\n".join(f"  ld32 $m{i}, $mvertex_base, $mzero, {i}" for i in range(len(fields)))
    assembly = f"""\
.section .text.{entry}, "ax"
.globl {entry}
.type {entry}, @function
.align 8
.worker
{entry}:
  get $m8, $WSR
  and $m8, $m8, 7
{loads}
.L_{name}_loop:
  cmpult $m9, $m8, $m{len(fields) - 1}
  brz $m9, .L_{name}_end
{lines}
  add $m8, $m8, 6
  bri .L_{name}_loop
.L_{name}_end:
  exitz $mzero
.size {entry}, . - {entry}
DEF_STACK_USAGE 0, {entry}
"""
    loop = f"for (unsigned i = worker; i < n; i += 6) {{ {cpp_reference} }}\nreturn true;"
    return Codelet(name, "multi", fields, assembly, loop, summary)


FILL = _elementwise(
    "Test_fill",
    (Field("out", "out", "f32", 4), Field("value", "f32"), Field("n", "u32")),
    "  ld32 $a0, $mvertex_base, $mzero, 1\n  st32 $a0, $m0, $mzero, $m8",
    "out[i] = value;",
    "out = value",
)
MULTIPLY_ADD = _elementwise(
    "Test_multiply_add",
    (
        Field("x", "in", "f32", 4),
        Field("w", "in", "f32", 4),
        Field("acc", "inout", "f32", 4),
        Field("n", "u32"),
    ),
    "  ld32 $a0, $m0, $mzero, $m8\n  ld32 $a1, $m1, $mzero, $m8\n  ld32 $a2, $m2, $mzero, $m8\n"
    "  f32mul $a0, $a0, $a1\n  f32add $a2, $a2, $a0\n  st32 $a2, $m2, $mzero, $m8",
    "acc[i] = acc[i] + x[i] * w[i];",
    "acc += x * w",
)
SCALE = _elementwise(
    "Test_scale",
    (Field("x", "in", "f32", 4), Field("out", "out", "f32", 4), Field("factor", "f32"), Field("n", "u32")),
    "  ld32 $a1, $mvertex_base, $mzero, 2\n  ld32 $a0, $m0, $mzero, $m8\n  f32mul $a0, $a0, $a1\n"
    "  st32 $a0, $m1, $mzero, $m8",
    "out[i] = x[i] * factor;",
    "out = x * factor",
)
COMBINE = _elementwise(
    "Test_combine",
    (
        Field("x", "in", "f32", 4),
        Field("out", "out", "f32", 4),
        Field("rows", "u32"),
        Field("n", "u32"),
    ),
    "  mov $m4, $m0\n  add $m5, $m2, -1\n  shl $m6, $m3, 2\n  ld32 $a0, $m4, $mzero, $m8\n"
    ".L_Test_combine_row:\n  brz $m5, .L_Test_combine_store\n  add $m5, $m5, -1\n  add $m4, $m4, $m6\n"
    "  ld32 $a1, $m4, $mzero, $m8\n  f32add $a0, $a0, $a1\n  bri .L_Test_combine_row\n.L_Test_combine_store:\n"
    "  st32 $a0, $m1, $mzero, $m8",
    "float sum = x[i]; for (unsigned r = 1; r < rows; ++r) sum += x[r * n + i]; out[i] = sum;",
    "out = sum of rows of x",
)


def pattern(
    runs: Sequence[Sequence[int]] = (),
    fills: Sequence[Sequence[int]] = (),
    values: Sequence[int] = (),
    constants: tuple[str, ...] = (),
) -> Pattern:
    """Return a pattern of these runs and fills, sorted and with its key."""
    run_rows = np.array(sorted(runs, key=lambda r: (r[3], r[4])), np.int32).reshape(-1, 9)
    fill_rows = np.array(fills, np.int32).reshape(-1, 5)
    fill_values = np.array(values, np.int32)
    digest = hashlib.blake2b(digest_size=8)
    for part in (run_rows.tobytes(), fill_rows.tobytes(), fill_values.tobytes(), repr(constants).encode()):
        digest.update(part)
    return Pattern(digest.hexdigest(), run_rows, fill_rows, fill_values, constants)


class Maker:
    """Collects the parts of a program; variables lie one after the other from `DATA` on."""

    def __init__(self, name: str, n_tiles: int) -> None:
        self.name, self.n_tiles = name, n_tiles
        self.variables: list[Variable] = []
        self.compute_sets: list[ComputeSet] = []
        self.copies: list[Copy] = []
        self.patterns: dict[str, Pattern] = {}
        self.codelets: dict[str, Codelet] = {}
        self.state = STATE

    def variable(self, name: str, role: Any, dtype: str, n: int, size: int, comment: str = "") -> str:
        address = DATA + 64 * len(self.variables) * 64
        self.variables.append(Variable(name, role, dtype, (n,), self.n_tiles, address, comment))
        assert n * size <= 64 * 64
        return name

    def execute(
        self, name: str, operator: str, kind: VertexKind, codelet: Codelet, *words: PerTile | Reference | str
    ) -> Execute:
        """Add a compute set of one group on all tiles; a name stands for the beginning of a variable."""
        self.codelets[codelet.name] = codelet
        all_words = tuple(Reference(w, 0) if isinstance(w, str) else w for w in words)
        group = VertexGroup(codelet.name, tuple(range(self.n_tiles)), all_words, self.state, 100)
        self.state += 4 * len(words)
        self.compute_sets.append(
            ComputeSet(name, operator, kind, (group,), 100, f"{codelet.summary} on all tiles")
        )
        return Execute(name)

    def exchange(
        self,
        name: str,
        operator: str,
        kind: CopyKind,
        sources: tuple[str, ...],
        target: str,
        rows: Pattern,
        dtype: str,
    ) -> Exchange:
        self.patterns[rows.key] = rows
        self.copies.append(
            Copy(
                name,
                operator,
                kind,
                sources,
                target,
                dtype,
                rows.key,
                received_bytes(rows.runs, self.n_tiles),
                120,
                f"{kind} of {target}",
            )  # fmt: skip
        )
        return Exchange(name)

    def program(
        self,
        operators: tuple[OperatorProgram, ...],
        weights: tuple[HostTensor, ...],
        inputs: tuple[HostTensor, ...],
        outputs: tuple[HostTensor, ...],
    ) -> DeviceProgram:
        return DeviceProgram(
            self.name,
            "test-16",
            self.n_tiles,
            MEMORY,
            tuple(self.variables),
            tuple(self.codelets.values()),
            tuple(self.compute_sets),
            tuple(self.patterns.values()),
            tuple(self.copies),
            operators,
            weights,
            inputs,
            outputs,
            graph_comment="made by hand",
        )


def host(
    name: str, dtype: str, shape: tuple[int, ...], variable: str, elements: Array, fill: str = "0"
) -> HostTensor:
    """Return a host tensor that lies in one variable."""
    return HostTensor(name, dtype, shape, (HostPiece(variable, elements.astype(np.int32), fill),))


def bits(value: float) -> int:
    """Return the bits of an f32."""
    return int(np.float32(value).view(np.uint32))


def _values(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32) / 4


def ring(n_tiles: int = 4, n: int = 10) -> Case:
    """Return y[t] = factor[t] * sum over all s of x[t] * w[s], the rows of w rotating over a ring of all tiles."""
    m = Maker("ring", n_tiles)
    x = m.variable("input:x", "input", "f32", n, 4, "input x: one row per tile")
    idle = m.variable("idle:w", "weight", "f32", n + 2, 4, "weight w at rest, two elements of padding")
    w = m.variable("arrival:mix:1", "buffer", "f32", n, 4, "window of w, rotates by one row")
    shift = m.variable("shift", "buffer", "f32", n, 4, "what arrives during a shift")
    acc = m.variable("accumulator:mix", "partial", "f32", n, 4, "partial sums of mix")
    y = m.variable("value:y", "output", "f32", n, 4, "output y")
    tiles = range(n_tiles)
    setup = pattern([(0, t, 0, t, 0, 4 * n, 1, 0, 0) for t in tiles])
    rotate = pattern([(0, (t + 1) % n_tiles, 0, t, 0, 4 * n, 1, 0, 0) for t in tiles])
    factors = [1 + 0.5 * t for t in tiles]
    multiply = m.execute("sub_task:mix", "mix", "sub_task", MULTIPLY_ADD, x, w, acc, n)
    body = (
        multiply,
        m.exchange("shift:mix:1", "mix", "shift", (w,), shift, rotate, "f32"),
        m.exchange("copy_out:mix:1", "mix", "copy_out", (shift,), w, setup, "f32"),
    )
    steps = (
        m.exchange("setup:mix:1", "mix", "setup", (idle,), w, setup, "f32"),
        m.execute("fill:mix", "mix", "fill", FILL, acc, 0, n),
        Repeat(n_tiles - 1, body),
        multiply,
        m.execute("epilogue:mix", "mix", "epilogue", SCALE, acc, y, tuple(bits(f) for f in factors), n),
    )
    rows = np.arange(n_tiles * n).reshape(n_tiles, n)
    padded = np.pad(rows, ((0, 0), (0, 2)), constant_values=-1)
    x_values, w_values = _values(1, n_tiles, n), _values(2, n_tiles, n)
    return Case(
        m.program(
            (OperatorProgram("mix", steps),),
            (host("w", "f32", (n_tiles, n), idle, padded, "7.5"),),
            (host("x", "f32", (n_tiles, n), x, rows),),
            (host("y", "f32", (n_tiles, n), y, rows),),
        ),
        {"w": w_values},
        {"x": x_values},
        {"y": np.array(factors, np.float32)[:, None] * x_values * w_values.sum(0)},
    )


def reduction(n_tiles: int = 3, n: int = 5) -> Case:
    """Return y = 1.5 + sum over tiles of x[t]: every tile adds its share; the constant comes from a fill."""
    m = Maker("reduction", n_tiles)
    x = m.variable("input:x", "input", "f32", n_tiles * n, 4, "partial sums, one of y per tile")
    box = m.variable("reduce:y", "buffer", "f32", (n_tiles + 1) * n, 4, "shares of all tiles, then 1.5")
    y = m.variable("value:y", "output", "f32", n, 4, "share of y")
    runs = [(0, s, 4 * n * t, t, 4 * n * s, 4 * n, 1, 0, 0) for t in range(n_tiles) for s in range(n_tiles)]
    fills = [(t, 4 * n * n_tiles, 4, n, 4) for t in range(n_tiles)]
    rows = pattern(runs, fills, [0] * n_tiles, ("1.5",))
    steps = (
        m.exchange("reduce:y", "add", "reduce", (x,), box, rows, "f32"),
        m.execute("combine:y", "add", "combine", COMBINE, box, y, n_tiles + 1, n),
    )
    elements = np.arange(n_tiles * n).reshape(n_tiles, n)
    values = _values(3, n_tiles, n_tiles * n)
    return Case(
        m.program(
            (OperatorProgram("add", steps),),
            (),
            (host("x", "f32", values.shape, x, np.arange(values.size).reshape(values.shape)),),
            (host("y", "f32", (n_tiles * n,), y, elements),),
        ),
        {},
        {"x": values},
        {"y": (values.sum(0) + 1.5).astype(np.float32)},
    )


def relayout(dtype: str = "f16", size: int = 2) -> Case:
    """Return the transpose of a 4 x 6 matrix on 4 tiles (a row each) on 3 tiles (two columns each), padded by ones."""
    m = Maker(f"relayout_{dtype}", 4)
    x = m.variable("input:x", "input", dtype, 6, size, "row t of x on tile t")
    y = m.variable("value:y", "output", dtype, 10, size, "columns 2t, 2t + 1 of x, each with one of padding")
    runs = [(0, s, 2 * size * t, t, size * s, size, 2, size, 5 * size) for t in range(3) for s in range(4)]
    fills = [(t, 4 * size, size, 2, 5 * size) for t in range(3)]
    rows = pattern(runs, fills, [0] * 3, ("1",))
    move = m.exchange("relayout:x", "transpose", "relayout", (x,), y, rows, dtype)
    values = (np.arange(24).reshape(4, 6) - 9).astype(
        {"f16": np.float16, "i64": np.int64, "i8": np.int8}[dtype]
    )
    elements = np.full((4, 10), -1)
    elements[:3] = np.pad(np.arange(24).reshape(6, 4), ((0, 0), (0, 1)), constant_values=-1).reshape(3, 10)
    return Case(
        m.program(
            (OperatorProgram("transpose", (move,)),),
            (),
            (host("x", dtype, (4, 6), x, np.arange(24).reshape(4, 6)),),
            (host("y", dtype, (6, 4), y, elements),),
        ),
        {},
        {"x": values},
        {"y": values.T},
    )


CASES: Mapping[str, Callable[[], Case]] = {
    "ring": ring,
    "reduction": reduction,
    "relayout-f16": relayout,
    "relayout-i64": lambda: relayout("i64", 8),
    "relayout-i8": lambda: relayout("i8", 1),
}


def with_codelet(program: DeviceProgram, codelet: Codelet) -> DeviceProgram:
    """Return the program with a codelet in place of the one of the same name."""
    return replace(
        program, codelets=tuple(codelet if c.name == codelet.name else c for c in program.codelets)
    )
