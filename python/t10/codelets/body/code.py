"""A growing list of instructions on virtual registers."""

from __future__ import annotations

from dataclasses import replace

from t10.codelets.body.virtual import File, Instruction, Operand, Register, Slice

MULTI_SLOT = {"f32exp": 3, "f32exp2": 3, "f32ln": 6, "f32log2": 6, "f32tanh": 5, "f32sigm": 5, "f32div": 4,
              "f32oox": 3, "f32oorx": 4, "f32sqrt": 5, "f16v2exp": 2, "f16v2exp2": 2, "f16v2ln": 2, "f16v2log2": 2,
              "f16v2tanh": 2, "f16v2sigm": 2}  # fmt: skip
"""Issue slots of functions that take more than one (ISA reference §16)."""


class Numbering:
    """Numbers for virtual registers, shared by all code of a codelet."""

    def __init__(self) -> None:
        """Begin at 0."""
        self.n_registers = 0

    def register(self, file: File, width: int = 1) -> Slice:
        """Return a new virtual register, whole."""
        self.n_registers += 1
        return Register(self.n_registers, file, width).whole()


class Code:
    """Instructions in an order in which they could run one by one."""

    def __init__(self, numbering: Numbering) -> None:
        """Begin without instructions."""
        self.numbering = numbering
        self.instructions: list[Instruction] = []

    def new(self, file: File, width: int = 1) -> Slice:
        """Return a new virtual register."""
        return self.numbering.register(file, width)

    def add(
        self, text: str, roles: str, *operands: Operand, is_main: bool, streams: tuple[str, ...] = ()
    ) -> Instruction:
        """Add an instruction as it is; see `Instruction`."""
        instruction = Instruction(text, operands, roles, is_main, streams, MULTI_SLOT.get(text.split()[0], 1))
        self.instructions.append(instruction)
        return instruction

    def put_into(self, register: Register, target: Slice) -> None:
        """Let a virtual register that nothing holds any longer be a part of another one, from its beginning."""

        def moved(operand: Operand) -> Operand:
            if isinstance(operand, str) or operand.register != register:
                return operand
            return target.part(operand.first, operand.width)

        for number, one in enumerate(self.instructions):
            operands = tuple(map(moved, one.operands))
            if operands != one.operands:
                self.instructions[number] = replace(one, operands=operands)

    def aux(self, mnemonic: str, target: Slice, *sources: Operand, first: str = "") -> Slice:
        """Add an aux instruction that writes `target`, and return it; `first` marks its first source (`:BL`)."""
        fields = [f"{{}}{first if i == 0 else ''}" for i in range(len(sources))]
        text = f"{mnemonic} {', '.join(['{}', *fields])}"
        self.add(text, "o" + "i" * len(sources), target, *sources, is_main=False)
        return target

    def main(self, mnemonic: str, target: Slice, *sources: Operand) -> Slice:
        """Add a main instruction that writes `target`, and return it."""
        text = f"{mnemonic} {', '.join(['{}'] * (1 + len(sources)))}"
        self.add(text, "o" + "i" * len(sources), target, *sources, is_main=True)
        return target
