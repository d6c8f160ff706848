"""The supervisor's part: the loop nest over blocks; it loads weights and launches the workers.

Registers: $m0 the vertex's words, $m1, $m2, $m3 addresses of input, weights and output, $m4 the innermost counter, $m5
the workers' entry, $m7 bytes from one channel's weights to the next, $m8 what workers find as vertex base.
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.codelets.assembly import Assembly
from t10.codelets.matrix.copying import copy_code
from t10.codelets.matrix.engine import BLOCK_WORDS, WORD_BYTES
from t10.codelets.matrix.shape import (
    FIRST_COUNTER,
    FRAME_INPUT,
    FRAME_LINES,
    FRAME_OUTPUT,
    FRAME_SOURCE,
    FRAME_STATE,
    FRAME_TARGET,
    PassKind,
    Structure,
)
from t10.codelets.matrix.worker import WorkerPass

ZERO_WEIGHTS = 4
LOCAL = "TEXCH_SYNCZONE_LOCAL"


@dataclass(frozen=True, slots=True)
class _Nest:
    """Loops of one pass."""

    structure: Structure
    number: int
    assembly: Assembly

    @property
    def kind(self) -> PassKind:
        return self.structure.passes[self.number]

    def write(self) -> None:
        """Write the pass from its first level on."""
        op, word = self.assembly.op, self._word
        if self.number:
            for register, name in (("$m1", "x"), ("$m2", "w"), ("$m3", "out")):
                base = "scratch" if name == "x" and self.structure.copies_x else name
                op(f"ld32 {register}, $m0, $mzero, {self.structure.word(base)}")
                op(f"ld32 $m6, $m0, $mzero, {word(f'{name}_at')}")
                op(f"add {register}, {register}, $m6")
        if self.structure.copies_w:
            op(f"st32 $m2, $sp, $mzero, {FRAME_SOURCE}")
        if self.kind.kit.words < BLOCK_WORDS:
            op(f"setzi $m6, {ZERO_WEIGHTS}")
            op("put $CR, $m6", "words that are not loaded must be zero: what is there may be no number")
        op(f"setzi $m5, .Lsetup{self.number}")
        self._level(0)

    def _word(self, name: str) -> int:
        return self.structure.word(f"{name}{self.number}")

    def _level(self, level: int) -> None:
        if level == self.kind.outs:
            self._begin_sum()
        if level == self.kind.levels:
            self.assembly.op("put $CCCSLOAD, $m2")
            self._block()
            self.assembly.op("runall $m5, $m8, 0")
            self.assembly.op(f"sync {LOCAL}")
            return
        if level == self.kind.levels - 1:
            self._innermost(level)
            return
        op = self.assembly.op
        label = f".Llevel{self.number}_{level}"
        op(f"ld32 $m6, $m0, $mzero, {self.structure.word(f'count{self.number}_{level}')}")
        op("add $m6, $m6, -1")
        op(f"st32 $m6, $sp, $mzero, {FIRST_COUNTER + level}")
        self.assembly.label(label)
        self._level(level + 1)
        self._step_out(level, label)

    def _innermost(self, level: int) -> None:
        """Write the innermost loop: it moves on, and branches, while the workers run."""
        op, label = self.assembly.op, f".Llevel{self.number}_{level}"
        op(f"ld32 $m4, $m0, $mzero, {self.structure.word(f'count{self.number}_{level}')}")
        op("put $CCCSLOAD, $m2")
        op("add $m4, $m4, -1")
        self.assembly.label(label)
        op(f"sync {LOCAL}", "until the block before is done")
        if self.kind.sums == 0:
            self._begin_sum()
        elif self.structure.has_segments:
            op(f"st32 $m1, $sp, $mzero, {FRAME_INPUT}")
        self._block()
        op("runall $m5, $m8, 0")
        self._move_on(level)
        op("put $CCCSLOAD, $m2")
        op(f"brnzdec $m4, {label}")
        op(f"sync {LOCAL}")

    def _begin_sum(self) -> None:
        op = self.assembly.op
        if self.structure.copies_w:
            op(f"ld32 $m2, $m0, $mzero, {self.structure.word('scratch')}")
            op(f"ld32 $m6, $m0, $mzero, {self.structure.word('w_copy_at')}")
            op("add $m2, $m2, $m6")
            copy_lines(self.assembly, "$m2", self._word("w_lines"))
            op(f"ld32 $m6, $m0, $mzero, {self._word('w_within')}")
            op("add $m2, $m2, $m6")
            op(f"setzi $m5, .Lsetup{self.number}", "copying takes the workers' registers")
        op(f"st32 $m1, $sp, $mzero, {FRAME_INPUT}")
        op(f"st32 $m3, $sp, $mzero, {FRAME_OUTPUT}")
        op("mov $m8, $sp")

    def _step_out(self, level: int, label: str) -> None:
        """End an outer level: move on, and go round again while its counter lasts."""
        op, done = self.assembly.op, f".Ldone_level{self.number}_{level}"
        n = f"{self.number}_{level}"
        op(f"ld32 $m6, $sp, $mzero, {FIRST_COUNTER + level}")
        op(f"ld32 $m4, $m0, $mzero, {self.structure.word(f'x_step{n}')}")
        op(f"ld32 $m8, $m0, $mzero, {self.structure.word(f'w_step{n}')}")
        op("add $m1, $m1, $m4")
        if self.structure.copies_w and level < self.kind.outs:
            op(f"ld32 $m2, $sp, $mzero, {FRAME_SOURCE}")
            op("add $m2, $m2, $m8")
            op(f"st32 $m2, $sp, $mzero, {FRAME_SOURCE}")
        else:
            op("add $m2, $m2, $m8")
        if level < self.kind.outs:
            op(f"ld32 $m4, $m0, $mzero, {self.structure.word(f'out_step{n}')}")
            op(f"setzi $m5, .L{self._opening()}{self.number}")
            op("add $m3, $m3, $m4")
        elif self.structure.has_segments:
            op(f"st32 $m1, $sp, $mzero, {FRAME_INPUT}")
            op("mov $m8, $sp")
        else:
            op("mov $m8, $m1")
        op(f"brz $m6, {done}")
        op("add $m6, $m6, -1")
        op(f"st32 $m6, $sp, $mzero, {FIRST_COUNTER + level}")
        op(f"bri {label}")
        self.assembly.label(done)

    def _opening(self) -> str:
        """Return the entry of a sum's first block."""
        return "begin" if self.kind.begins else "first"

    def _block(self) -> None:
        """Load a block of weights; $CCCSLOAD is set."""
        op, engine, kit = self.assembly.op, self.structure.engine, self.kind.kit
        skip, width = self.kind.load.skip_words, self.kind.load.width_bytes // WORD_BYTES
        by_rows = skip is None
        if by_rows:
            op("add $m6, $m2, $m7")
        columns = kit.columns(engine)
        for column in range(columns):
            if column and by_rows:
                op("put $CCCSLOAD, $m6")
                if column < columns - 1:
                    op("add $m6, $m6, $m7")
            first = BLOCK_WORDS * engine.unit(column)
            self._words(first, 0, kit.words, width)
            if skip and column < columns - 1:
                # Loaded where the next channel's words come, which overwrite them; words that must be zero stay so.
                target = BLOCK_WORDS * engine.unit(column + 1)
                self._words(
                    target, kit.words, kit.words + skip, width if kit.words > 1 else 1, is_skipped=True
                )

    def _words(self, target: int, begin: int, end: int, width: int, *, is_skipped: bool = False) -> None:
        """Load words `begin` to `end` of a channel, two at once where they lie on a multiple of 16 bytes."""
        word = begin
        while word < end:
            wide = width == 2 and word % 2 == 0 and word + 1 < end
            self.assembly.op(
                f"{'ld128putcs' if wide else 'ld64putcs'} {target + (0 if is_skipped else word)}"
            )
            word += 2 if wide else 1

    def _move_on(self, level: int) -> None:
        """Move on to the next block of the innermost level; nothing that workers read changes."""
        op, kind = self.assembly.op, self.kind
        moved = (("$m2", "w"), ("$m1", "x"), ("$m3", "out"))
        for register, name in moved if level < kind.outs else moved[:2]:
            op(f"ld32 $m6, $m0, $mzero, {self.structure.word(f'{name}_step{self.number}_{level}')}")
            op(f"add {register}, {register}, $m6")
        entry = self._opening() if level < kind.outs else "first" if self.structure.has_segments else "next"
        op(f"setzi $m5, .L{entry}{self.number}")
        if level >= kind.outs and not self.structure.has_segments:
            op("mov $m8, $m1")


def copy_lines(assembly: Assembly, target: str, first_word: int) -> None:
    """Write what has workers copy lines: the source's address is in the frame, the numbers begin at a vertex word."""
    op = assembly.op
    op(f"st32 {target}, $sp, $mzero, {FRAME_TARGET}")
    op(f"add $m6, $m0, {4 * first_word}")
    op(f"st32 $m6, $sp, $mzero, {FRAME_LINES}")
    op("setzi $m6, .Lcopy")
    op("runall $m6, $sp, 0")
    op(f"sync {LOCAL}")


def codelet_text(structure: Structure) -> str:
    """Return the assembly of a codelet: the supervisor, then the workers of every pass."""
    assembly = Assembly()
    op = assembly.op
    op(f"add $sp, $sp, {-structure.stack_bytes}")
    for register, name in (("$m1", "x"), ("$m2", "w"), ("$m3", "out"), ("$m7", "w_row")):
        op(f"ld32 {register}, $m0, $mzero, {structure.word(name)}")
    op(f"st32 $m0, $sp, $mzero, {FRAME_STATE}")
    if structure.copies_x:
        op(f"st32 $m1, $sp, $mzero, {FRAME_SOURCE}")
        op(f"ld32 $m1, $m0, $mzero, {structure.word('scratch')}")
        copy_lines(assembly, "$m1", structure.word("x_lines"))
    for number in range(len(structure.passes)):
        _Nest(structure, number, assembly).write()
    op(f"add $sp, $sp, {structure.stack_bytes}")
    op("br $lr")
    assembly.lines.append("  .worker")
    if structure.stage:
        copy_code(structure.engine, structure.stage).write(assembly)
    for number in range(len(structure.passes)):
        WorkerPass(structure, number).code().write(assembly)
    return assembly.text(structure.name, "supervisor", structure.stack_bytes)
