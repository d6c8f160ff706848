"""The code of depthwise convolutions on the short-window engine (`t10.codelets.matrix.windows`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from t10.codelets.assembly import Assembly
from t10.codelets.digest import named
from t10.codelets.matrix.code import Bundle, WorkerCode
from t10.codelets.matrix.supervisor import LOCAL
from t10.core.codelet import Codelet, Field
from t10.core.dtypes import size_bytes
from t10.core.tile import N_WORKERS

CHANNELS, WORD_BYTES = 4, 8
"""Channels that go through the engine at once, and bytes of them, and of what a step gives."""
TAP_BYTES = CHANNELS * WORD_BYTES
ZERO_TAP = 5
"""So many taps go through in pieces of three, a zero in the place of the third one in the second piece."""
RECIPROCAL_BITS = 8
FRAME_INPUT, FRAME_OUTPUT, FRAME_NEXT, FRAME_STATE, FRAME_COUNTERS = range(5)

X, X_STILL, XP = "ld2x64pace $a0:1, $a2:3, $m4:5+=, $m3, {}", 1 | 3 << 2, 1 | 2 << 2
X_STORE = "ldst64pace $a0:1, $a4:5, $m4:5+=, $m3, 9"
STORE = "st64pace $a4:5, $m4:5+=, $m3, 2"
"""Strides: 1 from position to position of the input, 2 of the output, 3 none."""


@dataclass(frozen=True, slots=True)
class Structure:
    """What the code depends on.

    That is the sums' type, positions of the input from one result to the next, taps of the pieces of a window's row,
    and how many loops there are around all that.
    """

    out_dtype: Literal["f16", "f32"]
    stride: int
    pieces: tuple[int, ...]
    has_zero: bool
    n_outs: int

    @property
    def halves(self) -> int:
        """Return how often a row goes through the engine."""
        return 1 if self.out_dtype == "f16" else 2

    @property
    def row_bytes(self) -> int:
        """Return the bytes of the weights of a window's row."""
        return TAP_BYTES * sum(self.pieces)

    @property
    def stack_bytes(self) -> int:
        """Return the bytes of the supervisor's frame."""
        return -(-4 * (FRAME_COUNTERS + self.n_outs) // 8) * 8

    def words(self) -> tuple[str, ...]:
        """Return the names of the numbers of a vertex, in order."""
        outs = [f"{name}{i}" for i in range(self.n_outs) for name in ("count", "x_out", "w_out", "out_out")]
        return (*NUMBERS, *(f"x_step{i}" for i in range(len(self.pieces))), *outs)

    def word(self, name: str) -> int:
        """Return where a word of a vertex stands."""
        return (*POINTERS, *self.words()).index(name)


POINTERS = ("x", "w", "scratch", "out")
NUMBERS = (
    "kernel_rows", "out_next", "pace", "x_row", "out_row", "x_col", "out_col", "row_share", "row_rest", "col_share",
    "col_rest", "col_groups", "col_reciprocal", "groups", "group_bytes", "w_row", "w_tap",
)  # fmt: skip
"""`kernel_rows` of the window; `groups` of channels; steps are in bytes, `w_tap` in words of eight."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row through the engine: bundles before, within and after a loop that runs `n - least` times for n results."""

    least: int
    before: tuple[Bundle, ...]
    loop: tuple[Bundle, ...]
    after: tuple[Bundle, ...]


@lru_cache(maxsize=64)
def row_through(structure: Structure, taps: int, *, adds: bool, half: int = 0) -> Row:
    """Return the row loop: rows of any length are alike but for how often what is in the middle occurs."""
    n = 1
    while True:
        short, longer, longest = (_bundles(structure, taps, n + i, adds=adds, half=half) for i in range(3))
        more = len(longer) - len(short)
        for at in range(len(short)):
            loop = longer[at : at + more]
            before, after = short[:at], short[at:]
            if longer == before + loop + after and longest == before + 2 * loop + after:
                return Row(n, tuple(before), tuple(loop), tuple(after))
        n += 1


def _bundles(structure: Structure, taps: int, n: int, *, adds: bool, half: int) -> list[Bundle]:
    """Return all bundles of a row of n results: step t takes position t, and gives the sum that began `taps` before.

    Results go to $a4:5 until they are stored, what is no result to $a6:7.
    """
    stride, last = structure.stride, structure.stride * (n - 1) + taps
    name = "f16v4hihov4slic" if structure.out_dtype == "f16" else "f16v4sisoslic"
    flag = f"TSLIC_F16V4_1x{taps}_W{half}"
    found: list[Bundle] = [(X.format(XP if adds and n > 1 else X_STILL), "")]
    is_waiting = False
    for step in range(last + 1):
        takes_next = step + 1 < last
        number, within = divmod(step + 1, stride)
        adds_next = adds and not within and number < n
        gives = step >= taps and (step - taps) % stride == 0
        begins = adds and step % stride == 0 and step // stride < n
        value, partial = ("$azeros" if step == last else "$a0:1"), ("$a2:3" if begins else "$azeros")
        slic = f"{name} {'$a4:5' if gives else '$a6:7'}, {value}, {partial}, {flag}"
        if is_waiting and takes_next and adds_next and gives:
            found.append((STORE, ""))
            is_waiting = False
        if is_waiting and not (takes_next and adds_next):
            found.append((X_STORE if takes_next else STORE, slic))
            is_waiting = False
        elif takes_next:
            found.append((X.format(XP if adds_next and number < n - 1 else X_STILL), slic))
        else:
            found.append(("", slic))
        is_waiting = is_waiting or gives
    return [*found, (STORE, "")]


@lru_cache(maxsize=256)
def codelet_of(structure: Structure) -> Codelet:
    """Return the code of a structure."""
    fields = (
        Field("x", "in", "f16", WORD_BYTES),
        Field("w", "in", "f16", WORD_BYTES),
        Field("scratch", "scratch", "", WORD_BYTES),
        Field("out", "inout", structure.out_dtype, WORD_BYTES),
        *(Field(name, "i32") for name in structure.words()),
    )
    assembly, reference = _assembly(structure), _reference(structure)
    name = named(f"Matrix_windows_f16_{structure.out_dtype}", fields, "\n".join(assembly.lines), reference)
    text = assembly.text(name, "supervisor", structure.stack_bytes)
    summary = "windows over each channel on the short-window engine"
    return Codelet(
        name, "supervisor", fields, text, reference, summary, structure.stack_bytes, (("x", "out"),)
    )


def _assembly(structure: Structure) -> Assembly:
    """Return the supervisor's code, then the workers'."""
    text = Assembly()
    op, word = text.op, structure.word
    op(f"add $sp, $sp, {-structure.stack_bytes}")
    op(f"st32 $m0, $sp, $mzero, {FRAME_STATE}")
    op(f"ld32 $m6, $m0, $mzero, {word('out_next')}")
    op(f"st32 $m6, $sp, $mzero, {FRAME_NEXT}")
    op("setzi $m5, .Lsetup")
    op("runall $m5, $sp, 0")
    for register, name in (("$m1", "x"), ("$m2", "scratch"), ("$m3", "out")):
        op(f"ld32 {register}, $m0, $mzero, {word(name)}")
    for level in range(structure.n_outs):
        op(f"ld32 $m6, $m0, $mzero, {word(f'count{level}')}")
        op("add $m6, $m6, -1")
        text.label(f".Lout{level}")
        op(f"st32 $m6, $sp, $mzero, {FRAME_COUNTERS + level}")
    op(f"ld32 $m4, $m0, $mzero, {word('kernel_rows')}")
    op("add $m4, $m4, -1")
    op(f"setzi $m8, .Lbegin{structure.pieces[0]}")
    text.label(".Lkernel")
    for number, taps in enumerate(structure.pieces):
        _piece(text, structure, number, taps)
    op("brnzdec $m4, .Lkernel")
    for level in reversed(range(structure.n_outs)):
        for register, name in (("$m1", "x_out"), ("$m2", "w_out"), ("$m3", "out_out")):
            op(f"ld32 $m6, $m0, $mzero, {word(f'{name}{level}')}")
            op(f"add {register}, {register}, $m6")
        op(f"ld32 $m6, $sp, $mzero, {FRAME_COUNTERS + level}")
        op(f"brnzdec $m6, .Lout{level}")
    op(f"sync {LOCAL}")
    op(f"add $sp, $sp, {structure.stack_bytes}")
    op("br $lr")
    text.lines.append("  .worker")
    code = WorkerCode()
    _diagonals(code, structure)
    _share(code, structure)
    for taps in sorted(set(structure.pieces)):
        for adds in (False, True) if taps == structure.pieces[0] else (True,):
            _rows(code, structure, taps, adds=adds)
    code.write(text)
    return text


def _piece(text: Assembly, structure: Structure, number: int, taps: int) -> None:
    """Add the loading of a piece's weights and its launch; the workers of the piece before may still run."""
    op = text.op
    op("put $CCCSLOAD, $m2")
    op(f"add $m2, $m2, {TAP_BYTES * taps}")
    op(f"ld32 $m6, $m0, $mzero, {structure.word(f'x_step{number}')}")
    op(f"sync {LOCAL}")
    op(f"st32 $m1, $sp, $mzero, {FRAME_INPUT}")
    op(f"st32 $m3, $sp, $mzero, {FRAME_OUTPUT}")
    for tap in range(taps):
        unit = 2 * (taps - 1 - tap)
        second = 4 * 8 if structure.halves == 1 else 1
        for place in (4 * unit, 4 * unit + 4, 4 * unit + second, 4 * unit + 4 + second):
            op(f"ld64putcs {place}")
    if number:
        op(f"setzi $m5, .Ladd{taps}")
        op("runall $m5, $sp, 0")
    else:
        op("runall $m8, $sp, 0")
        op(f"setzi $m8, .Ladd{taps}")
    op("add $m1, $m1, $m6")


def _diagonals(code: WorkerCode, structure: Structure) -> None:
    """Add what writes weights as the engine takes them: four words per tap, of one channel each; row by row in turns.

    $m0 is the number of a row, $m1, $m2 where the group's weights are read and written, $m3 the groups to come, $m8
    the vertex's words.
    """
    op, word = code.op, structure.word
    code.label(".Lsetup")
    op(f"ld32 $m8, $mvertex_base, $mzero, {FRAME_STATE}")
    op("get $m0, $WSR")
    op("and $m0, $m0, 7")
    for register, name in (
        ("$m1", "w"),
        ("$m2", "scratch"),
        ("$m3", "groups"),
        ("$m4", "kernel_rows"),
        ("$m7", "w_tap"),
        ("$m9", "group_bytes"),
        ("$m10", "w_row"),
    ):
        op(f"ld32 {register}, $m8, $mzero, {word(name)}")
    code.bundles([(f"setzi $m11, {structure.row_bytes}", "mov $a2, $azero")])
    code.bundles([("nop", "mov $a5, $azero"), ("nop", "setzi $a6, 0xffff")])
    code.label(".Ldiagonal")
    op("cmpult $m5, $m0, $m4")
    op("brnz $m5, .Ldiagonal_row")
    op("sub $m0, $m0, $m4")
    op(f"add $m1, $m1, {WORD_BYTES}")
    op("add $m2, $m2, $m9")
    op("add $m3, $m3, -1")
    op("brnz $m3, .Ldiagonal")
    op("bri .Lshare")
    code.label(".Ldiagonal_row")
    op("mul $m5, $m0, $m10")
    op("add $m5, $m5, $m1")
    op("mul $m6, $m0, $m11")
    op("add $m6, $m6, $m2")
    store = "st64step {}, $mzero, $m6+=, 1"
    tap: list[Bundle] = [
        ("ld64step $a0:1, $mzero, $m5+=, $m7", "fnop"),
        ("nop", "and $a4, $a0, $a6"),
        (store.format("$a4:5"), "andc $a4, $a0, $a6"),
        (store.format("$a4:5"), "and $a3, $a1, $a6"),
        (store.format("$a2:3"), "andc $a3, $a1, $a6"),
        (store.format("$a2:3"), "fnop"),
    ]
    if structure.has_zero:
        code.repeat(str(structure.pieces[0]), tap)
        code.bundles([(store.format("$azeros"), "")] * CHANNELS)
        code.repeat(str(ZERO_TAP - structure.pieces[0]), tap)
    else:
        code.repeat(str(sum(structure.pieces)), tap)
    op(f"add $m0, $m0, {N_WORKERS}")
    op("bri .Ldiagonal")


def _share(code: WorkerCode, structure: Structure) -> None:
    """Add what finds a worker's share of rows and columns, which registers keep from launch to launch.

    $m0, $m1 are where it begins in input and output, $m2 its rows but one, $m3 strides, $m8 its columns, $m11 bytes
    from row to row of the input.
    """
    op, word = code.op, structure.word
    code.label(".Lshare")
    op("get $m4, $WSR")
    op("and $m4, $m4, 7")
    op(f"ld32 $m5, $m8, $mzero, {word('col_reciprocal')}")
    op("mul $m5, $m5, $m4")
    op(f"shr $m5, $m5, {RECIPROCAL_BITS}")
    op(f"ld32 $m6, $m8, $mzero, {word('col_groups')}")
    op("mul $m6, $m6, $m5")
    op("sub $m6, $m4, $m6")
    for count, place, name in (("$m2", "$m5", "row"), ("$m4", "$m6", "col")):
        op(f"ld32 $m7, $m8, $mzero, {word(f'{name}_share')}")
        op(f"ld32 $m9, $m8, $mzero, {word(f'{name}_rest')}")
        op(f"cmpult {count}, {place}, $m9")
        op(f"add {count}, {count}, $m7")
        op(f"min $m9, {place}, $m9")
        op(f"mul $m7, {place}, $m7")
        op("add $m7, $m7, $m9")
        op(f"ld32 $m10, $m8, $mzero, {word(f'x_{name}')}")
        op(f"ld32 $m9, $m8, $mzero, {word(f'out_{name}')}")
        if name == "row":
            op("mul $m0, $m7, $m10")
            op("mul $m1, $m7, $m9")
            op("mov $m11, $m10")
        else:
            op("mul $m10, $m7, $m10")
            op("mul $m9, $m7, $m9")
            op("add $m0, $m0, $m10")
            op("add $m1, $m1, $m9")
    op("add $m2, $m2, -1")
    op(f"ld32 $m3, $m8, $mzero, {word('pace')}")
    op("mov $m8, $m4")
    op("exitz $mzero")


def _rows(code: WorkerCode, structure: Structure, taps: int, *, adds: bool) -> None:
    """Add the rows of a worker through the engine: they begin from zero, or add to the output."""
    op, name = code.op, f"{'add' if adds else 'begin'}{taps}"
    halves = [row_through(structure, taps, adds=adds, half=half) for half in range(structure.halves)]
    code.label(f".L{name}")
    op(f"ld32 $m6, $mvertex_base, $mzero, {FRAME_INPUT}")
    op(f"ld32 $m7, $mvertex_base, $mzero, {FRAME_OUTPUT}")
    op(f"brneg $m2, .Ldone_{name}")
    op("add $m6, $m6, $m0")
    op("add $m7, $m7, $m1")
    op("mov $m9, $m2")
    op(f"add $m10, $m8, {-halves[0].least}")
    code.label(f".Lrow_{name}")
    for half, row in enumerate(halves):
        if half:
            op(f"add $m7, $m7, {WORD_BYTES}")
        op("tapack $m4:5, $m6, $m7, $m7")
        code.bundles(row.before)
        code.repeat("$m10", row.loop)
        code.bundles(row.after)
    op(f"ld32 $m4, $mvertex_base, $mzero, {FRAME_NEXT}")
    op("add $m6, $m6, $m11")
    op("add $m7, $m7, $m4")
    op(f"brnzdec $m9, .Lrow_{name}")
    code.label(f".Ldone_{name}")
    op("exitz $mzero")


def _reference(structure: Structure) -> str:
    """Return the C++ that computes the same sums in the same pieces."""
    out = "half" if structure.out_dtype == "f16" else "float"
    size, taps = size_bytes(structure.out_dtype), sum(structure.pieces)
    zero = structure.pieces[0] if structure.has_zero else taps
    lines = [
        "half *diagonals = view<half>(scratch);",
        "(void)pace, (void)col_reciprocal, (void)out_next;",
        "for (long g = 0; g < groups; ++g)",
        "  for (long r = 0; r < kernel_rows; ++r)",
        f"    for (long t = 0; t < {taps}; ++t)",
        "      for (long c = 0; c < 16; ++c)",
        f"        diagonals[g * (group_bytes / 2) + (r * {taps} + t) * 16 + c] = c % 5 || t == {zero} ? half(0.0f)",
        f"          : w[4 * g + r * (w_row / 2) + (t > {zero} ? t - 1 : t) * 4 * long(w_tap) + c % 4];",
        f"const long n_rows = {N_WORKERS} / col_groups * row_share + row_rest;",
        "const long n_columns = col_groups * col_share + col_rest;",
        "long x_byte = 0, w_byte = 0, out_byte = 0;",
    ]
    for level in range(structure.n_outs):
        lines.append(f"for (long i{level} = 0; i{level} < count{level}; ++i{level}) {{")
    lines += ["bool adds = false;", "for (long r = 0; r < kernel_rows; ++r) {"]
    for number, count in enumerate(structure.pieces):
        lines += [
            "for (long i = 0; i < n_rows; ++i)",
            "  for (long j = 0; j < n_columns; ++j)",
            "    for (long c = 0; c < 4; ++c) {",
            f"      {out} &sum = out[(out_byte + i * out_row + j * out_col) / {size} + c];",
            "      float total = adds ? float(sum) : 0.0f;",
            f"      for (long t = 0; t < {count}; ++t)",
            "        for (long k = 0; k < 4; ++k)",
            f"          total += float(x[(x_byte + i * x_row + j * x_col + t * x_col / {structure.stride}) / 2 + k]) *",
            "                   float(diagonals[w_byte / 2 + 16 * t + 4 * c + k]);",
            f"      sum = {out}(total);",
            "    }",
            f"adds = true, x_byte += x_step{number}, w_byte += {TAP_BYTES * count};",
        ]
    lines.append("}")
    for level in reversed(range(structure.n_outs)):
        lines.append(f"x_byte += x_out{level}, w_byte += w_out{level}, out_byte += out_out{level}; }}")
    return "\n".join([*lines, "return true;", ""])
