"""Sums of parts in interleaved memory: what cores do with the partial sums that a reduction brings them.

```
six workers, each every sixth vector of four sums:
    16 bytes of what is there, then of every part, each added beside the next load;
    the vector before leaves the accumulators beside the first load, and is stored beside the last additions
```

A vector of n parts takes n + 3 slots: a load each, one of what is there (two where that is not in interleaved memory,
none where sums begin), and two stores.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from t10.codelets.assembly import Assembly
from t10.codelets.digest import named_codelet
from t10.codelets.nest import Level, levels
from t10.core.codelet import Codelet, Compiled, Field, Pointer
from t10.core.dtypes import size_bytes
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS, WIDE_BYTES

LANES, LOAD_BYTES = 4, 8
PART_BYTES = LANES * size_bytes("f32")
LEAST_PARTS, MOST_PARTS = 2, 32
"""Fewer are additions; more would be written out, too."""
ADD = "f32v4acc $a0:3"
STORE = "st64step {}, $mzero, $m5+=, {}"
LEAVE = "f32v2gina {}, $azeros, 0"
NEXT = N_WORKERS * PART_BYTES // LOAD_BYTES - 1
"""Words of eight bytes from the second one of a vector to the worker's next vector."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """What the text depends on: the parts, whether sums begin, and where they lie; `has_half` of the last vector."""

    n_parts: int
    initial: bool
    is_wide: bool
    has_half: bool

    @property
    def loads(self) -> list[tuple[str, str]]:
        """Return the loads of a vector, each with what is added once it is there."""
        there = [("ld128step $a0:3, $mzero, $m8+=, 6", ADD)]
        if not self.is_wide:
            there = [
                ("ld64step $a0:1, $mzero, $m8+=, 1", ""),
                (f"ld64step $a2:3, $mzero, $m8+=, {NEXT}", ADD),
            ]
        paces = ["$m4"] * (self.n_parts - 1) + ["$m7"]
        parts = [(f"ld128step $a0:3, $mzero, $m3+=, {pace}", ADD) for pace in paces]
        return parts if self.initial else [*there, *parts]

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the names of the words that are no pointers."""
        return ("more", "rest", "pace", "jump", "half") if self.has_half else ("more", "rest", "pace", "jump")


def parts(task: Task) -> tuple[Compiled, ...]:
    """Return a sum of parts as such code, nothing where the task is something else."""
    loops = levels(task)
    if task.combine != "sum" or task.selectors or [loop.is_reduction for loop in loops] != [False, True]:
        return ()
    if len(task.inputs) != 1 or not task.body.is_identity or not _lie(task.inputs[0], task.output):
        return ()
    return _compiled(task, *loops)


def _lie(source: TaskOperand, sums: TaskOperand) -> bool:
    """Return whether parts and sums lie as the code needs them."""
    is_wide = source.is_interleaved and source.align_bytes >= WIDE_BYTES
    return is_wide and (source.dtype, sums.dtype) == ("f32", "f32") and sums.align_bytes >= LOAD_BYTES


def _compiled(task: Task, columns: Level, found: Level) -> tuple[Compiled, ...]:
    step_bytes = found.strides[0] * size_bytes("f32")
    if columns.strides != (1, 1) or step_bytes % WIDE_BYTES or columns.extent % 2:
        return ()
    if not LEAST_PARTS <= found.extent <= MOST_PARTS:
        return ()
    output, n_vectors = task.output, -(-columns.extent // LANES)
    is_wide = output.is_interleaved and output.align_bytes >= WIDE_BYTES
    kind = _Kind(found.extent, task.initial, is_wide or task.initial, columns.extent % LANES > 0)
    share, rest = divmod(n_vectors, N_WORKERS)
    pace = step_bytes // WIDE_BYTES
    numbers = (share - 1, rest, pace, N_WORKERS - (found.extent - 1) * pace)
    half = ((n_vectors - 1) % N_WORKERS,) if kind.has_half else ()
    return (Compiled(_codelet(kind), (Pointer(0), Pointer(1), *numbers, *half)),)


@lru_cache(maxsize=1024)
def _codelet(kind: _Kind) -> Codelet:
    is_wide = kind.is_wide and not kind.initial
    fields = (
        Field("in", "in", "f32", WIDE_BYTES, is_interleaved=True),
        Field(
            "out", "out" if kind.initial else "inout", "f32", WIDE_BYTES if is_wide else LOAD_BYTES, is_wide
        ),
        *(Field(name, "i32") for name in kind.numbers),
    )
    summary = f"sums of {kind.n_parts} parts, 16 bytes at a time"
    return named_codelet("Reduce_parts_f32", "multi", fields, _assembly(kind), _reference(kind), summary)


def _assembly(kind: _Kind) -> Assembly:
    text, loads = Assembly(), kind.loads
    _share(text, kind)
    additions = ["", *(added for _, added in loads), LEAVE.format("$a4:5")]
    stores = [STORE.format("$a4:5", 1), STORE.format("$a6:7", NEXT)]
    found = [load for load, _ in loads]
    additions[0] = "uput $FP_CLR, $a7"
    for pair in zip([*found, "", ""], additions, strict=True):
        text.bundle(*pair)
    additions[0] = LEAVE.format("$a6:7")
    text.repeat("$m2", zip([*found, *stores], additions, strict=True))
    text.bundle(stores[0], additions[0])
    if kind.has_half:
        text.op("brnz $m6, .LEnd")
    text.op(stores[1])
    text.label(".LEnd")
    text.op("exitz $mzero")
    return text


def _share(text: Assembly, kind: _Kind) -> None:
    """Add what finds a worker's vectors: $m2 of them but one; $m3 where parts, $m5 and $m8 where sums begin."""
    place = {name: number for number, name in enumerate(("in", "out", *kind.numbers))}
    half = (
        [f"ld32 $m6, $mvertex_base, $mzero, {place['half']}", "cmpeq $m6, $m0, $m6"] if kind.has_half else []
    )
    for line in (
        "get $m0, $WSR",
        "and $m0, $m0, 7",
        f"ld32 $m1, $mvertex_base, $mzero, {place['more']}",
        f"ld32 $m2, $mvertex_base, $mzero, {place['rest']}",
        "cmpult $m2, $m0, $m2",
        "add $m2, $m1, $m2",
        "brneg $m2, .LEnd",
        f"shl $m1, $m0, {PART_BYTES.bit_length() - 1}",
        f"ld32 $m3, $mvertex_base, $mzero, {place['in']}",
        "add $m3, $m3, $m1",
        f"ld32 $m5, $mvertex_base, $mzero, {place['out']}",
        "add $m5, $m5, $m1",
        *([] if kind.initial else ["mov $m8, $m5"]),
        *half,
        f"ld32 $m4, $mvertex_base, $mzero, {place['pace']}",
    ):
        text.op(line)
    text.bundle(f"ld32 $m7, $mvertex_base, $mzero, {place['jump']}", "setzi $a7, 8")


def _reference(kind: _Kind) -> str:
    """Return the C++ reference: the same sums by the same workers."""
    return f"""\
const long columns = {LANES} * ({N_WORKERS} * (long(more) + 1) + rest){f" - {LANES // 2}" if kind.has_half else ""};
(void)jump;{" (void)half;" if kind.has_half else ""}
for (long first = {LANES} * long(worker); first < columns; first += {LANES * N_WORKERS})
  for (long c = first; c < first + {LANES} && c < columns; ++c) {{
    float sum = 0.0f{"" if kind.initial else " + out[c]"};
    for (long part = 0; part < {kind.n_parts}; ++part)
      sum += in[part * {LANES} * long(pace) + c];
    out[c] = sum;
  }}
return true;
"""
