"""How fast reductions run at best: cycles of every way to walk one, read off the code of the simplest nests.

A nest with more loops, or whose variables do not all find registers, takes longer; never less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from t10.codelets.body.code import MULTI_SLOT
from t10.codelets.body.select import Unselectable
from t10.codelets.nest import Level, Split
from t10.codelets.reduce.generator import LEAST_REPEATED, Generator
from t10.codelets.reduce.numbers import Numbers
from t10.codelets.reduce.pieces import BRIDGES, widened
from t10.codelets.reduce.shape import ACCESS_BYTES, MOST_UNROLLED, Mode, Shape, has_wide_sums
from t10.core.dtypes import size_bytes
from t10.core.expression import Combine
from t10.core.scalar import ScalarFunction, identity
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS, WIDE_BYTES
from t10.errors import UnsupportedOpError

OUTPUTS, OUTERS, STEPS = 2 * N_WORKERS, 32, 16
LONG = STEPS * MOST_UNROLLED
ONE_PASS, PASSES = ((1, 1), (2, 1), (3, 1), (LONG, 1)), (LONG, OUTERS)
"""Steps and passes of nests that tell how much less few outputs take."""
LENGTHS = (1, 2, 3, 4, 5, 8, 16)
"""Among these are the most steps that are written out, whatever a step takes: `MOST_UNROLLED` by its slots."""
FAR = 1 << 12
SLOT_CYCLES = N_WORKERS
LEFT_BY_LAST_PASS = 2
"""Lines before the branch of a loop that counts in memory: there the counter is brought down and stored."""
NEVER = 1 << 24
"""Cycles of what cannot be."""
PARTS_SLOTS = 15
"""Slots of sums of parts besides their vectors, and finding where the parts begin."""
OPTIONAL = ("step", "count", "out_pace", "pace")
"""Numbers that the code loads once where they have a register, else when they are needed."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What code a reduction gets depends on, loops aside; `dtypes` has the output's last."""

    dtypes: tuple[str, ...]
    combine: Combine
    body: ScalarFunction
    initial: bool

    @property
    def has_wide_sums(self) -> bool:
        """Return whether one instruction adds 16 bytes of the input to accumulators."""
        return has_wide_sums(self.dtypes, self.combine)


@dataclass(frozen=True, slots=True)
class Along:
    """Whether an input moves along the columns (of a walk across columns), the inner reduction, and outer ones."""

    columns: bool
    inner: bool
    outer: bool


@dataclass(frozen=True, slots=True)
class Pace:
    """The cycles of one way to walk, none of them more than any nest takes.

    A worker takes `once` around its outputs, `single` less where there is one output in all, `few` less where none has
    more than one (`few_passing` of several passes). An output takes `step` for
    every inner step and `tail` for every pass with elements left over, and besides: `unrolled` where it has at most
    `most_unrolled` steps in all, with `moved` for every pass after the first, else `repeated` where it has one pass,
    else `around` and `passed` for every pass.
    """

    mode: Mode
    lanes: int
    once: int
    single: int
    few: int
    few_passing: int
    step: int
    tail: int
    most_unrolled: int
    unrolled: int
    moved: int
    repeated: int
    around: int
    passed: int

    def or_better(self, other: Pace) -> Pace:
        """Return what is slower than neither this nor another pace."""
        return Pace(
            self.mode,
            self.lanes,
            min(self.once, other.once),
            max(self.single, other.single),
            max(self.few, other.few),
            max(self.few_passing, other.few_passing),
            min(self.step, other.step),
            min(self.tail, other.tail),
            max(self.most_unrolled, other.most_unrolled),
            min(self.unrolled, other.unrolled),
            min(self.moved, other.moved),
            min(self.repeated, other.repeated),
            min(self.around, other.around),
            min(self.passed, other.passed),
        )


def parts_paces(kernel: Kernel) -> tuple[Pace, ...]:
    """Return the pace of sums of parts (`reduce.parts`), of which every output has one pass; none of other sums."""
    if kernel.dtypes not in (("f32", "f32"), ("f16", "f16")) or kernel.combine != "sum":
        return ()
    lanes, stored = (4, 2) if kernel.dtypes[0] == "f32" else (8, 4)
    old = 0 if kernel.initial else 1
    once, vector = SLOT_CYCLES * (PARTS_SLOTS + old), SLOT_CYCLES * (stored + old)
    step, far = SLOT_CYCLES, NEVER
    return (Pace("columns", lanes, once, 0, 0, 0, step, 0, far, vector, far, vector, far, far),)


@dataclass(frozen=True, slots=True)
class _Measured:
    """Cycles of a nest: around all outputs, of an output without its outer passes, of a pass; of an inner step."""

    once: int
    output: int
    inner: int
    step: int


@lru_cache(maxsize=1024)
def pace(
    kernel: Kernel, mode: Mode, lanes: int, inputs: tuple[Along, ...], is_wide: bool = False
) -> Pace | None:
    """Return the pace of a way to walk, None where the code cannot be made."""
    return _Probe(kernel, mode, lanes, inputs, is_wide).pace()


def of_pieces(kernel: Kernel) -> tuple[Kernel | None, tuple[Pace, ...]]:
    """Return what reduces pieces of rows, None where that is never done, and the paces of reducing their results."""
    *inputs, output = kernel.dtypes
    if output not in BRIDGES:
        return None, ()
    is_sum = kernel.combine == "sum" and output == "f16"
    bridge = "f32" if is_sum else output
    body = widened(kernel.body) if is_sum else kernel.body
    last, along = replace(kernel, dtypes=(bridge, output), body=identity()), (Along(False, True, True),)
    found = (pace(last, "points", 1, along), pace(last, "rows", 2, along))
    first = replace(kernel, dtypes=(*inputs, bridge), body=body, initial=True)
    return first, tuple(one for one in found if one is not None)


@dataclass(frozen=True, slots=True)
class _Probe:
    """Makes nests of one way to walk and reads off what they take."""

    kernel: Kernel
    mode: Mode
    lanes: int
    inputs: tuple[Along, ...]
    is_wide: bool

    def pace(self) -> Pace | None:
        """Return the cycles of all lengths, None where none of them can be made."""
        many = OUTERS * MOST_UNROLLED
        unrolled = self.at_once()
        passes = {n: self.measured(n, many) for n in range(1, LEAST_REPEATED)}
        shorts = {n: m for n, m in passes.items() if m is not None}
        whole, looped = self.measured(LONG, 1), self.measured(LONG, OUTERS)
        # A single output leaves more registers to what is needed in every pass.
        alone = None if self.mode == "columns" else self.measured(LONG, OUTERS, n_outputs=1)
        loops = [m for m in (looped, alone) if m is not None]
        wholes = [m for m in (whole,) if m is not None]
        every = [*unrolled.values(), *shorts.values(), *wholes, *loops[:1]]
        if not every:
            return None
        step = min((m.step for m in (*wholes, *loops)), default=0)
        inner = [m.inner + LEAST_REPEATED * (m.step - step) for m in loops]
        around = [m for m in (looped or alone, *shorts.values()) if m is not None]
        written_out = min((m.output - n * step for n, m in unrolled.items()), default=NEVER)
        return Pace(
            self.mode,
            self.lanes,
            min(m.once for m in every),
            # Schedules differ by a slot.
            self.less(1, (*ONE_PASS, PASSES)) + (self.mode != "columns") * SLOT_CYCLES,
            self.less(N_WORKERS, ONE_PASS),
            self.less(N_WORKERS, (*ONE_PASS, PASSES)),
            step,
            self.tail(),
            max(unrolled, default=0),
            written_out,
            self.moved(written_out, step),
            min((m.output + LEAST_REPEATED * (m.step - step) for m in wholes), default=NEVER),
            min((m.output for m in around), default=NEVER),
            min((*inner, *(m.inner - n * step for n, m in shorts.items())), default=NEVER),
        )

    def moved(self, written_out: int, step: int) -> int:
        """Return how many cycles more a further pass takes that is written out."""
        found: list[int] = []
        for n_steps, n_outer in ((1, 2), (2, 2), (1, 3), (1, 4), (2, 4)):
            made = self.measured(n_steps, n_outer)
            if made is not None and not (made.step or made.inner):
                found.append((made.output - written_out - step * n_steps * n_outer) // (n_outer - 1))
        return max(min(found, default=0), 0)

    def at_once(self) -> dict[int, _Measured]:
        """Return short reductions that are written out as a whole, by number of steps."""
        result: dict[int, _Measured] = {}
        is_wider = any(i.outer and not i.inner for i in self.inputs)
        for n in LENGTHS:
            made = self.measured(1, n) if is_wider else self.measured(n, 1)
            if made is not None and (made.step or made.inner):
                break
            if made is not None:
                result[n] = made
        return result

    def measured(
        self, n_steps: int, n_outer: int, tail: int = 0, *, n_outputs: int | None = None
    ) -> _Measured | None:
        """Return what a reduction takes, None where its code cannot be made.

        Of many outputs if not told; of fewer, which need fewer registers, where that code cannot be made.
        """
        if n_outputs is None:
            found = (self.measured(n_steps, n_outer, tail, n_outputs=n) for n in self.outputs)
            return next((one for one in found if one is not None), None)
        return _probed(self, self.shape(n_steps, n_outer, tail, n_outputs))

    @property
    def outputs(self) -> tuple[int, ...]:
        """Return numbers of outputs whose code differs."""
        return (OUTPUTS,) if self.mode == "columns" else (OUTPUTS, N_WORKERS, 1)

    def tail(self) -> int:
        """Return how many cycles more elements take that are left over of every pass; `NEVER` if they cannot be."""
        if self.mode != "rows":
            return 0
        found = [NEVER]
        for n_steps, n_outer in ((1, 1), (2, 1), (LONG, 1), (1, OUTERS * MOST_UNROLLED), (LONG, OUTERS)):
            even, odd = self.measured(n_steps, n_outer), self.measured(n_steps, n_outer, 1)
            if even is not None and odd is not None:
                found.append(max(odd.output + odd.inner - even.output - even.inner, 0))
        return min(found)

    def less(self, n_outputs: int, nests: Sequence[tuple[int, int]]) -> int:
        """Return how much less the only output of a worker takes in some nests of steps and passes."""
        if self.mode == "columns":
            return 0
        found = [0]
        for n_steps, n_outer in nests:
            many = self.measured(n_steps, n_outer)
            one = self.measured(n_steps, n_outer, n_outputs=n_outputs)
            if many is not None and one is not None:
                found.append(many.once + many.output - one.once - one.output)
        return max(found)

    def task(self) -> Task:
        """Return a task of the types and body; its strides do not count, those of the shape do."""
        inputs = tuple(TaskOperand(dtype, (0, 0, 0), WIDE_BYTES) for dtype in self.kernel.dtypes[:-1])
        return Task(
            extents=(OUTPUTS, OUTERS, STEPS),
            inputs=inputs,
            output=TaskOperand(self.kernel.dtypes[-1], (1, 0, 0), WIDE_BYTES),
            combine=self.kernel.combine,
            body=self.kernel.body,
            reduction_axes=(1, 2),
            initial=self.kernel.initial,
        )

    def shape(self, n_steps: int, n_outer: int, tail: int, n_outputs: int) -> Shape:
        """Return the nest of one loop over outputs, if any, one over outer passes, if any, and the inner one."""
        are_columns = self.mode == "columns"
        unit = self.lanes if are_columns else 1
        near = [self.near(i) for i in range(len(self.inputs))]
        is_single = n_outputs == 1
        outputs = Level(0, n_outputs, (*(unit * int(i.columns) for i in self.inputs), unit), False)
        outer = Level(1, n_outer, (*(FAR * int(i.outer) for i in self.inputs), 0), True)
        n_points = n_steps * self.lanes + tail if self.mode == "rows" else n_steps
        inner = Level(
            2, n_points, (*(n * int(i.inner) for n, i in zip(near, self.inputs, strict=True)), 0), True
        )
        return Shape(
            self.mode,
            self.lanes,
            () if is_single else (outputs,),
            (outer,) if n_outer > 1 else (),
            inner,
            n_steps,
            tail,
            Split(None) if is_single else Split(0),
            0 if are_columns else None,
            self.is_wide,
        )

    def near(self, number: int) -> int:
        """Return the stride along the inner reduction of an input that moves along it: the least that code allows."""
        if self.mode != "columns" or not self.inputs[number].columns:
            return 1
        n_bytes = self.lanes * size_bytes(self.kernel.dtypes[number])
        return self.lanes * (2 if n_bytes > ACCESS_BYTES and not self.is_wide else 1)


@lru_cache(maxsize=4096)
def _probed(probe: _Probe, shape: Shape) -> _Measured | None:
    """Return what a nest takes, None where its code cannot be made."""
    try:
        generator = Generator(probe.task(), shape)
        generator.generate()
    except (Unselectable, UnsupportedOpError):
        return None
    return _measured(generator, sum(i.columns and not (i.inner or i.outer) for i in probe.inputs))


def _measured(generator: Generator, n_spare: int) -> _Measured:
    """Return the cycles of a generator's code; an output may take `n_spare` instructions less."""
    comments = [line.partition("// ")[2] for line in generator.text.lines]
    lines = [line.split("//")[0].strip() for line in generator.text.lines]
    shape = generator.shape
    has_one = shape.share.level is None
    top = _place(lines, "brnz $m0, .LEnd") + 1 if has_one else _place(lines, ".LOut0:")
    last = _place(lines, ".LEnd:") if has_one or shape.is_once else _end(lines, ".LOut0")
    output, passed, step, repeated = _shortest(lines, top, last), 0, 0, 0
    if any("{ rpt " in line for line in lines):
        at = next(number for number, line in enumerate(lines) if "{ rpt " in line)
        n_bundles = int(lines[at].split(",")[1].split(";")[0]) + 1
        step = sum(map(_slots, lines[at + 1 : at + 1 + n_bundles]))
        count = generator.state.words[generator.state.place("count")]
        assert callable(count)
        # One pass of the block is in the text.
        repeated = step * (count(Numbers(generator.task, generator.shape)) - generator.shape.steps - 1)
    if ".LReduce0:" in lines:
        passed = _shortest(lines, _place(lines, ".LReduce0:"), _end(lines, ".LReduce0"))
        output -= passed
        passed += repeated
    else:
        output += repeated
    # Not every nest needs these.
    optional = sum(comment.startswith(OPTIONAL) for comment in comments[:top])
    optional += sum(
        3
        for comment in comments[:top]
        if comment.startswith("stride") and comment != f"stride{generator.layout.out}"
    )
    is_two = "turns after the first" in comments
    # In a nest with more pointers, constants that stand alone here issue with those.
    once = _shortest(lines, 0, top) - optional - sum(map(_is_constant, lines[:top])) + 1
    output = output * SLOT_CYCLES // (2 if is_two else 1) - n_spare * SLOT_CYCLES
    return _Measured(once * SLOT_CYCLES, output, passed * SLOT_CYCLES, step * SLOT_CYCLES)


def _is_constant(line: str) -> bool:
    """Return whether a line is an instruction by itself that sets a float register or clears accumulators."""
    words = line.split()
    is_load = line.startswith(("ld", "{", "."))
    return len(words) > 1 and not is_load and words[1].startswith(("$a", "$FP_CLR"))


def _place(lines: Sequence[str], beginning: str) -> int:
    """Return the first line that begins so."""
    return next(number for number, line in enumerate(lines) if line.startswith(beginning))


def _end(lines: Sequence[str], label: str) -> int:
    """Return the line behind a loop; of one that counts in memory, the last line that every pass takes."""
    at = next(
        n for n, line in enumerate(lines) if line.startswith(("brnzdec", "bri ")) and line.endswith(label)
    )
    return at + 1 if lines[at].startswith("brnzdec") else at - LEFT_BY_LAST_PASS


def _shortest(lines: Sequence[str], begin: int, end: int) -> int:
    """Return the fewest slots from one line to another; loops pass once."""
    least = {end: 0}
    for at in reversed(range(begin, end)):
        line = lines[at]
        following = least[at + 1]
        if line.endswith(":") or line.startswith("."):
            least[at] = following
            continue
        branch = _target(line)
        to = None if branch is None else next((i for i in range(at, end) if lines[i] == f"{branch}:"), None)
        if to is not None:
            following = least[to] if line.startswith("bri ") else min(following, least[to])
        least[at] = _slots(line) + following
    return least[begin]


def _slots(line: str) -> int:
    """Return the issue slots of a bundle."""
    return max((MULTI_SLOT.get(word, 1) for word in line.split()), default=1)


def _target(line: str) -> str | None:
    words = line.split(";")[0].replace("{", "").split()
    if words and words[0] in ("brz", "brnz", "brneg", "bri"):
        return words[-1]
    return None
