"""Executes a device program task by task in numpy: no assembly, no codelets, only what tasks and patterns say.

Lowering is done with `recording()`, which hands out a codelet per task; `run` then computes every vertex from the
definition of its task, on the bytes of its tile.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from t10.core.codelet import Codelet, Compiled, Pointer
from t10.core.device import DeviceProgram, Exchange, Execute, HostTensor, Reference, Repeat, Step
from t10.core.dtypes import numpy_dtype
from t10.core.scalar import parse_constant
from t10.core.task import Task
from t10.core.tile import IPU_MEMORY, TileMemory
from t10.emit import link, vertices
from t10.sim.combine import combine_arrays, neutral
from t10.sim.scalar_eval import evaluate

Array = NDArray[Any]


@dataclass(slots=True)
class Recorder:
    """Codelets by task: code is nothing but the task's number."""

    tasks: list[Task] = field(default_factory=list[Task])
    names: dict[Task, str] = field(default_factory=dict[Task, str])

    def compile(self, task: Task) -> Compiled:
        """Return a codelet that stands for one task."""
        if task not in self.names:
            self.names[task] = f"Task{len(self.tasks)}"
            self.tasks.append(task)
        codelet = Codelet(self.names[task], "multi", (), "", "", "")
        return Compiled(codelet, tuple(Pointer(i) for i in range(len(task.operands))))


def _as_it_is(compiled: Compiled, inputs: tuple[int, ...], output: int) -> Compiled:
    del inputs, output
    return compiled


class _NoCode:
    size_bytes = 0


def _no_code(codelets: object, memory: TileMemory) -> _NoCode:
    del codelets, memory
    return _NoCode()


@contextmanager
def recording() -> Generator[Recorder]:
    """Let lowering make no code but remember tasks."""
    recorder = Recorder()

    with (
        patch.object(vertices, "compile_task", recorder.compile),
        patch.object(vertices, "in_place", _as_it_is),
        patch.object(link, "assembled", _no_code),
    ):
        yield recorder


def run(program: DeviceProgram, recorder: Recorder, values: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of a program that was lowered while `recorder` recorded."""
    machine = _Machine(program, recorder)
    for tensor in (*program.weights, *program.inputs):
        machine.write(tensor, values[tensor.name])
    for operator in program.operators:
        machine.steps(operator.steps)
    return {tensor.name: machine.read(tensor) for tensor in program.outputs}


class _Machine:
    def __init__(self, program: DeviceProgram, recorder: Recorder) -> None:
        self.tasks = {f"Task{i}": task for i, task in enumerate(recorder.tasks)}
        self.memory = np.full((program.n_tiles, IPU_MEMORY.size_bytes), 0xFF, np.uint8)
        self.variables = {v.name: v for v in program.variables}
        self.sets = {s.name: s for s in program.compute_sets}
        self.copies = {c.name: c for c in program.copies}
        self.patterns = {p.key: p for p in program.patterns}

    def slots(self, name: str) -> Array:
        """Return a variable on all its tiles, (tiles, slots)."""
        variable = self.variables[name]
        dtype = numpy_dtype(variable.dtype)
        begin = variable.address_bytes - IPU_MEMORY.base
        n = int(np.prod(variable.shape, dtype=np.int64)) * dtype.itemsize
        return self.memory[: variable.n_tiles, begin : begin + n].view(dtype)

    def write(self, tensor: HostTensor, array: Array) -> None:
        for piece in tensor.pieces:
            slots = self.slots(piece.variable)[:, : piece.elements.shape[1]]
            fill = array.dtype.type(parse_constant(piece.fill))
            slots[: len(piece.elements)] = np.where(
                piece.elements < 0, fill, array.reshape(-1)[np.maximum(piece.elements, 0)]
            )

    def read(self, tensor: HostTensor) -> Array:
        result = np.zeros(int(np.prod(tensor.shape, dtype=np.int64)), numpy_dtype(tensor.dtype))
        found = np.zeros(result.shape, np.bool_)
        for piece in tensor.pieces:
            tiles, columns = np.nonzero(piece.elements >= 0)
            numbers = piece.elements[tiles, columns]
            taken = (
                self.slots(piece.variable)[tiles, columns]
                if piece.variable
                else result.dtype.type(parse_constant(piece.fill))
            )
            result[numbers] = taken
            found[numbers] = True
        assert found.all()
        return result.reshape(tensor.shape)

    def steps(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            if isinstance(step, Repeat):
                for _ in range(step.count):
                    self.steps(step.body)
            elif isinstance(step, Execute):
                self.execute(step)
            else:
                self.exchange(step)

    def exchange(self, step: Exchange) -> None:
        copy = self.copies[step.copy]
        pattern = self.patterns[copy.pattern]
        values: list[int] = pattern.fill_values.tolist()
        target = self.variables[copy.target].address_bytes - IPU_MEMORY.base
        before = self.memory.copy()
        for source, tile, offset, to, at, n, count, source_step, target_step in pattern.runs.tolist():
            begin = self.variables[copy.sources[source]].address_bytes - IPU_MEMORY.base + offset
            for i in range(count):
                here, there = begin + i * source_step, target + at + i * target_step
                self.memory[to, there : there + n] = before[tile, here : here + n]
        dtype = numpy_dtype(copy.dtype)
        for (to, at, n, count, step_bytes), value in zip(pattern.fills.tolist(), values, strict=True):
            constant = dtype.type(parse_constant(pattern.constants[value]))
            for i in range(count):
                there = target + at + i * step_bytes
                self.memory[to, there : there + n].view(dtype)[:] = constant

    def execute(self, step: Execute) -> None:
        seen: set[int] = set()
        for group in self.sets[step.compute_set].groups:
            task = self.tasks[group.codelet]
            for row, tile in enumerate(group.tiles):
                assert tile not in seen
                seen.add(tile)
                addresses: list[int] = []
                for word in group.words:
                    assert isinstance(word, Reference)
                    offset = (
                        word.offset_bytes if isinstance(word.offset_bytes, int) else word.offset_bytes[row]
                    )
                    addresses.append(self.variables[word.variable].address_bytes - IPU_MEMORY.base + offset)
                self.vertex(task, tile, addresses)

    def vertex(self, task: Task, tile: int, addresses: list[int]) -> None:
        arrays: list[Array] = []
        for operand, address in zip(task.operands, addresses, strict=True):
            assert (address + IPU_MEMORY.base) % operand.align_bytes == 0
            dtype = numpy_dtype(operand.dtype)
            steps = [s * dtype.itemsize for s in operand.strides]
            last = address + sum(s * (n - 1) for s, n in zip(steps, task.extents, strict=True))
            assert 0 <= address <= last <= IPU_MEMORY.size_bytes - dtype.itemsize
            row = self.memory[tile, address : last + dtype.itemsize].view(dtype)
            shape = tuple(n if s else 1 for n, s in zip(task.extents, operand.strides, strict=True))
            arrays.append(as_strided(row, shape, tuple(steps)))
        inputs, output = [a[None].copy() for a in arrays[:-1]], arrays[-1]
        origin = task.origin or (0,) * len(task.extents)

        def index(axis: int) -> Array:
            shape = [1] * (len(task.extents) + 1)
            shape[axis + 1] = task.extents[axis]
            return (origin[axis] + np.arange(task.extents[axis])).reshape(shape)

        kind, shape = numpy_dtype(task.acc_dtype), output.shape
        value = np.broadcast_to(
            np.asarray(evaluate(task.body, inputs, index)).astype(kind), (1, *task.extents)
        )[0]
        if task.combine == "none":
            output[...] = value
            return
        for selector in task.selectors:
            wanted = np.asarray(evaluate(selector.index, inputs, index)) == index(selector.axis)
            value = np.where(
                np.broadcast_to(wanted, (1, *task.extents))[0],
                value,
                neutral(task.combine, task.acc_dtype),
            )
        total: Array = (
            np.full(shape, neutral(task.combine, task.acc_dtype), kind) if task.initial else output.copy()
        )
        if task.initial and task.first is not None:
            total[...] = inputs[task.first][0]
        for point in np.ndindex(*(task.extents[a] for a in task.reduction_axes)):
            at: list[Any] = [slice(None)] * value.ndim
            for axis, i in zip(task.reduction_axes, point, strict=True):
                at[axis] = slice(i, i + 1)
            total = combine_arrays(task.combine, total, value[tuple(at)])
        if task.epilogue is not None:
            others = inputs[len(inputs) - (task.epilogue.n_inputs - 1) :]
            ended = np.asarray(evaluate(task.epilogue, [total[None], *others], index))
            total = np.broadcast_to(ended, (1, *shape))[0].astype(numpy_dtype(task.output.dtype))
        output[...] = total
