"""Sums of parts in interleaved memory with an epilogue behind them: `parts`, but for what each vector ends with.

```
six workers, each every sixth vector of sums, of four of f32 or eight of f16:
    16 bytes of what sums begin with, then of every part, each added beside the next load;
    they leave the accumulators, the epilogue is computed, and its results are stored, as far as registers allow
    beside the loads of the next vector
```

A vector whose second half is behind the end is the last one: whoever has it computes it behind its loop.

An input may be the same for every row of sums (a bias). If six vectors are whole rows, a worker always reads the same
part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from math import prod

from t10.codelets.assembly import Assembly
from t10.codelets.body.code import Code, Numbering
from t10.codelets.body.pipeline import Free, Pipeline, pipelined
from t10.codelets.body.select import FORM_BY_DTYPE, Unselectable
from t10.codelets.body.virtual import Slice
from t10.codelets.cpp_reference import cpp_body
from t10.codelets.digest import named_codelet
from t10.codelets.nest import Level
from t10.codelets.reduce.accumulators import AACC
from t10.codelets.reduce.epilogue import further_inputs, loads_of, with_epilogue
from t10.codelets.reduce.schedule import Bundle, stage_bundles, straight
from t10.core.codelet import Codelet, Compiled, Field, Pointer
from t10.core.dtypes import size_bytes
from t10.core.products import with_unread
from t10.core.scalar import ScalarFunction, identity
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS, WIDE_BYTES

LOAD_BYTES, WORD_BYTES = 8, 4
LEAST_PARTS, MOST_PARTS = 2, 64
ADDS = {"f32": "f32v4acc", "f16": "f16v8acc"}
CPP = {"f32": "float", "f16": "half"}
FIRST_FURTHER, LAST_FURTHER = 9, 11
"""Registers of the pointers of further inputs."""
MOST_LOOPS = 2
"""Over outputs: rows of them, and along a row."""
_IN_ROW: dict[int, tuple[str, ...] | None] = {
    1: None,
    2: ("and $m1, $m0, 1",),
    3: ("cmpult $m1, $m0, 3", "mul $m1, $m1, 3", "add $m1, $m0, $m1", "add $m1, $m1, -3"),
    6: (),
}
"""By vectors of a row: code that leaves the place of a worker's vectors in their rows in $m1; None if all are first."""
STAGES = 2
"""Vectors that are under way at once: with one vector alone, a worker goes through both stages of it."""
FREE: Free = {"a": tuple(range(8)), "m": ()}


class Walk(Enum):
    """How an input goes on beside the sums: it is one number, as long as they are, or the same for every row."""

    STAYS = "stays"
    ALONG = "along"
    BY_ROW = "by row"


@dataclass(frozen=True, slots=True)
class _Kind:
    """What the text depends on; `task` is an example, and `walks` tells how further inputs go on.

    A row has `row_vectors`; 0 if no input goes on by rows. If it `overlaps`, a vector begins before the one in front of
    it has ended.
    """

    task: Task
    n_parts: int
    is_wide: bool
    has_half: bool
    walks: tuple[Walk, ...]
    row_vectors: int
    overlaps: bool = False

    @property
    def lanes(self) -> int:
        """Return the elements of a vector."""
        return WIDE_BYTES // size_bytes(self.task.acc_dtype)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the names of the words beside the pointers."""
        return ("more", "rest", "pace", "jump", *(("half_of",) if self.has_half else ()))

    @property
    def pointers(self) -> tuple[str, ...]:
        """Return the names of the pointers, in the order of operands."""
        return (*(f"in{number}" for number in range(len(self.task.inputs))), "out")


def parts_then(task: Task, loops: Sequence[Level], found: Level) -> tuple[Compiled, ...]:
    """Return a sum of parts and its epilogue as such code; none where operands do not lie so or nothing computes it.

    `loops` are those over outputs, `found` the one over parts.
    """
    acc, size = task.acc_dtype, size_bytes(task.acc_dtype)
    source, output = task.inputs[0], task.output
    if task.epilogue is None or acc not in ADDS or output.dtype not in FORM_BY_DTYPE:
        return ()
    step_bytes, n_bytes = found.strides[0] * size, prod(loop.extent for loop in loops) * size
    is_even = step_bytes % WIDE_BYTES == 0 and n_bytes % LOAD_BYTES == 0
    if not (source.is_interleaved and source.align_bytes >= WIDE_BYTES and is_even):
        return ()
    n_further = task.epilogue.n_inputs - 1
    own = len(task.inputs) - n_further
    walks = [_walk(loops, number) for number in range(len(task.operands))]
    further = [walk for walk in walks[own:-1] if walk is not None]
    if not n_further == len(further) <= LAST_FURTHER - FIRST_FURTHER + 1:
        return ()
    if not LEAST_PARTS <= found.extent <= MOST_PARTS or {*walks[:own], walks[-1]} != {Walk.ALONG}:
        return ()
    if any(operand.dtype not in FORM_BY_DTYPE for operand in task.inputs[own:]):
        return ()
    row_vectors = 0
    if Walk.BY_ROW in further:
        row_vectors, rest = divmod(loops[-1].extent * size, WIDE_BYTES)
        if rest or row_vectors not in _IN_ROW:
            return ()
    moving = [number for number, walk in enumerate(walks) if number and walk is not Walk.STAYS]
    if any(task.operands[number].align_bytes < LOAD_BYTES for number in moving):
        return ()
    first = task.inputs[1] if task.first is not None else None
    is_wide = first is not None and first.is_interleaved and first.align_bytes >= WIDE_BYTES
    n_vectors, has_half = -(-n_bytes // WIDE_BYTES), n_bytes % WIDE_BYTES > 0
    example = _example(
        tuple(operand.dtype for operand in task.operands), task.epilogue, task.first is not None
    )
    kind = _Kind(example, found.extent, is_wide, has_half, tuple(further), row_vectors)
    share, rest = divmod(n_vectors, N_WORKERS)
    pace = step_bytes // WIDE_BYTES
    numbers = (share - 1, rest, pace, N_WORKERS - (found.extent - 1) * pace)
    half = ((n_vectors - 1) % N_WORKERS,) if has_half else ()
    words = (*(Pointer(number) for number in range(len(task.operands))), *numbers, *half)
    codelets = (_codelet(kind), _codelet(replace(kind, overlaps=True)))
    return tuple(Compiled(codelet, words) for codelet in codelets if codelet is not None)


def _walk(loops: Sequence[Level], number: int) -> Walk | None:
    """Return how operand `number` goes on in at most two loops over outputs, None where it does otherwise."""
    strides = [loop.strides[number] for loop in loops]
    if not any(strides):
        return Walk.STAYS
    if strides[-1] != 1 or len(strides) > MOST_LOOPS:
        return None
    if len(strides) == 1 or strides[0] == loops[-1].extent:
        return Walk.ALONG
    return Walk.BY_ROW if strides[0] == 0 else None


@lru_cache(maxsize=1024)
def _example(dtypes: tuple[str, ...], epilogue: ScalarFunction, has_first: bool) -> Task:
    """Return a task of such operands."""
    operands = tuple(TaskOperand(dtype, (0, 1)) for dtype in dtypes)
    body = with_unread(identity(), len(dtypes) - 2)
    first = 1 if has_first else None
    return Task((2, 2), operands[:-1], operands[-1], "sum", body, (0,), first=first, epilogue=epilogue)


@dataclass(frozen=True, slots=True)
class _Further:
    """Where further inputs are loaded from: pointers that go on to the worker's next vector."""

    kind: _Kind

    def walk(self, number: int) -> Walk:
        """Return how an input goes on."""
        return self.kind.walks[number - further_inputs(self.kind.task)[0]]

    def is_along(self, number: int) -> bool:
        """Return whether an input differs from lane to lane."""
        return self.walk(number) is not Walk.STAYS

    def load(self, code: Code, number: int, lanes: int, group: int) -> list[Slice]:
        """Add loading `lanes` of an input, number `group` of those of a vector; one element if all are alike."""
        kind = self.kind
        place, dtype = number - further_inputs(kind.task)[0], kind.task.inputs[number].dtype
        pointer, streams = f"$m{FIRST_FURTHER + place}", (f"in{number}",)
        if self.walk(number) is not Walk.ALONG:
            return loads_of(code, dtype, lanes if self.is_along(number) else 1, pointer, group, streams)
        each = lanes * size_bytes(dtype) // LOAD_BYTES
        n_words = kind.lanes * size_bytes(dtype) // LOAD_BYTES
        parts = [code.new("a", 2) for _ in range(each)]
        for word, part in enumerate(parts, group * each):
            step = 1 if word < n_words - 1 else N_WORKERS * n_words - (n_words - 1)
            text = f"ld64step {{}}, $mzero, {pointer}+=, {step}"
            code.add(text, "o", part, is_main=True, streams=streams)
        return parts


def _vector(kind: _Kind, *, is_half: bool) -> Code:
    """Return the code of a vector, or of one of which only the first eight bytes of sums are results."""
    code, task = Code(Numbering()), kind.task
    add = f"{ADDS[task.acc_dtype]} {{}}"

    def added(value: Slice) -> None:
        code.add(add, "i", value, is_main=False, streams=(AACC,))

    if task.first is not None:
        value = code.new("a", 4)
        if kind.is_wide:
            code.add(
                f"ld128step {{}}, $mzero, $m8+=, {N_WORKERS}", "o", value, is_main=True, streams=("own",)
            )
        else:
            steps = (1, N_WORKERS * WIDE_BYTES // LOAD_BYTES - 1)
            for place, step in enumerate(steps):
                text = f"ld64step {{}}, $mzero, $m8+=, {step}"
                code.add(text, "o", value.part(2 * place, 2), is_main=True, streams=("own",))
        added(value)
    for pace in ["$m4"] * (kind.n_parts - 1) + ["$m7"]:
        value = code.new("a", 4)
        code.add(f"ld128step {{}}, $mzero, $m3+=, {pace}", "o", value, is_main=True, streams=("in0",))
        added(value)
    sums: list[Slice] = []
    for _ in range(2):
        value = code.new("a", 2)
        if task.acc_dtype == "f32":
            code.add("f32v2gina {}, $azeros, 0", "o", value, is_main=False, streams=(AACC,))
        else:
            for part in range(2):
                text = "f16v2gina {}, $azero, 0"
                code.add(text, "o", value.part(part), is_main=False, streams=(AACC,))
        sums.append(value)
    results: Sequence[Slice] = with_epilogue(task, code, sums, kind.lanes, _Further(kind))
    n_bytes = sum(result.width for result in results) * WORD_BYTES
    if is_half:
        results = _first_half(results)
    for number, result in enumerate(results):
        n = result.width * WORD_BYTES
        step = 1 if number < len(results) - 1 or is_half else N_WORKERS * n_bytes // n - (len(results) - 1)
        store = "st64step" if result.width == 2 else "st32step"
        code.add(f"{store} {{}}, $mzero, $m5+=, {step}", "i", result, is_main=True, streams=("out",))
    return code


def _bundles(code: Code) -> list[Bundle]:
    """Return code that runs once."""
    return straight(code.instructions, FREE, {})[0]


def _overlapped(code: Code) -> Pipeline | None:
    """Return code as a loop in which a vector begins while the one before it ends; None if that gains nothing."""
    is_store = [instruction.text.startswith("st") for instruction in code.instructions]
    found = pipelined(code.instructions, (), is_store, FREE, {}, most_stages=STAGES)
    if found is None or found.n_stages != STAGES or found.interval >= len(_bundles(code)):
        return None
    return found


def _first_half(results: Sequence[Slice]) -> Sequence[Slice]:
    """Return the first half of the registers that are stored."""
    if len(results) > 1:
        return results[: len(results) // 2]
    return (results[0].part(0),)


@lru_cache(maxsize=1024)
def _codelet(kind: _Kind) -> Codelet | None:
    """Return the code of a kind, None where registers or instructions do not suffice."""
    try:
        assembly, reference = _assembly(kind), _reference(kind)
    except Unselectable:
        return None
    task = kind.task
    fields = [Field("in0", "in", task.acc_dtype, WIDE_BYTES, is_interleaved=True)]
    for number, operand in enumerate(task.inputs[1:], 1):
        is_wide = number == task.first and kind.is_wide
        is_vector = number == task.first or _Further(kind).is_along(number)
        align = WIDE_BYTES if is_wide else LOAD_BYTES if is_vector else size_bytes(operand.dtype)
        fields.append(Field(f"in{number}", "in", operand.dtype, align, is_wide))
    fields.append(Field("out", "out", task.output.dtype, LOAD_BYTES))
    fields += [Field(name, "i32") for name in kind.numbers]
    types = "_".join(operand.dtype for operand in task.operands)
    summary = f"sums of {kind.n_parts} parts, 16 bytes at a time, then an epilogue"
    return named_codelet(f"Reduce_parts_{types}_then", "multi", tuple(fields), assembly, reference, summary)


def _assembly(kind: _Kind) -> Assembly:
    text = Assembly()
    code = _vector(kind, is_half=False)
    loop = _overlapped(code) if kind.overlaps else None
    if kind.overlaps and loop is None:
        raise Unselectable("vectors that overlap gain nothing")
    _share(text, kind)
    if kind.has_half:
        # Whoever has the half takes one less in the loop.
        text.op("sub $m2, $m2, $m6")
    if loop is None:
        text.repeat("$m2", _bundles(code))
    else:
        if kind.has_half:
            text.op("brz $m2, .LHalf")
        text.op("add $m2, $m2, -1")
        _once(text, stage_bundles(loop, 0, 0))
        text.repeat("$m2", stage_bundles(loop, 0, 1))
        _once(text, stage_bundles(loop, 1, 1))
    if kind.has_half:
        text.label(".LHalf")
        text.op("brz $m6, .LEnd")
        _once(text, _bundles(_vector(kind, is_half=True)))
    text.label(".LEnd")
    text.op("exitz $mzero")
    return text


def _once(text: Assembly, bundles: Iterable[Bundle]) -> None:
    """Add code that runs once; a half that stands alone needs no bundle."""
    for main, aux in bundles:
        if main and aux:
            text.bundle(main, aux)
        elif main or aux:
            text.op(main or aux)


def _share(text: Assembly, kind: _Kind) -> None:
    """Add what finds a worker's vectors: $m2 of them; the pointers where its first begins; $m6: the half is its."""
    place = {name: number for number, name in enumerate((*kind.pointers, *kind.numbers))}
    task = kind.task

    def load(register: str, name: str) -> None:
        text.op(f"ld32 {register}, $mvertex_base, $mzero, {place[name]}", name)

    def pointer(register: str, name: str, dtype: str, walk: Walk = Walk.ALONG) -> None:
        """Add loading a pointer to the worker's first vector; $m1 is used."""
        load(register, name)
        number = _IN_ROW[kind.row_vectors] if walk is Walk.BY_ROW else ()
        if number is None:
            return
        for line in number:
            text.op(line)
        text.op(f"mul $m1, {'$m1' if number else '$m0'}, {kind.lanes * size_bytes(dtype)}")
        text.op(f"add {register}, {register}, $m1")

    text.op("get $m0, $WSR")
    text.op("and $m0, $m0, 7")
    load("$m1", "more")
    load("$m2", "rest")
    text.op("cmpult $m2, $m0, $m2")
    text.op("add $m2, $m1, $m2")
    text.op("add $m2, $m2, 1")
    text.op("brz $m2, .LEnd")
    pointer("$m3", "in0", task.acc_dtype)
    if task.first is not None:
        pointer("$m8", f"in{task.first}", task.acc_dtype)
    for register, number in enumerate(further_inputs(task), FIRST_FURTHER):
        walk = _Further(kind).walk(number)
        if walk is Walk.STAYS:
            load(f"$m{register}", f"in{number}")
        else:
            pointer(f"$m{register}", f"in{number}", task.inputs[number].dtype, walk)
    pointer("$m5", "out", task.output.dtype)
    if kind.has_half:
        load("$m6", "half_of")
        text.op("cmpeq $m6, $m0, $m6")
    load("$m4", "pace")
    text.bundle(f"ld32 $m7, $mvertex_base, $mzero, {place['jump']}", "setzi $a7, 8")
    text.op("uput $FP_CLR, $a7", "accumulators are zero")


def _reference(kind: _Kind) -> str:
    """Return the C++ reference: the same results by the same workers."""
    task, lanes, cpp = kind.task, kind.lanes, CPP[kind.task.acc_dtype]
    assert task.epilogue is not None
    further = further_inputs(task)
    places = {Walk.STAYS: "0", Walk.ALONG: "c", Walk.BY_ROW: f"c % {lanes * kind.row_vectors}"}
    names = ["sum", *(f"in{n}[{places[_Further(kind).walk(n)]}]" for n in further)]
    dtypes = [task.acc_dtype, *(task.inputs[n].dtype for n in further)]
    body = cpp_body(task.epilogue, names, dtypes, prefix="e")
    begin = "0.0f" if task.first is None else f"float(in{task.first}[c])"
    half = f" - {lanes // 2}" if kind.has_half else ""
    return f"""\
const long columns = {lanes} * ({N_WORKERS} * (long(more) + 1) + rest){half};
(void)jump;{" (void)half_of;" if kind.has_half else ""}
for (long first = {lanes} * long(worker); first < columns; first += {lanes * N_WORKERS})
  for (long c = first; c < first + {lanes} && c < columns; ++c) {{
    float total = {begin};
    for (long part = 0; part < {kind.n_parts}; ++part)
      total += float(in0[part * {lanes} * long(pace) + c]);
    const float sum = float({cpp}(total));
{body.text("    ")}    out[c] = {CPP[task.output.dtype]}({body.result});
  }}
return true;
"""
