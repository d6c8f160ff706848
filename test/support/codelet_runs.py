"""Runs a compiled task on the instruction-set simulator and compares what it did with what the task means.

Memory is filled with ones bits before (a NaN in every float type); operands lie as the task says: aligned to no more
than `align_bytes`, apart only where the task knows it, interleaved only where it says so. Afterwards every byte but the
output's elements, scratch and stack must be as before.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.task_reference import offsets, output_offsets, span, task_result
from t10.core.codelet import Compiled, Pointer, Scratch
from t10.core.dtypes import numpy_dtype
from t10.core.products import SUMS_BYTES
from t10.core.task import Task, TaskOperand
from t10.isa.assembler import assemble
from t10.isa.image import Image
from t10.isa.tile import Machine

Array = NDArray[Any]
BASE, REGION_1, END = 0x4C000, 0x80000, 0xE8000
CODE = 0x4C000
STATE = 0x50000
SCRATCH = 0x54000
STACK_TOP = 0x53FF8
FIRST_DATA = 0x64000
ELEMENT, PAIR = 0x4000, 0x8000
POISON = 0xFF
CYCLE_LIMIT = 100_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a codelet did: its output elements and those expected, of the parallel extents' shape; its cycles."""

    found: Array
    expected: Array
    cycles: int
    touched: tuple[int, ...] = field(default=())

    def check(self, rtol: float = 0.0, atol: float = 0.0) -> None:
        """Raise `AssertionError` where an element is wrong or a byte outside the output has changed."""
        assert self.touched == (), f"wrote outside the output, at {[hex(a) for a in self.touched[:8]]}"
        if self.found.dtype.kind == "f":
            np.testing.assert_allclose(self.found, self.expected, rtol=rtol, atol=atol, equal_nan=True)
        else:
            np.testing.assert_array_equal(self.found, self.expected)


def random_values(rng: np.random.Generator, dtype: str, n: int) -> Array:
    """Return values a task may read: floats of a normal distribution, small integers, booleans."""
    kind = numpy_dtype(dtype)
    if kind.kind == "f":
        return rng.standard_normal(n).astype(kind)
    if kind.kind == "b":
        return rng.integers(0, 2, n).astype(kind)
    return rng.integers(0 if kind.kind == "u" else -100, 100, n).astype(kind)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A tile's memory with a task's operands in place: their values, addresses and the vertex's words."""

    memory: Array
    before: Array
    flats: tuple[Array, ...]
    old: Array
    addresses: tuple[int, ...]
    state: bytes


def run_task(
    task: Task,
    compiled: Compiled,
    *,
    seed: int = 0,
    inputs: Sequence[Array | None] | None = None,
    before: Array | None = None,
    in_place: int | None = None,
) -> Run:
    """Return what the codelet did with random operands, or with the given flat arrays (from the smallest offset on).

    `in_place` is the number of an input that lies exactly where the output lies.
    """
    image = assemble(compiled.codelet.assembly, base_address=CODE)
    machine = Machine(1, image)
    memory = machine.memory(0)
    # Constants may lie behind the code: it stays as the machine loaded it.
    memory[image.base_address - BASE + image.size_bytes :] = POISON
    prepared = prepare(task, compiled, memory, seed=seed, inputs=inputs, before=before, in_place=in_place)
    return checked(task, compiled, prepared, _launch(machine, compiled, image))


def prepare(
    task: Task,
    compiled: Compiled,
    memory: Array,
    *,
    seed: int = 0,
    inputs: Sequence[Array | None] | None = None,
    before: Array | None = None,
    in_place: int | None = None,
) -> Prepared:
    """Put operands and a vertex's state into a tile's memory; see `run_task`."""
    rng = np.random.default_rng(seed)
    flats = [_values(rng, task, operand, None if inputs is None else inputs[i])
             for i, operand in enumerate(task.inputs)]  # fmt: skip
    old = _values(rng, task, task.output, before)
    if in_place is not None:
        old = flats[in_place]
    addresses = place(task, in_place)
    for operand, flat, address in zip(task.operands, [*flats, old], addresses, strict=True):
        _write(memory, task, operand, flat, address)
    state = _write_state(memory, compiled, addresses)
    return Prepared(memory, memory.copy(), tuple(flats), old, tuple(addresses), state)


def checked(task: Task, compiled: Compiled, prepared: Prepared, cycles: int) -> Run:
    """Return what has become of a prepared memory, beside what was expected."""
    size = numpy_dtype(task.output.dtype).itemsize
    slots = prepared.addresses[-1] + output_offsets(task) * size
    found = _gather(prepared.memory, slots, task.output.dtype)
    rooms = _rooms(task, compiled, prepared.addresses)
    touched = _touched(prepared.memory, prepared.before, compiled, slots, size, rooms)
    return Run(found, task_result(task, prepared.flats, prepared.old), cycles, touched)


def place(task: Task, in_place: int | None = None) -> list[int]:
    """Return the address of the first element (offset 0) of every operand, the output last.

    Operands that the task does not know to be apart share memory elements as far as they fit.
    """
    placed: list[int] = []
    next_free = {False: FIRST_DATA, True: REGION_1}
    for number, operand in enumerate(task.operands):
        low, high = span(task, operand)
        size = numpy_dtype(operand.dtype).itemsize
        in_region_1 = operand.is_interleaved
        start = next_free[in_region_1]
        if any(task.are_apart(number, other) for other in range(number)):
            unit = PAIR if start >= REGION_1 else ELEMENT
            start = -(-start // unit) * unit
        n_bytes = (high - low + 1) * size
        if not in_region_1 and start < REGION_1 < start + n_bytes + 64:
            start = max(REGION_1, next_free[True])
            in_region_1 = True
        address = -(-(start + 16) // 16) * 16 + operand.align_bytes % 16 - low * size
        address += _realign(address, operand.align_bytes)
        placed.append(address)
        next_free[in_region_1] = address + high * size + size + 8
        assert next_free[in_region_1] < END, "operands do not fit into a tile"
    if in_place is not None:
        placed[-1] = placed[in_place]
    return placed


def _realign(address: int, align_bytes: int) -> int:
    """Return what makes an address a multiple of its alignment, and of no more than that."""
    step = (-address) % align_bytes
    while (address + step) % (2 * align_bytes) == 0 and align_bytes < 16:
        step += align_bytes
    return step


def _values(rng: np.random.Generator, task: Task, operand: TaskOperand, given: Array | None) -> Array:
    low, high = span(task, operand)
    if given is not None:
        assert len(given) == high - low + 1, f"expected {high - low + 1} elements, found {len(given)}"
        return given.astype(numpy_dtype(operand.dtype))
    return random_values(rng, operand.dtype, high - low + 1)


def _write(memory: Array, task: Task, operand: TaskOperand, flat: Array, address: int) -> None:
    """Put the elements that a task uses into memory; what lies between them stays poison."""
    low, _ = span(task, operand)
    used = np.unique(offsets(task, operand))
    size = flat.dtype.itemsize
    raw = flat[used - low].view(np.uint8).reshape(-1, size)
    first = address + used * size - BASE
    memory[first[:, None] + np.arange(size)] = raw


def _gather(memory: Array, slots: Array, dtype: str) -> Array:
    kind = numpy_dtype(dtype)
    raw = memory[(slots - BASE)[..., None] + np.arange(kind.itemsize)]
    return np.ascontiguousarray(raw).view(kind)[..., 0]


def _write_state(memory: Array, compiled: Compiled, addresses: list[int]) -> bytes:
    assert len(compiled.words) == len(compiled.codelet.fields), "one word per field"
    words = b""
    for word in compiled.words:
        if isinstance(word, Pointer):
            words += struct.pack("<I", addresses[word.operand] + word.offset_bytes)
        elif isinstance(word, Scratch):
            words += struct.pack("<I", SCRATCH + word.offset_bytes)
        elif isinstance(word, float):
            words += struct.pack("<f", word)
        else:
            words += struct.pack("<I", word & 0xFFFFFFFF)
    assert len(words) <= STACK_TOP - STATE - compiled.codelet.stack_bytes, "too many words"
    assert compiled.scratch_bytes <= FIRST_DATA - SCRATCH, "scratch does not fit"
    memory[STATE - BASE : STATE - BASE + len(words)] = np.frombuffer(words, np.uint8)
    return words


def _launch(machine: Machine, compiled: Compiled, image: Image) -> int:
    """Run the vertex; two workers that write into one word are a trap."""
    codelet = compiled.codelet
    machine.set_options(
        watch_writes=True,
        stack_top=STACK_TOP,
        worker_stack_bytes=codelet.stack_bytes if codelet.kind == "multi" else 0,
    )
    return machine.run_vertex(0, image.symbols[codelet.entry], STATE, codelet.kind)


def _rooms(task: Task, compiled: Compiled, addresses: Sequence[int]) -> list[int]:
    """Return where the inputs begin that are written as well: room for sums."""
    pairs = zip(compiled.codelet.fields, compiled.words, strict=True)
    written = [word.operand for field, word in pairs if field.kind == "inout" and isinstance(word, Pointer)]
    return [addresses[number] for number in written if number < len(task.inputs)]


def _touched(
    memory: Array, before: Array, compiled: Compiled, slots: Array, size: int, rooms: Sequence[int]
) -> tuple[int, ...]:
    """Return addresses of bytes that changed and must not have."""
    changed = memory != before
    changed[(slots.reshape(-1) - BASE)[:, None] + np.arange(size)] = False
    for room in rooms:
        changed[room - BASE : room - BASE + SUMS_BYTES] = False
    changed[SCRATCH - BASE : SCRATCH - BASE + compiled.scratch_bytes] = False
    changed[STACK_TOP - BASE - compiled.codelet.stack_bytes : STACK_TOP - BASE] = False
    return tuple(int(a) + BASE for a in np.flatnonzero(changed)[:64])
