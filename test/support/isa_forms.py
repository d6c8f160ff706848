"""One instruction on one worker: random operands in, what the simulator made of them out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from t10.core.tile import IPU_MEMORY
from t10.isa import INSTRUCTIONS
from t10.isa.image import DATA, SOLO, Image
from t10.isa.record import Instruction, OperandRecord
from t10.isa.tile import Machine

Words = NDArray[np.uint32]
Floats = NDArray[np.float32]
MEMORY = replace(IPU_MEMORY, end=IPU_MEMORY.interleaved_base + 0x20000)
WEIGHTS_AT = IPU_MEMORY.interleaved_base
SIZES = {"mreg_pair": 2, "areg_pair": 2, "areg_quad": 4}


@dataclass
class Inputs:
    """Values of the operands by name (32-bit patterns), immediates too, and the state instructions work on.

    Models change `acc`, `tas` and `memory` as the instruction does, and return the operands it writes.
    """

    words: dict[str, Words]
    acc: Floats = field(default_factory=lambda: np.zeros(32, np.float32))
    tas: int = 0
    memory: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    weights: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))

    def number(self, name: str) -> int:
        """Return an operand of one register, or an immediate, as an unsigned integer."""
        return int(self.words[name][0])

    def signed(self, name: str) -> int:
        """Return the same as a signed integer."""
        return int(np.int32(self.words[name][:1].view(np.int32)[0]))


Outputs = dict[str, Words]
Model = Callable[[Inputs], Outputs]


def words(*values: int) -> Words:
    """Return 32-bit patterns, each value taken modulo 2^32."""
    return np.array([value & 0xFFFFFFFF for value in values], np.uint32)


def is_register(operand: OperandRecord) -> bool:
    """Return whether an operand names a register or several."""
    return operand.kind.startswith(("mreg", "areg"))


def form_number(mnemonic: str, n_operands: int | None = None) -> int:
    """Return the number of the first form of a mnemonic (with so many operands)."""
    return next(
        number
        for number, record in enumerate(INSTRUCTIONS)
        if record.mnemonic == mnemonic and n_operands in (None, len(record.operands))
    )


def row(kind: int, form: int, *operands: int) -> list[int]:
    """Return a row of `Image.words`."""
    return [kind, form, *operands, *[0] * (8 - len(operands))]


def image_of(rows: list[list[int]], base: int = IPU_MEMORY.base) -> Image:
    """Return code made of rows."""
    return Image(base, np.array(rows, np.int64).astype(np.int32), {}, {}, np.zeros(len(rows), np.int32))


def allocate(record: Instruction, in_place: bool) -> dict[str, int]:
    """Return a register for every register operand, no two overlapping; `d` that of `x` where asked and possible."""
    free = {"m": 2, "a": 0}
    registers: dict[str, int] = {}
    for operand in sorted(record.operands, key=lambda one: -SIZES.get(one.kind, 1)):
        if not is_register(operand):
            continue
        size = SIZES.get(operand.kind, 1)
        file = operand.kind[0]
        first = -(-free[file] // size) * size
        registers[operand.name] = first
        free[file] = first + size
    kinds = {operand.name: operand.kind for operand in record.operands}
    if in_place and "x" in kinds and kinds.get("d") == kinds["x"]:
        registers["d"] = registers["x"]
    return registers


class Form:
    """A form of an instruction, ready to be run with any operands. `weights` are loaded when given."""

    def __init__(self, number: int, immediates: dict[str, int], in_place: bool = False) -> None:
        """Make the code: the instruction and an exit; for weights a supervisor's loads."""
        self.record = INSTRUCTIONS[number]
        self.registers = allocate(self.record, in_place)
        self.immediates = immediates
        operands = [
            self.registers[operand.name] if is_register(operand) else immediates[operand.name]
            for operand in self.record.operands
        ]
        loads = [row(SOLO, form_number("ld64putcs"), n) for n in range(64)]
        supervisor = [
            row(SOLO, form_number("put"), 0x50, 0),
            *loads,
            row(SOLO, form_number("br"), 10),
        ]
        code = [
            row(SOLO, number, *operands),
            row(SOLO, form_number("exitz"), 15),
            *supervisor,
        ]
        self.machine = Machine(1, image_of(code), MEMORY)

    def run(self, inputs: Inputs) -> tuple[Outputs, Floats]:
        """Run on worker 0 (the others do the same on the same data); return what was written, and the accumulators."""
        memory = self.machine.memory(0)
        if len(inputs.weights):
            at = WEIGHTS_AT - IPU_MEMORY.base
            memory[at : at + 512] = inputs.weights
            self.machine.run_vertex(0, IPU_MEMORY.base + 8, WEIGHTS_AT, "supervisor")
        for worker in range(6):
            self._set(worker, inputs)
        if len(inputs.memory):
            memory[:] = inputs.memory
        self.machine.run_vertex(0, IPU_MEMORY.base, IPU_MEMORY.base)
        found = self.machine.registers(0, 0)
        written = {
            operand.name: self._get(found.m if operand.kind[0] == "m" else found.a, operand)
            for operand in self.record.operands
            if operand.role != "in"
        }
        return written, np.array(found.accumulators, np.uint32).view(np.float32)

    def _set(self, worker: int, inputs: Inputs) -> None:
        """Set the registers and accumulators of a worker."""
        for operand in self.record.operands:
            if not is_register(operand):
                continue
            first = self.registers[operand.name]
            for i, value in enumerate(inputs.words.get(operand.name, words())):
                self.machine.set_register(0, worker, f"{operand.kind[0]}{first + i}", int(value))
        for i, value in enumerate(inputs.acc.view(np.uint32)):
            self.machine.set_register(0, worker, f"acc{i}", int(value))
        self.machine.set_register(0, worker, "tas", inputs.tas)

    def _get(self, file: tuple[int, ...], operand: OperandRecord) -> Words:
        first = self.registers[operand.name]
        return np.array(file[first : first + SIZES.get(operand.kind, 1)], np.uint32)


def broadcast(record: Instruction, inputs: Inputs) -> Inputs:
    """Return the operands as models see them: elements that stand for all lanes repeated."""
    n_words = 2 if any(operand.kind == "areg_pair" for operand in record.operands) else 1
    seen = dict(inputs.words)
    for operand in record.operands:
        if not operand.kind.startswith("areg_bcast"):
            continue
        value = int(seen[operand.name][0])
        half = value >> 16 if operand.kind == "areg_bcast_upper" else value & 0xFFFF
        value = value if operand.kind == "areg_bcast" else half * 0x10001
        seen[operand.name] = words(*[value] * n_words)
    return Inputs(seen, inputs.acc.copy(), inputs.tas, inputs.memory.copy(), inputs.weights)


__all__ = [
    "DATA",
    "SOLO",
    "Form",
    "Inputs",
    "Model",
    "Outputs",
    "broadcast",
    "form_number",
    "image_of",
    "row",
]
