"""The text of one output: straight code, or a repeat block between its beginning and its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest

from t10.codelets.body.code import Code
from t10.codelets.body.pipeline import Pipeline
from t10.codelets.body.select import Unselectable
from t10.codelets.body.virtual import Instruction, Operand, Placement, Register, physical
from t10.codelets.reduce.control import Control
from t10.codelets.reduce.finish import PART_TYPES, Finish
from t10.codelets.reduce.schedule import (
    Bundle,
    Registers,
    bank_places,
    stage_bundles,
    stage_instructions,
    straight,
)
from t10.codelets.reduce.stores import store_half, store_in_word, store_part, store_rest

Write = Callable[[], None]


class OutputWriter:
    """Schedules the parts of an output and writes them, as often as it is asked to."""

    def __init__(self, control: Control, registers: Registers, finish: Finish, spare: str) -> None:
        """`spare` is an integer register for storing parts of words."""
        self.control, self.registers, self.finish, self.spare = control, registers, finish, spare
        self.text, self.homes, self.shape = control.text, control.homes, control.shape
        control.advanced = finish.advanced

    def prepared(
        self,
        begin: Sequence[Instruction],
        pipeline: Pipeline | None,
        inner: Sequence[Instruction],
        n_outer: int,
    ) -> Write:
        """Return what writes an output: `begin`, the pipelined loop (if any) and `inner` in `n_outer` loops, the end.

        Raises `Unselectable` where registers do not suffice.
        """
        end = self.finish.code.instructions
        if n_outer:
            return self._looped(begin, pipeline, inner)
        if pipeline is None:
            return self._at_once([*begin, *inner, *end])
        first = self._straight(begin)
        try:
            epilogue = stage_instructions(pipeline, 1, self.registers.pinned)
            closing = self._ending([*epilogue, *inner, *end], self._within(pipeline))
        except Unselectable:
            closing = self._ending([*inner, *end], self.registers)
            return partial(self._repeated, first, pipeline, self._epilogue(pipeline), closing)
        return partial(self._repeated, first, pipeline, (), closing)

    def two_prepared(self, instructions: Sequence[Instruction]) -> Write | None:
        """Return what writes two outputs whose code runs side by side, None where registers do not suffice."""
        if not self.finish.is_stored:
            return None
        code = self.finish.code
        once = [*instructions, *code.instructions]
        try:
            return self._ending([*once, *_again(once, code, self.registers.pinned)], self.registers)
        except Unselectable:
            return None

    def _at_once(self, instructions: Sequence[Instruction]) -> Write:
        return self._ending(instructions, self.registers)

    def _looped(
        self, begin: Sequence[Instruction], pipeline: Pipeline | None, inner: Sequence[Instruction]
    ) -> Write:
        """Return an output whose outer reductions are loops."""
        first, steps = self._straight(begin), self._straight(inner)
        closing = self._ending(self.finish.code.instructions, self.registers)

        def one_pass() -> None:
            if pipeline is not None:
                self._repeat((), pipeline)
                self.control.emit(self._epilogue(pipeline))
            self.control.emit(steps)

        def write() -> None:
            self.control.emit(first)
            self.control.reduce(0, one_pass)
            closing()

        return write

    def _repeated(
        self, first: Sequence[Bundle], pipeline: Pipeline, after: Iterable[Bundle], closing: Write
    ) -> None:
        self._repeat(first, pipeline)
        self.control.emit(after)
        closing()

    def _repeat(self, before: Sequence[Bundle], pipeline: Pipeline) -> None:
        """Write a repeat block after the stages that run ahead of it; `before` shares bundles with them if it can."""
        last = pipeline.n_stages - 1
        ahead = [
            bundle for stage in range(last) for bundle in stage_bundles(pipeline, 0, stage) if any(bundle)
        ]
        self.control.emit(_merged(before, ahead))
        count = self.homes.register.get("count", "$m0")
        if count == "$m0":
            self.control.field("$m0", "count")
        self.text.repeat(count, stage_bundles(pipeline, 0, last))

    def _epilogue(self, pipeline: Pipeline) -> list[Bundle]:
        last = pipeline.n_stages - 1
        return [bundle for stage in range(1, last + 1) for bundle in stage_bundles(pipeline, stage, last)]

    def _straight(self, instructions: Sequence[Instruction]) -> list[Bundle]:
        return straight(instructions, self.registers.free, self.registers.pinned)[0]

    def _within(self, pipeline: Pipeline) -> Registers:
        """Return the registers where those of a pipelined loop are still in use, as parts of banks."""
        placement = pipeline.placement
        taken = {(r.file, first + i) for r, first in placement.items() for i in range(r.width)}
        free = {
            "a": tuple(a for a in self.registers.free["a"] if ("a", a) not in taken),
            "m": tuple(m for m in self.registers.free["m"] if ("m", m) not in taken),
        }
        return Registers({"a": free["a"], "m": free["m"]}, {**self.registers.pinned, **bank_places()})

    def _ending(self, instructions: Sequence[Instruction], registers: Registers) -> Write:
        """Return what writes straight code that ends with the results, and stores those."""
        bundles, placement = straight(instructions, registers.free, registers.pinned, self.finish.live)
        scratch = self._scratch(placement)

        def write() -> None:
            if "out" not in self.homes.register:
                self.homes.read(self.text, "out", "$m2")
            self.control.emit(bundles)
            if not self.finish.is_stored:
                self._store(placement, scratch)

        return write

    def _scratch(self, placement: Placement) -> str:
        """Return a float register that no result is in; raises `Unselectable` where one is needed and there is none."""
        results = self.finish.results
        taken = {
            placement[r.register] + r.first + i
            for r in results
            if r.register.file == "a"
            for i in range(r.width)
        }
        spares = [f"$a{a}" for a in self.registers.free["a"] if a not in taken]
        is_left = not self.finish.is_stored and self.finish.around is None
        needs_one = is_left and self.control.task.output.dtype not in PART_TYPES
        if not spares and needs_one:
            raise Unselectable("no register left to merge halves in")
        return spares[0] if spares else ""

    def _store(self, placement: Placement, scratch: str) -> None:
        """Write the stores of results that no straight code can do."""
        results, dtype = self.finish.results, self.control.task.output.dtype
        out = self.homes.register.get("out", "$m2")
        name = physical(results[0], placement)
        if self.finish.around is not None:
            around = (self.finish.around.half, self.finish.around.address, self.finish.around.old)
            half, address, old = (physical(part, placement) for part in around)
            store_in_word(self.text, name, half, address, old)
            return
        if self.shape.mode != "columns":
            if dtype == "f16":
                store_half(self.text, name, scratch, out)
            else:
                store_part(self.text, dtype, name, out, self.spare)
            return
        text, done, full = self.text, self.text.new_label(), self.text.new_label()
        text.op(f"brnz {self.homes.read(text, f'c{self.shape.column}', '$m0')}, {full}")
        rest = self.homes.read(text, "rest", "$m0")
        text.op(f"brz {rest}, {full}")
        singles = [physical(r.part(i), placement) for r in results for i in range(r.width)]
        store_rest(text, singles, 2 if dtype == "f16" else 1, scratch, out, rest)
        text.op(f"bri {done}")
        text.label(full)
        for part, result in enumerate(results):
            store = "st64" if result.width == 2 else "st32"
            text.op(f"{store} {physical(result, placement)}, {out}, $mzero, {part}")
        text.label(done)


def _again(instructions: Sequence[Instruction], code: Code, pinned: Placement) -> list[Instruction]:
    """Return the same instructions on other registers, but for those that are pinned."""
    other: dict[Register, Register] = {}

    def moved(operand: Operand) -> Operand:
        if isinstance(operand, str) or operand.register in pinned:
            return operand
        register = operand.register
        if register not in other:
            other[register] = code.new(register.file, register.width).register
        return replace(operand, register=other[register])

    return [replace(i, operands=tuple(moved(operand) for operand in i.operands)) for i in instructions]


def _merged(first: Sequence[Bundle], second: Sequence[Bundle]) -> list[Bundle]:
    """Return two stretches of code side by side where the first has only aux halves and the second only main ones."""
    if any(main for main, _ in first) or any(aux for _, aux in second):
        return [*first, *second]
    nothing: Bundle = ("", "")
    return [(b[0], a[1]) for a, b in zip_longest(first, second, fillvalue=nothing)]
