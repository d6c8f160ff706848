"""Sums of parts in interleaved memory: what cores do with the partial sums that a reduction brings them.

```
six workers, each every sixth vector of sums, of four of f32 or eight of f16:
    16 bytes of what is there, then of every part, each added beside the next load;
    it leaves the accumulators beside what follows, and is stored beside the last additions of the next one
```

A vector of n parts takes n + 3 slots: a load each, one of what is there (two where that is not in interleaved memory,
none where sums begin), and two stores. Of f16 it takes n + 5: two sums leave the accumulators at once, rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from t10.codelets.assembly import Assembly
from t10.codelets.digest import named_codelet
from t10.codelets.nest import Level, levels
from t10.codelets.reduce.parts_then import parts_then
from t10.core.codelet import Codelet, Compiled, Field, Pointer
from t10.core.dtypes import size_bytes
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS, WIDE_BYTES

LOAD_BYTES = 8
LEAST_PARTS, MOST_PARTS = 2, 64
"""Fewer are additions; more would be written out, too."""
STORE = "st64step {}, $mzero, $m5+=, {}"
NEXT = N_WORKERS * WIDE_BYTES // LOAD_BYTES - 1
"""Words of eight bytes from the second one of a vector to the worker's next vector."""
ADDS = {"f32": "f32v4acc $a0:3", "f16": "f16v8acc $a0:3"}
LEAVES = {
    "f32": [f"f32v2gina {pair}, $azeros, 0" for pair in ("$a4:5", "$a6:7")],
    "f16": [f"f16v2gina $a{number}, $azero, 0" for number in range(4, 8)],
}
"""What brings a vector out of the accumulators, which it leaves as zeros."""
CPP = {"f32": "float", "f16": "half"}


@dataclass(frozen=True, slots=True)
class _Kind:
    """What the text depends on: the parts, whether sums begin, and where they lie; `has_half` of the last vector.

    With `has_first` what is there is an operand of its own, not the output.
    """

    dtype: str
    n_parts: int
    initial: bool
    is_wide: bool
    has_half: bool
    has_first: bool = False

    @property
    def pointers(self) -> tuple[str, ...]:
        """Return the names of the pointers."""
        return ("in", "own", "out") if self.has_first else ("in", "out")

    @property
    def loads(self) -> list[tuple[str, str]]:
        """Return the loads of a vector, each with what is added once it is there."""
        add = ADDS[self.dtype]
        there = [("ld128step $a0:3, $mzero, $m8+=, 6", add)]
        if not self.is_wide:
            there = [
                ("ld64step $a0:1, $mzero, $m8+=, 1", ""),
                (f"ld64step $a2:3, $mzero, $m8+=, {NEXT}", add),
            ]
        paces = ["$m4"] * (self.n_parts - 1) + ["$m7"]
        parts = [(f"ld128step $a0:3, $mzero, $m3+=, {pace}", add) for pace in paces]
        return parts if self.initial else [*there, *parts]

    @property
    def lanes(self) -> int:
        """Return the elements of a vector."""
        return WIDE_BYTES // size_bytes(self.dtype)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the names of the words beside the pointers."""
        return (
            ("more", "rest", "pace", "jump", "half_of") if self.has_half else ("more", "rest", "pace", "jump")
        )


def parts(task: Task) -> tuple[Compiled, ...]:
    """Return a sum of parts as such code, nothing where the task is something else."""
    *loops, found = levels(task) or (None,)
    if task.combine != "sum" or task.selectors or task.n_read != 1 or not task.body.is_identity:
        return ()
    if found is None or not found.is_reduction or any(loop.is_reduction for loop in loops):
        return ()
    is_copy = task.epilogue is not None and task.epilogue.is_identity and task.epilogue.n_inputs == 1
    if task.epilogue is not None and not (is_copy and task.acc_dtype == task.output.dtype):
        return parts_then(task, loops, found)
    if len(loops) != 1 or not all(_lie(task.inputs[0], operand) for operand in task.operands[1:]):
        return ()
    return _compiled(task, loops[0], found)


def _lie(source: TaskOperand, sums: TaskOperand) -> bool:
    """Return whether parts and sums lie as the code needs them."""
    is_wide = source.is_interleaved and source.align_bytes >= WIDE_BYTES
    return is_wide and source.dtype == sums.dtype in ADDS and sums.align_bytes >= LOAD_BYTES


def _compiled(task: Task, columns: Level, found: Level) -> tuple[Compiled, ...]:
    output, size = task.output, size_bytes(task.output.dtype)
    step_bytes, n_bytes = found.strides[0] * size, columns.extent * size
    if set(columns.strides) != {1} or step_bytes % WIDE_BYTES or n_bytes % LOAD_BYTES:
        return ()
    if not LEAST_PARTS <= found.extent <= MOST_PARTS:
        return ()
    n_vectors, has_half = -(-n_bytes // WIDE_BYTES), n_bytes % WIDE_BYTES > 0
    there = output if task.first is None else task.inputs[task.first]
    is_wide, initial = there.is_interleaved and there.align_bytes >= WIDE_BYTES, _begins(task)
    kind = _Kind(output.dtype, found.extent, initial, is_wide or initial, has_half, task.first is not None)
    share, rest = divmod(n_vectors, N_WORKERS)
    pace = step_bytes // WIDE_BYTES
    numbers = (share - 1, rest, pace, N_WORKERS - (found.extent - 1) * pace)
    half = ((n_vectors - 1) % N_WORKERS,) if kind.has_half else ()
    pointers = (Pointer(number) for number in range(len(task.operands)))
    return (Compiled(_codelet(kind), (*pointers, *numbers, *half)),)


def _begins(task: Task) -> bool:
    """Return whether there is nothing that parts are added to."""
    return task.initial and task.first is None


@lru_cache(maxsize=1024)
def _codelet(kind: _Kind) -> Codelet:
    is_wide = kind.is_wide and not kind.initial
    out_bytes = WIDE_BYTES if is_wide else LOAD_BYTES
    is_out = kind.initial or kind.has_first
    fields = (
        Field("in", "in", kind.dtype, WIDE_BYTES, is_interleaved=True),
        *([Field("own", "in", kind.dtype, out_bytes, is_wide)] if kind.has_first else []),
        Field("out", "out", kind.dtype, LOAD_BYTES)
        if is_out
        else Field("out", "inout", kind.dtype, out_bytes, is_wide),
        *(Field(name, "i32") for name in kind.numbers),
    )
    summary = f"sums of {kind.n_parts} parts, 16 bytes at a time"
    prefix = f"Reduce_parts_{kind.dtype}"
    return named_codelet(prefix, "multi", fields, _assembly(kind), _reference(kind), summary)


def _assembly(kind: _Kind) -> Assembly:
    text, loads, (*leaves, last) = Assembly(), [load for load, _ in kind.loads], LEAVES[kind.dtype]
    _share(text, kind)
    added = [*(add for _, add in kind.loads), *leaves]
    stores = [STORE.format("$a4:5", 1), STORE.format("$a6:7", NEXT)]
    idle = [""] * (len(leaves) - 1)
    for pair in zip([*loads, "", "", *idle], ["uput $FP_CLR, $a7", *added], strict=True):
        text.bundle(*pair)
    text.repeat("$m2", zip([*loads, *stores, *idle], [last, *added], strict=True))
    text.bundle(stores[0], last)
    if kind.has_half:
        text.op("brnz $m6, .LEnd")
    text.op(stores[1])
    text.label(".LEnd")
    text.op("exitz $mzero")
    return text


def _share(text: Assembly, kind: _Kind) -> None:
    """Add what finds a worker's vectors: $m2 of them but one; $m3 where parts, $m5 and $m8 where sums begin."""
    place = {name: number for number, name in enumerate((*kind.pointers, *kind.numbers))}
    half = (
        [f"ld32 $m6, $mvertex_base, $mzero, {place['half_of']}", "cmpeq $m6, $m0, $m6"]
        if kind.has_half
        else []
    )
    for line in (
        "get $m0, $WSR",
        "and $m0, $m0, 7",
        f"ld32 $m1, $mvertex_base, $mzero, {place['more']}",
        f"ld32 $m2, $mvertex_base, $mzero, {place['rest']}",
        "cmpult $m2, $m0, $m2",
        "add $m2, $m1, $m2",
        "brneg $m2, .LEnd",
        f"shl $m1, $m0, {WIDE_BYTES.bit_length() - 1}",
        f"ld32 $m3, $mvertex_base, $mzero, {place['in']}",
        "add $m3, $m3, $m1",
        f"ld32 $m5, $mvertex_base, $mzero, {place['out']}",
        "add $m5, $m5, $m1",
        *([] if kind.initial or kind.has_first else ["mov $m8, $m5"]),
        *(
            [f"ld32 $m8, $mvertex_base, $mzero, {place['own']}", "add $m8, $m8, $m1"]
            if kind.has_first
            else []
        ),
        *half,
        f"ld32 $m4, $mvertex_base, $mzero, {place['pace']}",
    ):
        text.op(line)
    text.bundle(f"ld32 $m7, $mvertex_base, $mzero, {place['jump']}", "setzi $a7, 8")


def _reference(kind: _Kind) -> str:
    """Return the C++ reference: the same sums by the same workers."""
    lanes, cpp, there = kind.lanes, CPP[kind.dtype], "own" if kind.has_first else "out"
    return f"""\
const long columns = {lanes} * ({N_WORKERS} * (long(more) + 1) + rest){f" - {lanes // 2}" if kind.has_half else ""};
(void)jump;{" (void)half_of;" if kind.has_half else ""}
for (long first = {lanes} * long(worker); first < columns; first += {lanes * N_WORKERS})
  for (long c = first; c < first + {lanes} && c < columns; ++c) {{
    float sum = 0.0f{"" if kind.initial else f" + float({there}[c])"};
    for (long part = 0; part < {kind.n_parts}; ++part)
      sum += float(in[part * {lanes} * long(pace) + c]);
    out[c] = {cpp}(sum);
  }}
return true;
"""
