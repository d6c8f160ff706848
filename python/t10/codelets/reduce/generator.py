"""The code of a reduction in a shape; see `t10.codelets.reduce.family`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from math import prod

from t10.codelets.assembly import Assembly
from t10.codelets.body.code import Code
from t10.codelets.body.pipeline import Pipeline, pipelined
from t10.codelets.body.select import Unselectable
from t10.codelets.body.virtual import Instruction, Placement, Register, Slice
from t10.codelets.reduce.accumulators import neutral_bits
from t10.codelets.reduce.body import Body, uses_accumulators
from t10.codelets.reduce.control import END, Control
from t10.codelets.reduce.finish import PART_TYPES, finished
from t10.codelets.reduce.layout import RegisterLayout
from t10.codelets.reduce.numbers import Numbers
from t10.codelets.reduce.output import OutputWriter, Write
from t10.codelets.reduce.schedule import Free, Registers, straight
from t10.codelets.reduce.shape import LEAST_REPEATED, MOST_UNROLLED, Shape
from t10.codelets.reduce.state import Number
from t10.codelets.reduce.structure import Structure
from t10.core.task import Task
from t10.core.tile import N_WORKERS

FLOAT_REGISTERS = 8
STRUCTURES = 4096


class Generator:
    """Writes one reduction and the state its code reads."""

    def __init__(self, task: Task, shape: Shape) -> None:
        """Choose homes for the loops' variables; raises `Unselectable` where there are too many.

        Once generated, `steps` is the number of inner steps, and `walks_outer` tells whether outer reductions are
        loops or repeated text: the C++ reference needs both.
        """
        self.task, self.shape = task, shape
        self.layout = RegisterLayout(task, shape)
        self.state, self.homes = self.layout.state, self.layout.homes
        self.text = Assembly()
        self.control = Control(self.layout, self.text)
        self.body = Body(
            task, shape, self.layout.inner_pointers, self.layout.still_pointers, self.layout.paces
        )
        self.spare, self.m_free = self._integer_registers()
        self.steps = str(shape.steps)
        self.walks_outer = True

    @property
    def scratch_bytes(self) -> int:
        """Return the bytes of all workers' frames."""
        return N_WORKERS * self.layout.frame_bytes

    def generate(self) -> Assembly:
        """Return the code; raises `Unselectable` where registers or instructions do not suffice."""
        one = Code(self.body.numbering)
        counted = self.body.step(one)
        total = prod(level.extent for level in self.shape.outer) * self.shape.steps
        is_unrolled = total * _slots(one) <= MOST_UNROLLED
        self.walks_outer = not is_unrolled
        self.layout.ends_early = is_unrolled
        is_repeated = not is_unrolled and self.shape.steps >= LEAST_REPEATED
        inner = Code(self.body.numbering)
        if not is_repeated:
            self._straight_steps(inner, one, is_unrolled=is_unrolled)
        elif self.shape.mode == "rows" and self.shape.tail:
            self._tail(inner)
        registers, write, write_two = self._output(one, inner, counted if is_repeated else None)
        constants, _ = straight(self.body.once.instructions, registers.free, registers.pinned)
        self.control.prologue(constants, clears=uses_accumulators(self.body.accumulator))
        if write_two is None:
            self.control.parallel(0, write)
        else:
            self.control.two_by_two(write, write_two)
        self.text.label(END)
        self.text.op("exitz $mzero")
        return self.text

    def _output(
        self, one: Code, inner: Code, counted: list[Instruction] | None
    ) -> tuple[Registers, Write, Write | None]:
        """Return registers, what writes an output, and what writes two at once, if that is faster.

        `counted` where the inner loop is a repeat block.
        """
        is_single_half = self.shape.mode != "columns" and self.task.output.dtype == "f16"
        if is_single_half:
            try:
                return self._output_as(one, inner, counted, loads_word=True)
            except Unselectable:
                pass
        return self._output_as(one, inner, counted, loads_word=False)

    def _output_as(
        self, one: Code, inner: Code, counted: list[Instruction] | None, *, loads_word: bool
    ) -> tuple[Registers, Write, Write | None]:
        finish = finished(self.body, self.layout, loads_word=loads_word)
        registers = self._registers([one, inner, finish.code])
        pipeline = None if counted is None else self._pipeline(one, counted, registers)
        writer = OutputWriter(self.control, registers, finish, self.spare)
        n_outer = len(self.shape.outer) if self.walks_outer else 0
        begin = self.body.per_output.instructions
        write = writer.prepared(begin, pipeline, inner.instructions, n_outer)
        # Reading the accumulators takes long: the next output's loads and stores do something meanwhile.
        has_code = self.task.epilogue is not None and bool(self.task.epilogue.ops)
        is_long = uses_accumulators(self.body.accumulator) or has_code
        waits = self.shape.mode == "columns" and is_long
        if not waits or pipeline is not None or n_outer or not self.control.is_simple:
            return registers, write, None
        return registers, write, writer.two_prepared([*begin, *inner.instructions])

    # --- straight code ----------------------------------------------------------------------------------------------

    def _straight_steps(self, code: Code, one: Code, *, is_unrolled: bool) -> None:
        """Add all steps of the inner loop (or of the whole reduction); the first is in `one`."""
        is_first = True

        def inner() -> None:
            nonlocal is_first
            for _ in range(self.shape.steps):
                if is_first:
                    code.instructions += one.instructions
                else:
                    self.body.step(code)
                is_first = False
            if self.shape.mode == "rows" and self.shape.tail:
                self._tail(code)

        def walk(k: int) -> None:
            if k == len(self.shape.outer):
                inner()
                return
            for j in range(self.shape.outer[k].extent):
                walk(k + 1)
                if k > 0 or j < self.shape.outer[k].extent - 1:
                    self._move(code, k)

        walk(0 if is_unrolled else len(self.shape.outer))

    def _move(self, code: Code, k: int) -> None:
        """Add: pointers move by a point of outer reduction `k`."""
        for i in self.layout.moving:
            word = self.state.place(self.layout.outer_step(i, k))
            step = code.new("m")
            code.add(f"ld32 {{}}, $mvertex_base, $mzero, {word}", "o", step, is_main=True)
            register = self.layout.inner_pointers[i]
            code.add(f"add {register}, {register}, {{}}", "i", step, is_main=True, streams=(f"in{i}",))

    def _tail(self, code: Code) -> None:
        """Add the elements beyond whole vectors of a row: one more vector, what lies behind the row made neutral.

        Raises `Unselectable` for vectors of 16 bytes, which nothing masks.
        """
        if self.shape.is_wide:
            raise Unselectable("elements beyond vectors of 16 bytes")
        form = self.body.accumulator.form
        per_word = 2 if form == "h" else 1
        neutral = neutral_bits(self.task.combine, form) if self.task.combine != "sum" else 0
        self.state.number("rest", lambda n: n.shape.tail)

        def masked(x: Slice, part: int) -> Slice:
            words = range(part * x.width, (part + 1) * x.width)
            keep = [(f"keep{n}", partial(_kept, first=n * per_word, per_word=per_word)) for n in words]
            kept = self._words(code, keep, x.width)
            wide = "64" if x.width == 2 else ""
            result = code.aux(f"and{wide}", code.new("a", x.width), x, kept)
            if not neutral:
                return result
            fill = [
                (f"fill{n}", partial(_filled, neutral=neutral, first=n * per_word, per_word=per_word))
                for n in words
            ]
            return code.aux(f"or{wide}", code.new("a", x.width), result, self._words(code, fill, x.width))

        self.body.step(code, masked, is_stepping=False)

    def _words(self, code: Code, words: Sequence[tuple[str, Number]], width: int) -> Slice:
        """Add loading words of the state into registers."""
        target = code.new("a", width)
        for i, (name, value) in enumerate(words):
            place = self.state.number(name, value)
            code.add(f"ld32 {{}}, $mvertex_base, $mzero, {place}", "o", target.part(i), is_main=True)
        return target

    # --- registers --------------------------------------------------------------------------------------------------

    def _integer_registers(self) -> tuple[str, tuple[int, ...]]:
        """Return a register to store parts of words with (where they are), and those left to straight code."""
        found = [*((0, 1, 2) if "out" in self.homes.register else (0, 1)), *self.homes.free]
        if self.task.output.dtype not in PART_TYPES:
            return "", tuple(found)
        found = [m for m in found if m > 1]
        if len(found) < 2:
            raise Unselectable("no integer register left")
        return f"$m{found[0]}", tuple(found[1:])

    def _registers(self, codes: list[Code]) -> Registers:
        """Return registers for constants and for what an output's code reads, which live meanwhile; and the others."""
        made = _written(self.body.once.instructions)
        read = {s.register for code in codes for i in code.instructions for s in i.reads}
        made += [r for r in _written(self.body.per_output.instructions) if r in read]
        made += [p.register for p in self.body.accumulator.pinned]
        pinned: Placement = {}
        floats, integers = FLOAT_REGISTERS, [m for m in self.m_free if m in self.homes.free]
        for register in sorted(dict.fromkeys(made), key=lambda r: (-r.width, r.number)):
            if register.file == "a":
                floats = (floats - register.width) // register.width * register.width
                pinned[register] = floats
            elif integers:
                pinned[register] = integers.pop()
            else:
                raise Unselectable("no integer register left")
        if floats < 2:
            raise Unselectable("too many values live through the loop")
        free: Free = {
            "a": tuple(a for a in range(FLOAT_REGISTERS) if a not in _cells(pinned, "a")),
            "m": tuple(m for m in self.m_free if m not in _cells(pinned, "m")),
        }
        return Registers(free, pinned)

    def _pipeline(self, one: Code, counted: list[Instruction], registers: Registers) -> Pipeline:
        """Return the schedule of the inner loop; $m0 is left to its count."""
        marks = [instruction in counted for instruction in one.instructions]
        integers = tuple(m for m in registers.free["m"] if m)
        free: Free = {"a": registers.free["a"], "m": integers}
        pipeline = pipelined(one.instructions, (), marks, free, registers.pinned)
        if pipeline is None:
            raise Unselectable("no schedule of the inner loop")
        ahead = pipeline.n_stages - 1
        self.state.number("count", lambda n: n.shape.steps - ahead)
        self.steps = f"int(count) + {ahead}"
        return pipeline


def _slots(code: Code) -> int:
    """Return the slots of code that runs as it likes."""
    return max(sum(i.slots for i in code.instructions if i.is_main == main) for main in (True, False))


@lru_cache(maxsize=STRUCTURES)
def slots_of_step(structure: Structure) -> int:
    """Return the slots of one inner step of a structure; 1 of one that cannot be computed."""
    try:
        body = Generator(*structure.example()).body
        one = Code(body.numbering)
        body.step(one)
    except Unselectable:
        return 1
    return _slots(one)


def _kept(numbers: Numbers, first: int, per_word: int) -> int:
    """Return the mask of a row's last elements in a word, whose own first one is number `first` of a vector."""
    n_kept = numbers.shape.tail - first
    if n_kept >= per_word:
        return 0xFFFFFFFF
    return (1 << (max(n_kept, 0) * 32 // per_word)) - 1


def _filled(numbers: Numbers, neutral: int, first: int, per_word: int) -> int:
    """Return the neutral elements of a word that go where `_kept` keeps nothing."""
    return neutral & ~_kept(numbers, first, per_word) & 0xFFFFFFFF


def _written(instructions: list[Instruction]) -> list[Register]:
    return [slice_.register for instruction in instructions for slice_ in instruction.writes]


def _cells(placement: Placement, file: str) -> set[int]:
    return {first + i for r, first in placement.items() if r.file == file for i in range(r.width)}
