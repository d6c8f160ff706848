"""The code of a reduction in a shape; see `t10.codelets.reduce.family`."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from t10.codelets.assembly import Assembly
from t10.codelets.body.code import Code
from t10.codelets.body.pipeline import Pipeline, pipelined
from t10.codelets.body.select import Unselectable
from t10.codelets.body.virtual import Instruction, Placement, Register, Slice, physical
from t10.codelets.nest import N_WORKERS
from t10.codelets.reduce.accumulators import family, neutral_bits
from t10.codelets.reduce.body import Body, uses_accumulators
from t10.codelets.reduce.control import END, Control
from t10.codelets.reduce.layout import Layout
from t10.codelets.reduce.schedule import Bundle, Free, stage_bundles, straight
from t10.codelets.reduce.shape import MOST_UNROLLED, Shape
from t10.codelets.reduce.stores import store_half, store_part, store_rest
from t10.core.task import Task

FLOAT_REGISTERS = 8
LEAST_REPEATED = 4
"""Steps from which on the inner loop is a repeat block."""
FLOAT_NAMES = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
INTEGER_NAMES = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and", "or": "or"}


@dataclass(frozen=True, slots=True)
class Inner:
    """The inner loop: a pipelined repeat block, or `bundles` that are all of it; then `tail`."""

    pipeline: Pipeline | None
    bundles: tuple[Bundle, ...]
    tail: tuple[Bundle, ...]


class Generator:
    """Writes one reduction and the state its code reads."""

    def __init__(self, task: Task, shape: Shape) -> None:
        """Choose homes for the loops' variables; raises `Unselectable` where there are too many.

        Once generated, `steps` is the number of inner steps, and `walks_outer` tells whether outer reductions are
        loops or repeated text: the twin needs both.
        """
        self.task, self.shape = task, shape
        self.layout = Layout(task, shape)
        self.state, self.homes = self.layout.state, self.layout.homes
        self.text = Assembly()
        self.control = Control(self.layout, self.text)
        self.body = Body(
            task, shape, self.layout.inner_pointers, self.layout.still_pointers, self.layout.paces
        )
        self.m_free = (0, 1, 2, *self.homes.free)
        self.steps = str(shape.steps)
        self.walks_outer = True

    def generate(self) -> Assembly:
        """Return the code; raises `Unselectable` where registers or instructions do not suffice."""
        one = Code(self.body.numbering)
        counted = self.body.step(one)
        cost = max(sum(i.slots for i in one.instructions if i.is_main == main) for main in (True, False))
        total = prod(level.extent for level in self.shape.outer) * self.shape.steps
        is_unrolled = total * cost <= MOST_UNROLLED
        self.walks_outer = not is_unrolled
        is_repeated = not is_unrolled and self.shape.steps >= LEAST_REPEATED
        straights: list[Code] = []
        if not is_repeated:
            straights.append(self._straight_steps(one, is_unrolled=is_unrolled))
        elif self.shape.mode == "rows" and self.shape.tail:
            straights.append(Code(self.body.numbering))
            self._tail(straights[0])
        finish, results = self._finish()
        self._per_output()
        pinned = self._pinned([one, *straights, finish])
        free: Free = {
            "a": self._rest_of_floats(pinned),
            "m": tuple(m for m in self.m_free if not _takes(pinned, m)),
        }
        inner = self._inner(one, counted, straights, free, pinned, is_repeated=is_repeated)
        constants, _ = straight(self.body.once.instructions, free, pinned)
        self.control.prologue(constants, clears=uses_accumulators(self.body.accumulator))
        first, _ = straight(self.body.per_output.instructions, free, pinned)

        def output() -> None:
            self.control.emit(first)
            self.control.reduce(len(self.shape.outer) if is_unrolled else 0, lambda: self._inner_loop(inner))
            self._store(finish, results, free, pinned)

        self.control.parallel(0, output)
        self.text.label(END)
        self.text.op("exitz $mzero")
        return self.text

    def _straight_steps(self, one: Code, *, is_unrolled: bool) -> Code:
        """Return all steps of the inner loop (or of the whole reduction) as straight code; the first is in `one`."""
        code = Code(self.body.numbering)
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
                    self._move_in_code(code, k)

        walk(0 if is_unrolled else len(self.shape.outer))
        return code

    def _move_in_code(self, code: Code, k: int) -> None:
        for i in self.layout.moving:
            word = self.state.place(self.layout.outer_step(i, k))
            step = code.new("m")
            code.add(f"ld32 {{}}, $mvertex_base, $mzero, {word}", "o", step, is_main=True)
            register = self.homes.register[f"w{i}"]
            code.add(f"add {register}, {register}, {{}}", "i", step, is_main=True, streams=(f"in{i}",))

    def _tail(self, code: Code) -> None:
        """Add the elements beyond whole vectors of a row: one more vector, what lies behind the row made neutral."""
        form = self.body.accumulator.form
        per_word = 2 if form == "h" else 1
        neutral = neutral_bits(self.task.combine, form) if self.task.combine != "sum" else 0
        keep = [
            _mask(self.shape.tail - word * per_word, per_word) for word in range(self.shape.lanes // per_word)
        ]
        self.state.number("rest", self.shape.tail)

        def masked(x: Slice, part: int) -> Slice:
            words = range(part * x.width, (part + 1) * x.width)
            kept = self._words(code, [(f"keep{n}", keep[n]) for n in words], x.width)
            wide = "64" if x.width == 2 else ""
            result = code.aux(f"and{wide}", code.new("a", x.width), x, kept)
            if not neutral:
                return result
            fill = self._words(code, [(f"fill{n}", neutral & ~keep[n]) for n in words], x.width)
            return code.aux(f"or{wide}", code.new("a", x.width), result, fill)

        self.body.step(code, masked, is_stepping=False)

    def _words(self, code: Code, words: list[tuple[str, int]], width: int) -> Slice:
        """Add loading words of the state into registers."""
        target = code.new("a", width)
        for i, (name, value) in enumerate(words):
            place = self.state.number(name, value & 0xFFFFFFFF)
            code.add(f"ld32 {{}}, $mvertex_base, $mzero, {place}", "o", target.part(i), is_main=True)
        return target

    def _finish(self) -> tuple[Code, tuple[Slice, ...]]:
        """Return code that folds, rounds and adds what was there before, and the registers to store."""
        code, dtype = Code(self.body.numbering), self.task.output.dtype
        is_vector = self.shape.mode == "columns"
        if is_vector:
            results = self.body.accumulator.vectors(code, dtype)
        else:
            results = (self.body.accumulator.folded(code),)
            if dtype == "f16" and self.task.combine == "sum":
                results = (code.aux("f32tof16", code.new("a"), results[0]),)
        if not self.task.initial:
            results = tuple(self._with_old(code, part, result) for part, result in enumerate(results))
        elif (
            results[0].register in {p.register for p in self.body.accumulator.pinned} and dtype in PART_TYPES
        ):
            results = (code.main("mov", code.new("m"), results[0]),)
        return code, results

    def _with_old(self, code: Code, part: int, result: Slice) -> Slice:
        """Add combining a result with what the output held."""
        dtype, out = self.task.output.dtype, self.layout.out_register
        if dtype not in ("f16", "f32"):
            load = {
                "i32": "ld32",
                "i8": "lds8",
                "i16": "lds16",
                "i1": "ldz8",
                "ui8": "ldz8",
                "ui16": "ldz16",
            }[dtype]
            old = code.new("m")
            code.add(f"{load} {{}}, {out}, $mzero, 0", "o", old, is_main=True)
            name = (
                "or"
                if dtype == "i1" and self.task.combine in ("sum", "max")
                else INTEGER_NAMES[self.task.combine]
            )
            name = "and" if dtype == "i1" and self.task.combine in ("prod", "min") else name
            return code.main(name, code.new("m"), old, result)
        is_vector = self.shape.mode == "columns"
        load = "ld64" if result.width == 2 else "ld32" if is_vector or dtype == "f32" else "ldb16"
        old = code.new("a", result.width)
        code.add(f"{load} {{}}, {out}, $mzero, {part}", "o", old, is_main=True)
        name = family("h" if dtype == "f16" else "w", result.width) + FLOAT_NAMES[self.task.combine]
        return code.aux(name, code.new("a", result.width), old, result)

    def _per_output(self) -> None:
        """Add to what runs before each output: working pointers begin where the output's begin."""
        for i in self.layout.moving:
            target = self.homes.register[f"w{i}"]
            if f"p{i}" in self.homes.register:
                text = f"mov {target}, {self.homes.register[f'p{i}']}"
            else:
                text = f"ld32 {target}, {self.homes.frame}, $mzero, {self.homes.slot[f'p{i}']}"
            self.body.per_output.add(text, "", is_main=True, streams=(f"in{i}",))

    # --- registers --------------------------------------------------------------------------------------------------

    def _pinned(self, later: list[Code]) -> Placement:
        """Return registers for constants and for what an output's loop reads: they live while the loop runs."""
        made = list(_written(self.body.once.instructions))
        read = {s.register for code in later for i in code.instructions for s in i.reads}
        made += [r for r in _written(self.body.per_output.instructions) if r in read]
        made += [p.register for p in self.body.accumulator.pinned]
        order = sorted(dict.fromkeys(made), key=lambda r: (-r.width, r.number))
        placement: Placement = {}
        floats, integers = FLOAT_REGISTERS, list(self.m_free[3:])
        for register in order:
            if register.file == "a":
                floats = (floats - register.width) // register.width * register.width
                placement[register] = floats
            elif integers:
                placement[register] = integers.pop()
            else:
                raise Unselectable("no integer register left")
        if floats < 2:
            raise Unselectable("too many values live through the loop")
        return placement

    def _rest_of_floats(self, pinned: Placement) -> tuple[int, ...]:
        taken = {
            first + i
            for register, first in pinned.items()
            if register.file == "a"
            for i in range(register.width)
        }
        return tuple(a for a in range(FLOAT_REGISTERS) if a not in taken)

    def _inner(
        self,
        one: Code,
        counted: list[Instruction],
        straights: list[Code],
        free: Free,
        pinned: Placement,
        *,
        is_repeated: bool,
    ) -> Inner:
        """Return the inner loop, scheduled."""
        codes = [tuple(straight(code.instructions, free, pinned)[0]) for code in straights]
        if not is_repeated:
            return Inner(None, codes[0], ())
        marks = [instruction in counted for instruction in one.instructions]
        pipeline = pipelined(one.instructions, (), marks, {**free, "m": free["m"][1:]}, pinned)
        if pipeline is None:
            raise Unselectable("no schedule of the inner loop")
        self.state.number("count", self.shape.steps - (pipeline.n_stages - 1))
        self.steps = f"int(count) + {pipeline.n_stages - 1}"
        return Inner(pipeline, (), codes[0] if codes else ())

    def _inner_loop(self, inner: Inner) -> None:
        if inner.pipeline is None:
            self.control.emit(inner.bundles)
            return
        pipeline = inner.pipeline
        last = pipeline.n_stages - 1
        for stage in range(last):
            self.control.emit(stage_bundles(pipeline, 0, stage))
        count = self.homes.register.get("count", "$m0")
        if count == "$m0":
            self.control.field("$m0", "count")
        self.text.repeat(count, stage_bundles(pipeline, 0, last))
        for stage in range(1, last + 1):
            self.control.emit(stage_bundles(pipeline, stage, last))
        self.control.emit(inner.tail)

    def _store(self, finish: Code, results: tuple[Slice, ...], free: Free, pinned: Placement) -> None:
        """Write: the results of one output or vector."""
        text, dtype = self.text, self.task.output.dtype
        out = self.homes.read(text, "out", "$m2")
        if "out" not in self.homes.register:
            free = {**free, "m": tuple(m for m in free["m"] if m != 2)}
        spare = ""
        if dtype in PART_TYPES:
            others = [m for m in free["m"] if m > 1]
            if len(others) < 2:
                raise Unselectable("no integer register left")
            spare = f"$m{others[0]}"
            free = {**free, "m": tuple(others[1:])}
        bundles, placement = straight(finish.instructions, free, pinned, results)
        self.control.emit(bundles)
        names = [physical(result, placement) for result in results]
        taken = {
            placement[r.register] + r.first + i
            for r in results
            if r.register.file == "a"
            for i in range(r.width)
        }
        spares = [f"$a{a}" for a in free["a"] if a not in taken]
        if not spares and (dtype == "f16" or self.shape.tail):
            raise Unselectable("no register left to merge halves in")
        scratch = spares[0] if spares else ""
        if self.shape.mode == "columns":
            self._store_vectors(results, names, placement, scratch, out)
        elif dtype == "f16":
            store_half(text, names[0], scratch, out)
        elif dtype in PART_TYPES:
            store_part(text, dtype, names[0], out, spare)
        else:
            text.op(f"st32 {names[0]}, {out}, $mzero, 0")

    def _store_vectors(
        self, results: tuple[Slice, ...], names: list[str], placement: Placement, scratch: str, out: str
    ) -> None:
        text, done = self.text, self.text.new_label()
        if self.shape.tail:
            full = self.text.new_label()
            text.op(f"brnz {self.homes.read(text, f'c{self.shape.column}', '$m0')}, {full}")
            rest = self.homes.read(text, "rest", "$m0")
            text.op(f"brz {rest}, {full}")
            singles = [physical(r.part(i), placement) for r in results for i in range(r.width)]
            store_rest(text, singles, 2 if self.task.output.dtype == "f16" else 1, scratch, out, rest)
            text.op(f"bri {done}")
            text.label(full)
        for part, (result, name) in enumerate(zip(results, names, strict=True)):
            text.op(f"{'st64' if result.width == 2 else 'st32'} {name}, {out}, $mzero, {part}")
        text.label(done)

    @property
    def scratch_bytes(self) -> int:
        """Return the bytes of all workers' frames."""
        return N_WORKERS * self.layout.frame_bytes


PART_TYPES = frozenset({"i1", "i8", "ui8", "i16", "ui16"})


def _mask(n_kept: int, per_word: int) -> int:
    """Return the word that keeps the first elements of a word."""
    if n_kept >= per_word:
        return 0xFFFFFFFF
    return (1 << (max(n_kept, 0) * 32 // per_word)) - 1


def _written(instructions: list[Instruction]) -> list[Register]:
    return [slice_.register for instruction in instructions for slice_ in instruction.writes]


def _takes(pinned: Placement, number: int) -> bool:
    return any(register.file == "m" and first == number for register, first in pinned.items())
