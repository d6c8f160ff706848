"""What the workers run where sums grow in f32 in room of their own, and the last block rounds them to f16.

Sums lie row behind row in that room, whatever lies between rows of input and output.
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.codelets.matrix.code import WorkerCode
from t10.codelets.matrix.engine import WORD_BYTES
from t10.codelets.matrix.shape import FRAME_FIRST, FRAME_INPUT, FRAME_OUTPUT, FRAME_STATE, Structure
from t10.codelets.matrix.share_code import (
    FIRST_ROWS,
    OUT_FIRST,
    ROWS,
    SUMS_FIRST,
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


def rounding_code(structure: Structure) -> WorkerCode:
    """Return the code of the entries `.Lsetup`, `.Lbegin` or `.Lfirst`, `.Lnext` and `.Lend`."""
    return (_Segments(structure) if structure.has_segments else _Rows(structure)).code()


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows evenly spaced whose sums are rounded: `.Lbegin`, `.Lnext` and `.Lend`, or `.Lbegin` alone, which rounds.

    `.Lfirst` takes the place of `.Lbegin` where sums go on from what the output holds.

    Kept: $m0 input offset of the first row, $m1 address of its sums, $m3 pace, $m8 output address of the first row, $m9
    its offset, $m11 rows beyond the least of a loop that adds, or, where there may be few, all in $m2; $m7, $m10 jumps
    where plain pointers step, else $m7 where partials go on after a wide start.
    """

    structure: Structure

    def code(self) -> WorkerCode:
        code = WorkerCode()
        structure = self.structure
        self._setup(code)
        code.label(".Lbegin" if structure.begin else ".Lfirst")
        if structure.has_first:
            self._begin_with_row(code)
        elif structure.begin:
            self._find_output(code)
            code.op(f"ld32 $m6, $mvertex_base, $mzero, {FRAME_INPUT}")
            code.op("add $m6, $m6, $m0")
            self._loop(code, structure.begin, "begin", adds=False, rounds=structure.end is None)
        else:
            self._find_output(code)
            self._widen(code)
            code.op(f"ld32 $m6, $mvertex_base, $mzero, {FRAME_INPUT}")
            access, find = structure.add or structure.end, "add $m6, $m6, $m0"
            self._loop(code, access, "first", adds=True, rounds=structure.add is None, find=find)
        if structure.add:
            code.label(".Lnext")
            self._loop(code, structure.add, "next", adds=True, rounds=False)
            code.label(".Lend")
            self._loop(code, structure.end, "end", adds=True, rounds=True)
        return code

    def _find_output(self, code: WorkerCode) -> None:
        code.op(f"ld32 $m8, $mvertex_base, $mzero, {FRAME_OUTPUT}")
        code.op("add $m8, $m8, $m9")

    def _begin_with_row(self, code: WorkerCode) -> None:
        """Add the loop that begins every row with the same partials: $m8 is where they lie, then the way back to them.

        They lie as many times as far apart as columns of the output as sums are longer.
        """
        structure = self.structure
        for register, number in (("$m8", FRAME_OUTPUT), ("$m5", FRAME_FIRST), ("$m6", FRAME_INPUT)):
            code.op(f"ld32 {register}, $mvertex_base, $mzero, {number}")
        code.op(f"mul $m8, $m8, {structure.engine.words_per_store}")
        code.op("add $m8, $m8, $m5")
        code.op("add $m6, $m6, $m0")
        stream = self._stream(structure.begin, adds=False, rounds=False)
        if not structure.has_few:
            code.op(f"add $m2, $m11, {self._least() - stream.least_rows}")
        else:
            code.op(f"add $m11, $m2, {-stream.least_rows}")
            code.op("brneg $m11, .Lfew_begin")
        if stream.access in STEPPING:
            code.op("mov $m4, $m8")
            code.op("mov $m5, $m1")
        else:
            code.op("tapack $m4:5, $m6, $m8, $m1")
            code.op("mov $m6, $m8")
            code.op(f"or $m8, $m3, {back_pace(structure.kit)}")
        stream.write(code)
        self._find_output(code)
        code.op("exitz $mzero")
        if structure.has_few:
            self._few(code, stream, "begin", "$m8", "$m1")

    def _few(self, code: WorkerCode, stream: Stream, entry: str, partials: str, output: str) -> None:
        """Add the loop of single rows, none included."""
        aux = "" if stream.accumulates else "setzi $a7, 8"
        code.label(f".Lfew_{entry}")
        code.op(f"add $m11, $m11, {stream.least_rows - 1}")
        code.op(f"brneg $m11, .Ldone_{entry}")
        code.op(f"mov $m4, {partials}")
        code.bundles([(f"mov $m5, {output}", aux)])
        code.label(f".Lrow_{entry}")
        stream.write_row(code)
        code.op(f"brnzdec $m11, .Lrow_{entry}")
        code.label(f".Ldone_{entry}")
        if stream.first_row:
            self._find_output(code)
        code.op("exitz $mzero")

    def _widen(self, code: WorkerCode) -> None:
        """Add what makes sums of what rows of the output hold; $m6 counts them, $m10 is free without plain pointers."""
        structure, kit = self.structure, self.structure.kit
        jump = "$m7" if structure.needs_jumps else "$m10"
        if not structure.needs_jumps:
            _, back = output_steps(kit, structure.engine.words_per_store, by_words=False)
            code.op(f"ld32 $m10, $mvertex_base, $mzero, {FRAME_STATE}")
            code.op(f"ld32 $m10, $m10, $mzero, {structure.word('out_row')}")
            code.op(f"shrs $m10, $m10, {WORD_BYTES.bit_length() - 1}")
            code.op(f"add $m10, $m10, {-back}")
        code.op("mov $m6, $m2" if structure.has_few else f"add $m6, $m11, {self._least()}")
        code.op("mov $m4, $m1")
        code.op("mov $m5, $m8")
        _widen_rows(code, kit.stores, count="$m6", jump=jump)

    def _setup(self, code: WorkerCode) -> None:
        structure, word, kit = self.structure, self.structure.word, self.structure.kit
        code.label(".Lsetup")
        code.op(f"ld32 $m8, $mvertex_base, $mzero, {FRAME_STATE}")
        share_code(code, structure)
        for register, name in (("$m0", "x_row"), ("$m9", "out_row")):
            code.op(f"ld32 $m5, $m8, $mzero, {word(name)}")
            code.op(f"mul {register}, $m4, $m5")
        code.op(f"ld32 $m1, $m8, $mzero, {word('sums')}")
        code.op(f"mul $m4, $m4, {WORD_BYTES * kit.stores}")
        code.op("add $m1, $m1, $m4")
        if structure.has_pace:
            code.op(f"ld32 $m3, $m8, $mzero, {word('pace')}")
        if structure.is_wide:
            code.op(f"add $m7, $m1, {WORD_BYTES * WIDE_PARTIALS}")
        if not structure.has_few:
            code.op(f"add $m11, $m2, {-self._least()}")
        if structure.needs_jumps:
            _, back = output_steps(kit, structure.engine.words_per_store, by_words=False)
            for register, name, steps in (("$m10", "x_row", kit.words - 1), ("$m7", "out_row", back)):
                code.op(f"ld32 {register}, $m8, $mzero, {word(name)}")
                code.op(f"shrs {register}, {register}, {WORD_BYTES.bit_length() - 1}")
                code.op(f"add {register}, {register}, {-steps}")

    def _least(self) -> int:
        """Return the least rows of the loop whose count $m11 is: of those that add, if there are any."""
        structure = self.structure
        access = structure.add or structure.end or structure.begin
        return self._stream(access, adds=structure.end is not None, rounds=structure.add is None).least_rows

    def _stream(self, access: Access | None, *, adds: bool, rounds: bool) -> Stream:
        has_own = self.structure.end is not None and not self.structure.has_few
        count = "$m2" if has_own and not adds else "$m11"
        structure = self.structure
        row = "$m6" if structure.has_first and not adds else ""
        registers = Registers("$m6", "$m10", "$m4", "$m5", "$m7", "$m4:5", "$m8" if row else "$m3", count)
        return Stream(
            structure.engine, structure.kit, adds or bool(row), access or "single", registers, rounds, row
        )

    def _loop(
        self,
        code: WorkerCode,
        access: Access | None,
        entry: str,
        *,
        adds: bool,
        rounds: bool,
        find: str = "add $m6, $mvertex_base, $m0",
    ) -> None:
        """Add a loop over all rows, and one of single rows where they may be fewer than the pipeline takes."""
        structure, output = self.structure, "$m8" if rounds else "$m1"
        stream = self._stream(access, adds=adds, rounds=rounds)
        aux = "" if adds else "setzi $a7, 8"
        if adds and structure.is_wide:
            stream.write_wide_start(code, "$m1", find)
            stream.write(code, f"tapack $m4:5, $m6, $m7, {output}")
            code.op("exitz $mzero")
            return
        if adds:
            code.op(find)
        if stream.registers.count == "$m2":
            code.op(f"add $m2, $m11, {self._least() - stream.least_rows}")
        if structure.has_few:
            code.op(f"add $m11, $m2, {-stream.least_rows}")
            code.op(f"brneg $m11, .Lfew_{entry}")
        if stream.access in STEPPING:
            code.op("mov $m4, $m1")
            code.bundles([(f"mov $m5, {output}", aux)])
        else:
            # Where nothing is added, what is loaded in the place of partials is not looked at, but must be apart.
            partials = "$m1" if adds else output
            code.bundles([(f"tapack $m4:5, $m6, {partials}, {output}", aux)])
        stream.write(code)
        code.op("exitz $mzero")
        if structure.has_few:
            self._few(code, stream, entry, "$m1", output)


@dataclass(frozen=True, slots=True)
class _Segments:
    """Rows in segments, each a loop of its own: the same entries; addresses come from memory in every launch.

    Kept: $m8 the vertex's words, $m9 the frame moved on to the worker's share. In a launch: $m0 rows to come after this
    segment, $m1 address of its sums, $m2 its rows, $m6, $m7 addresses of its input and output, $m10 where the way to
    the next segment stands. Plain pointers take the place of $m1 and $m2 until the segment ends.
    """

    structure: Structure

    def code(self) -> WorkerCode:
        code = WorkerCode()
        structure = self.structure
        code.label(".Lsetup")
        code.op(f"ld32 $m8, $mvertex_base, $mzero, {FRAME_STATE}")
        segments_code(code, structure)
        if structure.begin:
            self._launch(code, "begin", structure.begin, adds=False, rounds=structure.end is None)
        else:
            access = structure.add or structure.end
            self._launch(code, "first", access, adds=True, rounds=structure.add is None, widens=True)
        if structure.add:
            self._launch(code, "next", structure.add, adds=True, rounds=False)
            self._launch(code, "end", structure.end, adds=True, rounds=True)
        return code

    def _launch(
        self,
        code: WorkerCode,
        entry: str,
        access: Access | None,
        *,
        adds: bool,
        rounds: bool,
        widens: bool = False,
    ) -> None:
        first, has_few = self.structure.first_share, self.structure.has_few
        stream = self._stream(access, adds=adds, rounds=rounds)
        code.label(f".L{entry}")
        loads = [("$m6", "$mvertex_base", FRAME_INPUT), ("$m0", "$m9", first + ROWS)]
        loads += [("$m2", "$m9", first + FIRST_ROWS), ("$m4", "$m9", first + X_FIRST)]
        if adds or not rounds:
            loads.append(("$m1", "$m9", first + SUMS_FIRST))
        if rounds or widens:
            loads += [("$m7", "$mvertex_base", FRAME_OUTPUT), ("$m5", "$m9", first + OUT_FIRST)]
        for register, base, number in loads:
            code.op(f"ld32 {register}, {base}, $mzero, {number}")
        code.op(f"brz $m0, .Ldone_{entry}")
        code.op("add $m6, $m6, $m4")
        if rounds or widens:
            code.op("add $m7, $m7, $m5")
        code.op("mov $m10, $m9")
        code.label(f".Lsegment_{entry}")
        code.op("sub $m0, $m0, $m2")
        if widens:
            self._widen(code)
        code.op(f"add $m11, $m2, {-stream.least_rows}")
        if has_few:
            code.op(f"brneg $m11, .Lfew_{entry}")
        self._loop(code, stream)
        code.label(f".Lended_{entry}")
        code.op(f"brz $m0, .Ldone_{entry}")
        next_segment_code(code, self.structure, moves_output=rounds or widens)
        code.op(f"bri .Lsegment_{entry}")
        if has_few:
            self._few(code, stream, entry)
        code.label(f".Ldone_{entry}")
        code.op("exitz $mzero")

    def _stream(self, access: Access | None, *, adds: bool, rounds: bool) -> Stream:
        registers = Registers("$m1", "$m2", "$m4", "$m3", "$m5", "$m4:5", "$m3", "$m11")
        return Stream(self.structure.engine, self.structure.kit, adds, access or "single", registers, rounds)

    def _loop(self, code: WorkerCode, stream: Stream) -> None:
        """Add the loop over the rows of a segment, behind which $m1 is where the sums of the next one lie."""
        if stream.access in STEPPING:
            self._plain(code, stream)
            stream.write(code)
            self._keep_sums(code, stream)
            return
        output = "$m7" if stream.rounds else "$m1"
        # Where nothing is added, what is loaded in the place of partials is not looked at, but must be apart.
        partials = "$m1" if stream.accumulates else output
        code.op(f"ld32 $m3, $m8, $mzero, {self.structure.word('pace')}")
        code.bundles([(f"tapack $m4:5, $m6, {partials}, {output}", _clears(stream))])
        stream.write(code)
        if stream.accumulates or not stream.rounds:
            code.op(f"mul $m2, $m2, {WORD_BYTES * self.structure.kit.stores}")
            code.op("add $m1, $m1, $m2")

    def _plain(self, code: WorkerCode, stream: Stream) -> None:
        """Set the pointers that step: where sums lie, then the input in the place of that."""
        word = self.structure.word
        if stream.accumulates:
            code.op("mov $m4, $m1")
        code.op(f"mov $m3, {'$m7' if stream.rounds else '$m1'}")
        if stream.rounds:
            code.op(f"ld32 $m5, $m8, $mzero, {word('out_jump')}")
        code.op(f"ld32 $m2, $m8, $mzero, {word('x_jump')}")
        code.bundles([("mov $m1, $m6", _clears(stream))])

    def _keep_sums(self, code: WorkerCode, stream: Stream) -> None:
        """Keep where pointers have stepped to among the sums."""
        if stream.accumulates or not stream.rounds:
            code.op(f"mov $m1, {'$m4' if stream.accumulates else '$m3'}")

    def _few(self, code: WorkerCode, stream: Stream, entry: str) -> None:
        """Add the loop for segments of fewer rows than the pipeline takes."""
        code.label(f".Lfew_{entry}")
        code.op(f"add $m11, $m11, {stream.least_rows - 1}")
        self._plain(code, stream)
        code.label(f".Lrow_{entry}")
        stream.write_row(code)
        code.op(f"brnzdec $m11, .Lrow_{entry}")
        self._keep_sums(code, stream)
        code.op(f"bri .Lended_{entry}")

    def _widen(self, code: WorkerCode) -> None:
        """Add what makes sums of what the segment's rows of the output hold."""
        structure = self.structure
        _, back = output_steps(structure.kit, structure.engine.words_per_store, by_words=False)
        code.op(f"ld32 $m3, $m8, $mzero, {structure.word('out_row')}")
        code.op(f"shrs $m3, $m3, {WORD_BYTES.bit_length() - 1}")
        code.op(f"add $m3, $m3, {-back}")
        code.op("mov $m4, $m1")
        code.op("mov $m5, $m7")
        _widen_rows(code, structure.kit.stores, count="$m2", jump="$m3")


def _clears(stream: Stream) -> str:
    """Return what prepares clearing accumulators, where sums begin."""
    return "" if stream.accumulates else "setzi $a7, 8"


def _widen_rows(code: WorkerCode, n: int, *, count: str, jump: str) -> None:
    """Add the loop that widens `count` rows of `n` words of sums, from $m5 to $m4; `jump` goes to the next row."""
    loads = [f"ld64step $a{a}:{a + 1}, $mzero, $m5+=, {jump if a == n - 2 else 1}" for a in range(0, n, 2)]
    stores = [f"st64step {('$a4:5', '$a6:7')[k % 2]}, $mzero, $m4+=, 1" for k in range(n)]
    widened = [f"f16v2tof32 {('$a4:5', '$a6:7')[k % 2]}, $a{k}" for k in range(n)]
    if n == 2:
        # The first is widened behind the last load.
        loads.append("nop")
    others = ["fnop"] * (len(loads) - 1) + [*widened, "fnop"]
    code.repeat(count, zip([*loads, *stores], others, strict=True))
