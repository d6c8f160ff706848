"""The supervisor's part: the loop nest over blocks; it loads weights and launches the workers.

Registers: $m0 the vertex's words, $m1, $m2, $m3 addresses of input, weights and output, $m4 the innermost counter, $m5
the workers' entry, $m7 bytes from one channel's weights to the next, $m8 what workers find as vertex base, $m9 where in
the loading of a last block that adds the first new channel's weights come (0: all of them are loaded).
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.codelets.assembly import Assembly
from t10.codelets.matrix.copying import copy_code
from t10.codelets.matrix.engine import BLOCK_WORDS
from t10.codelets.matrix.first import first_code
from t10.codelets.matrix.shape import (
    FIRST_COUNTER,
    FRAME_ADDS,
    FRAME_FIRST,
    FRAME_INPUT,
    FRAME_KEPT,
    FRAME_LINES,
    FRAME_OPENING,
    FRAME_OUTPUT,
    FRAME_SOURCE,
    FRAME_STATE,
    FRAME_TARGET,
    PassKind,
    Structure,
)
from t10.codelets.matrix.weights import channel_loads, loads_among, loads_while_waiting
from t10.codelets.matrix.worker import worker_code

ZERO_WEIGHTS = 4
LOCAL = "TEXCH_SYNCZONE_LOCAL"


@dataclass(frozen=True, slots=True)
class _PassLoops:
    """Loops of one pass."""

    structure: Structure
    number: int
    assembly: Assembly

    @property
    def kind(self) -> PassKind:
        return self.structure.passes[self.number]

    def write(self) -> None:
        """Write the pass from its first level on."""
        op, structure = self.assembly.op, self.structure
        if self.number:
            for register, name in (("$m1", "x"), ("$m2", "w"), ("$m3", "out")):
                base = "scratch" if name == "x" and structure.copies_x else name
                op(f"ld32 {register}, $m0, $mzero, {structure.word(base)}")
                if name != "out":
                    op(f"ld32 $m6, $m0, $mzero, {structure.word(f'{name}_at{self.number}')}")
                    op(f"add {register}, {register}, $m6")
        if structure.copies_w:
            op(f"st32 $m2, $sp, $mzero, {FRAME_SOURCE}")
        if self.kind.load.n_words < BLOCK_WORDS:
            self._zero_weights()
        self._opening()
        self._level(0)
        op(f"sync {LOCAL}")

    def _opening(self) -> None:
        """Set the workers' first entry, and the one that further sums of the pass begin with."""
        op, structure = self.assembly.op, self.structure
        if structure.has_both and not self.number:
            op(f"ld32 $m6, $m0, $mzero, {structure.word('adds')}")
            op("setzi $m5, .Lbegin")
            op("setzi $m8, .Lfirst")
            op("movnz $m5, $m6, $m8")
        else:
            op("setzi $m6, 1")
            op(f"setzi $m5, .L{'begin' if structure.begin and not self.number else 'first'}")
        op(f"st32 $m5, $sp, $mzero, {FRAME_OPENING}")
        if structure.has_both:
            op(f"st32 $m6, $sp, $mzero, {FRAME_ADDS}")
        if not self.number:
            op("setzi $m5, .Lsetup")

    def _zero_weights(self) -> None:
        self.assembly.op(f"setzi $m6, {ZERO_WEIGHTS}")
        self.assembly.op(
            "put $CR, $m6", "weights that are not loaded must be zero: what is there may be no number"
        )

    def _level(self, level: int) -> None:
        """Write a level and those inside; it may begin, and ends, while workers run."""
        op = self.assembly.op
        if level == self.kind.levels - 1:
            self._innermost(level)
            return
        if level == self.kind.outs:
            op(f"sync {LOCAL}", "until the sum before is done")
            self._begin_sum()
        label = f".Llevel{self.number}_{level}"
        op(f"ld32 $m4, $m0, $mzero, {self.structure.word(f'count{self.number}_{level}')}")
        op("add $m4, $m4, -1")
        self.assembly.label(label)
        op(f"st32 $m4, $sp, $mzero, {FIRST_COUNTER + level}")
        self._level(level + 1)
        self._step_out(level, label)

    def _innermost(self, level: int) -> None:
        """Write the innermost loop: it branches while the workers run.

        Where all six run to their ends together nothing else does meanwhile: so it moves on while weights are loaded,
        in cycles that loading waits for addresses, if blocks are always loaded from their beginning.
        """
        op, label = self.assembly.op, f".Llevel{self.number}_{level}"
        begins = level == self.kind.outs
        if begins and self.structure.copies_w:
            op(f"sync {LOCAL}", "until the sum before is done")
            self._begin_sum()
        op(f"ld32 $m4, $m0, $mzero, {self.structure.word(f'count{self.number}_{level}')}")
        self._set_address()
        if begins and not self.structure.copies_w:
            op(f"sync {LOCAL}", "until the sum before is done")
            self._begin_sum()
        op("add $m4, $m4, -1")
        self.assembly.label(label)
        op(f"sync {LOCAL}", "until the block before is done")
        if self.kind.sums == 0:
            self._begin_sum()
        elif self.structure.has_segments:
            op(f"st32 $m1, $sp, $mzero, {FRAME_INPUT}")
        if self.structure.overlaps:
            self._block()
            op("runall $m5, $m8, 0")
            self._move_on(level)
            op("put $CCCSLOAD, $m2")
        else:
            self._block_and_move_on(level)
            op("runall $m5, $m8, 0")
            self._set_address()
            self._next_entry(level)
        op(f"brnzdec $m4, {label}")

    def _begin_sum(self) -> None:
        op, structure = self.assembly.op, self.structure
        if structure.copies_w:
            op(f"ld32 $m2, $m0, $mzero, {structure.word('scratch')}")
            op(f"ld32 $m6, $m0, $mzero, {structure.word('w_copy_at')}")
            op("add $m2, $m2, $m6")
            copy_lines(self.assembly, "$m2", structure.word("w_lines"))
            if self.number:
                op(f"ld32 $m6, $m0, $mzero, {structure.word(f'w_within{self.number}')}")
                op("add $m2, $m2, $m6")
            if structure.overlaps:
                op("cmpne $m6, $m9, $mzero")
                op(f"ld32 $m5, $m0, $mzero, {structure.word('w_skip')}")
                op("mul $m6, $m6, $m5")
                op("add $m2, $m2, $m6")
            op("setzi $m5, .Lsetup", "copying takes the workers' registers")
        op(f"st32 $m1, $sp, $mzero, {FRAME_INPUT}")
        op(f"st32 $m3, $sp, $mzero, {FRAME_OUTPUT}")
        op("mov $m8, $sp")

    def _step_out(self, level: int, label: str) -> None:
        """End an outer level while workers run: move on, and go round again while its counter lasts."""
        op, structure = self.assembly.op, self.structure
        n = f"{self.number}_{level}"
        is_out = level < self.kind.outs
        op(f"ld32 $m4, $sp, $mzero, {FIRST_COUNTER + level}")
        op(f"ld32 $m6, $m0, $mzero, {structure.word(f'x_step{n}')}")
        op(f"ld32 $m8, $m0, $mzero, {structure.word(f'w_step{n}')}")
        if is_out:
            op(f"ld32 $m5, $m0, $mzero, {structure.word(f'out_step{n}')}")
            if structure.copies_w:
                op(f"ld32 $m2, $sp, $mzero, {FRAME_SOURCE}")
        op("add $m1, $m1, $m6")
        op("add $m2, $m2, $m8")
        if is_out:
            op("add $m3, $m3, $m5")
            op(f"ld32 $m5, $sp, $mzero, {FRAME_OPENING}")
        elif structure.has_segments:
            op(f"sync {LOCAL}", "until the last workers have read the frame")
            op(f"st32 $m1, $sp, $mzero, {FRAME_INPUT}")
            op("mov $m8, $sp")
        else:
            op("mov $m8, $m1")
        if structure.overlaps and level == self.kind.outs - 1:
            op("cmpeq $m6, $m4, 1")
            self._reach_back("$m6", "$m8")
        if structure.copies_w and is_out:
            op(f"st32 $m2, $sp, $mzero, {FRAME_SOURCE}")
        op(f"brnzdec $m4, {label}")

    def _reach_back(self, is_last: str, temporary: str) -> None:
        """Move back so that the last block of columns ends with the last column; `is_last` is 1 before it, else 0."""
        op, word = self.assembly.op, self.structure.word
        for register, name in (("$m3", "out_back"), ("$m2", f"w_back{self.number}")):
            op(f"ld32 {temporary}, $m0, $mzero, {word(name)}")
            op(f"mul {temporary}, {temporary}, {is_last}")
            op(f"sub {register}, {register}, {temporary}")
        op(f"ld32 $m9, $m0, $mzero, {word(f'load_at{self.number}')}")
        op(f"mul $m9, $m9, {is_last}")

    def _block(self) -> None:
        """Load a block of weights, from its beginning or the first new channel on; $CCCSLOAD is set."""
        op, structure = self.assembly.op, self.structure
        op(f"brnz $m9, .Lpart{self.number}")
        self.assembly.label(f".Lload{self.number}")
        for lines in channel_loads(structure.engine, structure.kit, self.kind.load, "$m6"):
            for line in lines:
                op(line)

    def _block_and_move_on(self, level: int) -> None:
        """Load a block of weights, and go on to the next block meanwhile; $CCCSLOAD is set."""
        structure, load = self.structure, self.kind.load
        moved = (
            [("$m1", "x"), ("$m3", "out"), ("$m2", "w")]
            if level < self.kind.outs
            else [("$m1", "x"), ("$m2", "w")]
        )
        moves: list[str] = []
        for register, name in moved:
            word = structure.word(f"{name}_step{self.number}_{level}")
            moves += [f"ld32 $m6, $m0, $mzero, {word}", f"add {register}, {register}, $m6"]
        channels = channel_loads(structure.engine, structure.kit, load, "$m2")
        merged = loads_while_waiting if structure.sets_addresses(self.kind) else loads_among
        for line in merged(channels, moves):
            self.assembly.op(line)

    def _set_address(self) -> None:
        """Set the address of the next block's weights, and find that of the second channel where it is set as well."""
        self.assembly.op("put $CCCSLOAD, $m2")
        if self.structure.sets_addresses(self.kind):
            self.assembly.op("add $m2, $m2, $m7")

    def _next_entry(self, level: int) -> None:
        """Set where workers begin at the next block of the innermost level, and what they find as vertex base."""
        op, structure = self.assembly.op, self.structure
        if level < self.kind.outs:
            op(f"ld32 $m5, $sp, $mzero, {FRAME_OPENING}")
            return
        if structure.engine.rounding:
            if structure.add is not None:
                op(f"cmpeq $m6, {self._blocks_to_come(level)}, 1", "is the next block the sum's last?")
                op("setzi $m5, .Lnext")
                op("setzi $m8, .Lend")
                op("movnz $m5, $m6, $m8")
            op(f"mov $m8, {'$sp' if structure.has_segments else '$m1'}")
            return
        op(f"setzi $m5, .L{'first' if structure.has_segments else 'next'}")
        if not structure.has_segments:
            op("mov $m8, $m1")

    def _blocks_to_come(self, level: int) -> str:
        """Find how many blocks of the sum follow this one, and return the register; `level` is the innermost."""
        op, first = self.assembly.op, self.kind.outs
        if level == first:
            return "$m4"
        op(f"ld32 $m6, $sp, $mzero, {FIRST_COUNTER + first}")
        for inside in range(first + 1, level + 1):
            op(f"ld32 $m8, $m0, $mzero, {self.structure.word(f'count{self.number}_{inside}')}")
            op("mul $m6, $m6, $m8")
            if inside < level:
                op(f"ld32 $m8, $sp, $mzero, {FIRST_COUNTER + inside}")
            op(f"add $m6, $m6, {'$m8' if inside < level else '$m4'}")
        return "$m6"

    def write_part(self) -> None:
        """Write the way into the middle of the loading, all other weights being zero."""
        op = self.assembly.op
        self.assembly.label(f".Lpart{self.number}")
        self._zero_weights()
        op(f"setzi $m10, .Lload{self.number}")
        op("add $m10, $m10, $m9")
        op("mov $m6, $m2")
        op("br $m10")

    def _move_on(self, level: int) -> None:
        """Move on to the next block of the innermost level; nothing that workers read changes."""
        op, kind, structure = self.assembly.op, self.kind, self.structure
        moved = (("$m2", "w"), ("$m1", "x"), ("$m3", "out"))
        for register, name in moved if level < kind.outs else moved[:2]:
            op(f"ld32 $m6, $m0, $mzero, {structure.word(f'{name}_step{self.number}_{level}')}")
            op(f"add {register}, {register}, $m6")
        self._next_entry(level)
        if level < kind.outs:
            op("cmpeq $m6, $m4, 1")
            self._reach_back("$m6", "$m8")


def copy_lines(assembly: Assembly, target: str, first_word: int) -> None:
    """Write what has workers copy lines: the source's address is in the frame, the numbers begin at a vertex word."""
    op = assembly.op
    op(f"st32 {target}, $sp, $mzero, {FRAME_TARGET}")
    op(f"add $m6, $m0, {4 * first_word}")
    op(f"st32 $m6, $sp, $mzero, {FRAME_LINES}")
    op("setzi $m6, .Lcopy")
    op("runall $m6, $sp, 0")
    op(f"sync {LOCAL}")


def bring_first(assembly: Assembly, structure: Structure) -> None:
    """Write what has workers bring the first partials, and how far these lie behind the output, in words of sums."""
    op = assembly.op
    op("setzi $m6, .Lpartials")
    op("runall $m6, $sp, 0")
    op(f"ld32 $m6, $m0, $mzero, {structure.word('first_room')}")
    op(f"mul $m5, $m3, {structure.engine.words_per_store}")
    op("sub $m6, $m6, $m5")
    op(f"st32 $m6, $sp, $mzero, {FRAME_FIRST}")


def codelet_text(structure: Structure) -> str:
    """Return the assembly of a codelet: the supervisor, then the workers."""
    assembly = Assembly()
    op = assembly.op
    op(f"add $sp, $sp, {-structure.stack_bytes}")
    for register, name in (("$m1", "x"), ("$m2", "w"), ("$m3", "out"), ("$m7", "w_row")):
        op(f"ld32 {register}, $m0, $mzero, {structure.word(name)}")
    op(f"st32 $m0, $sp, $mzero, {FRAME_STATE}")
    kept = ("$m9", "$m10") if structure.overlaps else ()
    for number, register in enumerate(kept):
        op(f"st32 {register}, $sp, $mzero, {FRAME_KEPT + number}")
    if structure.overlaps:
        op("setzi $m9, 0")
    if structure.copies_x:
        op(f"st32 $m1, $sp, $mzero, {FRAME_SOURCE}")
        op(f"ld32 $m1, $m0, $mzero, {structure.word('scratch')}")
        copy_lines(assembly, "$m1", structure.word("x_lines"))
    if structure.has_first:
        bring_first(assembly, structure)
    nests = [_PassLoops(structure, number, assembly) for number in range(len(structure.passes))]
    for nest in nests:
        nest.write()
    for number, register in enumerate(kept):
        op(f"ld32 {register}, $sp, $mzero, {FRAME_KEPT + number}")
    op(f"add $sp, $sp, {structure.stack_bytes}")
    op("br $lr")
    for nest in nests if structure.overlaps else ():
        nest.write_part()
    assembly.lines.append("  .worker")
    if structure.stage:
        copy_code(structure.engine, structure.stage).write(assembly)
    if structure.has_first:
        first_code(structure).write(assembly)
    worker_code(structure).write(assembly)
    return assembly.text(structure.name, "supervisor", structure.stack_bytes)
