"""Any task as scalar loops: an odometer of pointers around one point's straight-line code.

```
worker w takes its share of one parallel level, which is the outermost loop
for every parallel point:   acc = neutral or old output
    for every reduction point:   if all selectors hold: acc = combine(acc, body(inputs))
                                 (axes whose selector is the same along them are looked up, not walked)
    output = acc
```

Pointers of up to three operands stay in registers; other pointers, counters and indices lie in the worker's frame.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from t10.codelets.digest import named_codelet
from t10.codelets.loops.cpp_reference import loop_reference
from t10.codelets.loops.generator import Generator, pick_stride
from t10.codelets.loops.picking import picked_axes
from t10.codelets.loops.scalar import is_supported
from t10.codelets.nest import WORD_BYTES, Level, Split, levels, share_points, split, split_first
from t10.core.codelet import Codelet, Compiled, Field, FieldKind, Pointer, Scratch, Word
from t10.core.dtypes import size_bytes
from t10.core.intervals import index_limit
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS
from t10.errors import UnsupportedOpError

COMPILED_LOOPS = 4096


@dataclass(frozen=True, slots=True)
class LoopFamily:
    """Scalar loops over any task whose types and operations codelets know; see the module's docstring."""

    name: str = "Loops"

    def compile(self, task: Task) -> Compiled | None:
        """Return the task as scalar loops, None for types and operations no codelet knows."""
        if not all(is_supported(operand.dtype) for operand in task.operands):
            return None
        nest, picked, share = _walk(task)
        limit = index_limit(task.origin, task.extents)
        made = _made(self.name, *_structure(task, nest), picked, share, limit)
        if made is None:
            return None
        codelet, scratch_bytes = made
        return Compiled(codelet, _words(task, nest, picked, share), scratch_bytes)


def _walk(task: Task) -> tuple[tuple[Level, ...], tuple[int, ...], Split]:
    """Return the loops, the axes that are looked up instead of walked, and how workers share the loops."""
    picked = picked_axes(task)
    nest = tuple(level for level in levels(task) if level.axis not in picked)
    nest, share = split_first(nest, split(nest, task.output.dtype, task.output.align_bytes))
    return nest, picked, share


def _structure(task: Task, nest: tuple[Level, ...]) -> tuple[Task, tuple[Level, ...]]:
    """Return a task and its loops with other numbers, the same ones for all that the same code computes."""
    operands = [TaskOperand(o.dtype, tuple(int(s != 0) for s in o.strides)) for o in task.operands]
    example = replace(
        task,
        extents=(2,) * len(task.extents),
        inputs=tuple(operands[:-1]),
        output=operands[-1],
        origin=(),
        apart=frozenset(),
    )
    still = (0,) * len(operands)
    return example, tuple(Level(level.axis, 2, still, level.is_reduction) for level in nest)


@lru_cache(maxsize=COMPILED_LOOPS)
def _made(
    prefix: str, task: Task, nest: tuple[Level, ...], picked: tuple[int, ...], share: Split, limit: int
) -> tuple[Codelet, int] | None:
    """Return the code of a structure, none of whose indices exceeds `limit`, and its scratch bytes."""
    fields = loop_fields(task, nest, picked, share)
    generator = Generator(task, nest, picked, share, {field.name: i for i, field in enumerate(fields)}, limit)
    try:
        assembly = generator.generate()
        cpp_reference = loop_reference(task, nest, picked, share)
    except UnsupportedOpError:
        return None
    types = "_".join(operand.dtype for operand in task.operands)
    summary = f"scalar loops, {len(nest)} levels, combine {task.combine}"
    prefix = f"{prefix}_{types}_{task.combine}"
    codelet = named_codelet(prefix, "multi", fields, assembly, cpp_reference, summary)
    return codelet, N_WORKERS * generator.frame_bytes


def step_name(operand: int, level: int) -> str:
    """Return the field with the bytes an operand's pointer moves after one point of a level."""
    return f"step{operand}_{level}"


def moves(operand: int, level: Level) -> bool:
    """Return whether an operand's pointer is moved at a level: the output's is not in reductions."""
    return not level.is_reduction or operand < len(level.strides) - 1


def loop_fields(
    task: Task, nest: tuple[Level, ...], picked: tuple[int, ...], share: Split
) -> tuple[Field, ...]:
    """Return the fields: pointers, frame, share, per level extent, origin and steps, per picked axis its own."""
    fields: list[Field] = []
    for i, operand in enumerate(task.inputs):
        fields.append(Field(f"in{i}", "in", operand.dtype, _align(operand.dtype)))
    is_read = task.combine != "none" and not task.initial
    kind: FieldKind = "inout" if is_read else "out"
    fields.append(Field("out", kind, task.output.dtype, _align(task.output.dtype)))
    fields.append(Field("frame", "scratch", align_bytes=8))
    if share.level is not None:
        fields += [Field("share", "u32")]
        fields += [Field(f"stride{i}", "i32") for i in range(len(task.operands))]
    for k, level in enumerate(nest):
        fields += [Field(f"extent{k}", "u32"), Field(f"origin{k}", "i32")]
        fields += [Field(step_name(i, k), "i32") for i in range(len(task.operands)) if moves(i, level)]
    for axis in picked:
        fields += [Field(f"pick_origin{axis}", "i32"), Field(f"pick_extent{axis}", "u32")]
        fields += [Field(pick_stride(i, axis), "i32") for i, o in enumerate(task.inputs) if o.strides[axis]]
    return tuple(fields)


def _align(dtype: str) -> int:
    return min(size_bytes(dtype), WORD_BYTES)


def _words(task: Task, nest: tuple[Level, ...], picked: tuple[int, ...], share: Split) -> tuple[Word, ...]:
    """Return the words in the order of `loop_fields`."""
    sizes = [size_bytes(operand.dtype) for operand in task.operands]
    words: list[Word] = [*(Pointer(i) for i in range(len(task.operands))), Scratch()]
    if share.level is not None:
        words.append(share_points(nest[0].extent, share.unit))
        words += [nest[0].strides[i] * size for i, size in enumerate(sizes)]
    for k, level in enumerate(nest):
        words += [level.extent, level.origin]
        for i, size in enumerate(sizes):
            if not moves(i, level):
                continue
            inner = nest[k + 1] if k + 1 < len(nest) and moves(i, nest[k + 1]) else None
            back = inner.extent * inner.strides[i] if inner is not None else 0
            words.append((level.strides[i] - back) * size)
    for axis in picked:
        words += [task.origin[axis] if task.origin else 0, task.extents[axis]]
        words += [o.strides[axis] * sizes[i] for i, o in enumerate(task.inputs) if o.strides[axis]]
    return tuple(words)
