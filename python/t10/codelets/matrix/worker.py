"""What the workers run: their share of the rows through the engine, against the weights that are resident.

Registers survive from launch to launch, so a worker reads its share once (`setup`), the output's block when it changes
(`begin` from zero, `first` adding), and in further blocks of a sum only takes the input's address from its vertex base
(`next`). The supervisor's frame holds the addresses of input and output and of the vertex's words.
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.codelets.matrix.code import WorkerCode
from t10.codelets.matrix.engine import WORD_BYTES
from t10.codelets.matrix.shape import (
    FRAME_ADDS,
    FRAME_FIRST,
    FRAME_INPUT,
    FRAME_OUTPUT,
    FRAME_STATE,
    Structure,
)
from t10.codelets.matrix.share_code import (
    FIRST_ROWS,
    OUT_FIRST,
    ROWS,
    X_FIRST,
    next_segment_code,
    segments_code,
    share_code,
)
from t10.codelets.matrix.stream import (
    STEPPING,
    WIDE_PARTIALS,
    Access,
    Registers,
    Stream,
    back_pace,
    output_steps,
)
from t10.codelets.matrix.twin import Twin
from t10.codelets.matrix.worker_rounding import rounding_code

REGION_0 = "TMEM_REGION0_BASE_ADDR"
"""An address in no element of the interleaved region: the SDK's name for where a tile's memory begins."""
PLAIN: frozenset[Access] = frozenset(("packed", *STEPPING))


def worker_code(structure: Structure) -> WorkerCode:
    """Return the code of the entries `.Lsetup`, `.Lbegin`, `.Lfirst` and, of evenly spaced rows, `.Lnext`."""
    if structure.engine.rounding:
        return rounding_code(structure)
    return _Segments(structure).code() if structure.has_segments else _Rows(structure).code()


def _stream(structure: Structure, registers: Registers, *, adds: bool) -> Stream:
    """Return the row loop that adds to the output, or begins from zero."""
    access = (structure.add if adds else structure.begin) or "single"
    row = registers.input if structure.has_first and not adds else ""
    return Stream(structure.engine, structure.kit, adds or bool(row), access, registers, first_row=row)


def _choose(code: WorkerCode, structure: Structure) -> None:
    """Add the way from the setup to `.Lfirst` where sums begin by adding; else it goes on with what follows."""
    if structure.has_both:
        code.op(f"ld32 $m5, $mvertex_base, $mzero, {FRAME_ADDS}")
        code.op("brnz $m5, .Lfirst")


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows evenly spaced: one loop per launch.

    Kept: $m0 input offset of the first row, $m1 output address of the first row, $m3 pace, $m8 the vertex's words, $m9
    output offset of the first row, $m11 rows beyond the least of the adding loop, $m2 those beyond the least of the one
    that begins; $m7, $m10 jumps where plain pointers step, else where partials go on after a wide start, and the bytes
    from row to row of the output. Where sums begin with a row of partials, $m8 holds where those of a block lie, then
    the pace that goes back to them.
    """

    structure: Structure

    def code(self) -> WorkerCode:
        code = WorkerCode()
        self._setup(code)
        _choose(code, self.structure)
        if self.structure.begin:
            code.label(".Lbegin")
            self._addresses(code)
            if self.structure.has_first:
                code.op(f"ld32 $m8, $mvertex_base, $mzero, {FRAME_FIRST}")
                code.op("sub $m8, $m8, $m9")
                code.op("add $m8, $m8, $m1")
            self._loop(code, adds=False)
        if self.structure.add:
            code.label(".Lfirst")
            self._addresses(code)
            if self.structure.is_wide:
                self._wide_loop(code)
                return code
            code.op("bri .Ladd")
            code.label(".Lnext")
            code.op("add $m6, $mvertex_base, $m0")
            code.label(".Ladd")
            self._loop(code, adds=True)
        return code

    def _setup(self, code: WorkerCode) -> None:
        structure, word = self.structure, self.structure.word
        code.label(".Lsetup")
        code.op(f"ld32 $m8, $mvertex_base, $mzero, {FRAME_STATE}")
        share_code(code, structure)
        for register, name, row in (("$m0", "x_row", "$m5"), ("$m9", "out_row", "$m10")):
            code.op(f"ld32 {row}, $m8, $mzero, {word(name)}")
            code.op(f"mul {register}, $m4, {row}")
        if structure.has_pace:
            code.op(f"ld32 $m3, $m8, $mzero, {word('pace')}")
        if structure.needs_jumps:
            unit, back = output_steps(structure.kit, by_words=structure.is_by_words)
            jumps = (("$m10", "x_row", WORD_BYTES, structure.kit.words - 1), ("$m7", "out_row", unit, back))
            for register, name, size, steps in jumps:
                code.op(f"ld32 {register}, $m8, $mzero, {word(name)}")
                code.op(f"shrs {register}, {register}, {size.bit_length() - 1}")
                code.op(f"add {register}, {register}, {-steps}")
        code.op(f"add $m11, $m2, {-self._least()}")
        if self._keeps_count:
            code.op(f"add $m2, $m2, {-self._row_loop(adds=False).least_rows}")

    @property
    def _keeps_count(self) -> bool:
        """Return whether $m2 holds the rows beyond the least of the loop that begins sums.

        Where no way leads from the setup to a loop that adds, counting would miss that $m11 is kept for that.
        """
        structure = self.structure
        has_loops = structure.begin is not None and structure.add is not None
        return has_loops and not structure.has_few and not structure.has_first

    def _least(self) -> int:
        """Return the least rows of the loop whose count $m11 is: the adding one's, if there is one."""
        return self._row_loop(adds=self.structure.add is not None).least_rows

    def _addresses(self, code: WorkerCode) -> None:
        code.op(f"ld32 $m6, $mvertex_base, $mzero, {FRAME_INPUT}")
        code.op(f"ld32 $m1, $mvertex_base, $mzero, {FRAME_OUTPUT}")
        code.op("add $m6, $m6, $m0")
        code.op("add $m1, $m1, $m9")
        if self.structure.is_wide:
            # Where partials go on after those of a wide start: in the first row, or in the second.
            is_whole_row = self.structure.kit.stores == WIDE_PARTIALS
            code.op(f"add $m7, $m1, {'$m10' if is_whole_row else WORD_BYTES * WIDE_PARTIALS}")

    def _wide_loop(self, code: WorkerCode) -> None:
        """Add the loop that adds, with a wide start; the input's address is found meanwhile, or is there already."""
        stream = self._stream(adds=True)
        stream.write_wide_start(code, "$m1", "bri .Ladd")
        code.label(".Lnext")
        stream.write_wide_start(code, "$m1", "add $m6, $mvertex_base, $m0")
        code.label(".Ladd")
        stream.write(code, "tapack $m4:5, $m6, $m7, $m1")
        code.op("exitz $mzero")

    def _stream(self, *, adds: bool) -> Stream:
        access = self.structure.add if adds else self.structure.begin
        count = "$m11" if adds or self.structure.add is None else "$m2"
        output = "$m5" if access in STEPPING else "$m1"
        pace = "$m8" if self.structure.has_first and not adds else "$m3"
        registers = Registers("$m6", "$m10", "$m4", output, "$m7", "$m4:5", pace, count)
        return _stream(self.structure, registers, adds=adds)

    def _row_loop(self, *, adds: bool) -> Stream | Twin:
        """Return the loop over rows, or over pairs of them."""
        stream = self._stream(adds=adds)
        is_twin = self.structure.kit.is_twin
        return Twin(stream.engine, adds, stream.registers) if is_twin else stream

    def _loop(self, code: WorkerCode, *, adds: bool) -> None:
        stream = self._row_loop(adds=adds)
        n = "_add" if adds else ""
        label = f".Lfew{n}"
        count = stream.registers.count
        if count == "$m2" and not self._keeps_count:
            code.op(f"add $m2, $m11, {self._least() - stream.least_rows}")
        if self.structure.has_few:
            code.op(f"brneg {count}, {label}")
        partials = "$m8" if self.structure.has_first and not adds else "$m1"
        self._point(code, stream, partials)
        stream.write(code)
        code.op("exitz $mzero")
        if self.structure.has_few:
            self._few(code, stream, n, partials)

    def _point(self, code: WorkerCode, stream: Stream | Twin, partials: str) -> None:
        """Set the pointers of a row loop."""
        aux = "" if stream.accumulates else "setzi $a7, 8"
        if stream.access == "packed":
            code.op("mov $m4, $m1")
        elif stream.access in STEPPING:
            code.bundles([(f"mov $m4, {partials}", "")] if stream.accumulates else [])
            code.bundles([("mov $m5, $m1", aux)])
        elif partials != "$m1":
            code.op(f"tapack $m4:5, $m6, {partials}, $m1")
            code.op(f"mov $m6, {partials}")
            code.op(f"or $m8, $m3, {back_pace(self.structure.kit)}")
        else:
            second = "$m1"
            if stream.access == "cross":
                code.op(f"setzi $m4, {REGION_0}")
                second = "$m4"
            code.bundles([(f"tapack $m4:5, $m6, {second}, $m1", aux)])

    def _few(self, code: WorkerCode, stream: Stream | Twin, n: str, partials: str) -> None:
        """Add the loop for fewer rows than the pipeline takes, none included."""
        code.label(f".Lfew{n}")
        code.op(f"add $m2, {stream.registers.count}, {stream.least_rows}")
        code.op(f"brz $m2, .Ldone{n}")
        code.op("add $m2, $m2, -1")
        code.op(f"mov $m4, {partials}")
        code.bundles([("mov $m5, $m1", "" if stream.accumulates else "setzi $a7, 8")])
        registers = Registers("$m6", "$m10", "$m4", "$m5", "$m7", "", "", "")
        code.label(f".Lrow{n}")
        _stream(self.structure, registers, adds=bool(n)).write_row(code)
        code.op(f"brnzdec $m2, .Lrow{n}")
        code.label(f".Ldone{n}")
        code.op("exitz $mzero")


@dataclass(frozen=True, slots=True)
class _Segments:
    """Rows in segments: every segment is a loop of its own; addresses and counts come from memory in every launch.

    Kept: $m8 the vertex's words, $m9 the frame moved on to the worker's share. In a launch: $m0 rows to come after this
    segment, $m6, $m7 addresses of the segment, $m10 where the way to the next segment stands.
    """

    structure: Structure

    def code(self) -> WorkerCode:
        code = WorkerCode()
        code.label(".Lsetup")
        code.op(f"ld32 $m8, $mvertex_base, $mzero, {FRAME_STATE}")
        segments_code(code, self.structure)
        _choose(code, self.structure)
        if self.structure.begin:
            self._launch(code, "begin", adds=False)
        if self.structure.add:
            self._launch(code, "first", adds=True)
        return code

    def _launch(self, code: WorkerCode, entry: str, *, adds: bool) -> None:
        n = "_add" if adds else ""
        first = self.structure.first_share
        stream = self._stream(adds=adds)
        code.label(f".L{entry}")
        for register, base, number in (("$m6", "$mvertex_base", FRAME_INPUT), ("$m7", "$mvertex_base", FRAME_OUTPUT),
                                       ("$m0", "$m9", first + ROWS), ("$m2", "$m9", first + FIRST_ROWS),
                                       ("$m4", "$m9", first + X_FIRST), ("$m5", "$m9", first + OUT_FIRST)):  # fmt: skip
            code.op(f"ld32 {register}, {base}, $mzero, {number}")
        code.op(f"brz $m0, .Ldone{n}")
        code.op("add $m6, $m6, $m4")
        code.op("add $m7, $m7, $m5")
        code.op("mov $m10, $m9")
        code.label(f".Lsegment{n}")
        code.op("sub $m0, $m0, $m2")
        code.op(f"add $m11, $m2, {-stream.least_rows}")
        if self.structure.has_few:
            code.op(f"brneg $m11, .Lfew{n}")
        self._point(code, stream)
        stream.write(code)
        code.label(f".Lended{n}")
        code.op(f"brz $m0, .Ldone{n}")
        next_segment_code(code, self.structure)
        code.op(f"bri .Lsegment{n}")
        if self.structure.has_few:
            self._few(code, stream, n)
        code.label(f".Ldone{n}")
        code.op("exitz $mzero")

    def _stream(self, *, adds: bool) -> Stream:
        access = self.structure.add if adds else self.structure.begin
        output = "$m3" if access in STEPPING else "$m7"
        registers = Registers("$m1", "$m2", "$m4", output, "$m5", "$m4:5", "$m3", "$m11")
        return _stream(self.structure, registers, adds=adds)

    def _point(self, code: WorkerCode, stream: Stream) -> None:
        word = self.structure.word
        aux = "" if stream.accumulates else "setzi $a7, 8"
        if stream.access not in STEPPING:
            code.op(f"ld32 $m3, $m8, $mzero, {word('pace')}")
        if stream.access in PLAIN:
            self._plain(code, aux, stores=stream.access in STEPPING)
            return
        second = "$m7"
        if stream.access == "cross":
            code.op(f"setzi $m4, {REGION_0}")
            second = "$m4"
        code.bundles([(f"tapack $m4:5, $m6, {second}, $m7", aux)])

    def _plain(self, code: WorkerCode, aux: str, *, stores: bool) -> None:
        code.op(f"ld32 $m2, $m8, $mzero, {self.structure.word('x_jump')}")
        code.op(f"ld32 $m5, $m8, $mzero, {self.structure.word('out_jump')}")
        code.op("mov $m1, $m6")
        code.bundles([("mov $m4, $m7", aux)])
        if stores:
            code.op("mov $m3, $m7")

    def _few(self, code: WorkerCode, stream: Stream, n: str) -> None:
        code.label(f".Lfew{n}")
        code.op(f"add $m11, $m11, {stream.least_rows - 1}")
        self._plain(code, "" if stream.accumulates else "setzi $a7, 8", stores=True)
        registers = Registers("$m1", "$m2", "$m4", "$m3", "$m5", "", "", "")
        code.label(f".Lrow{n}")
        _stream(self.structure, registers, adds=stream.accumulates).write_row(code)
        code.op(f"brnzdec $m11, .Lrow{n}")
        code.op(f"bri .Lended{n}")
