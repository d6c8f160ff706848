"""Conversions of four numbers at once: two pairs of f32 that one instruction rounds to f16 lie in one register of four.

A function is selected pair by pair. Where both pairs that become the halves of four f16 are values of their own, they
take the two halves of a register of four in all instructions, and one conversion does for both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from t10.codelets.body.code import Code, Numbering
from t10.codelets.body.virtual import Instruction, Register, Slice

PAIR, QUAD = 2, 4
BY_TWO, BY_FOUR = "f32v2tof16 {}, {}", "f32v4tof16 {}, {}"


def in_quads(
    code: Code, numbering: Numbering, others: Collection[Register]
) -> dict[Instruction, Instruction | None]:
    """Return by instruction what takes its place (None: nothing) where numbers are converted by fours.

    It is empty where none are. Registers of `others` are known elsewhere and stay.
    """
    found = list(_pairs(code, others))
    if not found:
        return {}
    quads: dict[Register, Slice] = {}
    merged: dict[Instruction, Instruction] = {}
    left_out: set[Instruction] = set()
    for first, second in found:
        quad = numbering.register("a", QUAD)
        for number, each in enumerate((first, second)):
            (source,) = each.reads
            quads[source.register] = quad.part(PAIR * number, PAIR)
        (target,) = first.writes
        whole = Slice(target.register, target.first, PAIR)
        merged[second] = replace(second, text=BY_FOUR, operands=(whole, quad))
        left_out.add(first)
    return {
        each: None if each in left_out else _renamed(merged.get(each, each), quads)
        for each in code.instructions
    }


def _pairs(code: Code, others: Collection[Register]) -> Iterator[tuple[Instruction, Instruction]]:
    """Yield conversions of whole pairs, each a value of this code alone, to the two halves of one register."""
    by_target: dict[Register, list[Instruction]] = {}
    for each in code.instructions:
        if each.text == BY_TWO and isinstance(each.operands[1], Slice):
            by_target.setdefault(each.writes[0].register, []).append(each)
    used: set[Register] = set()
    for target, made in by_target.items():
        sources = [each.reads[0] for each in made]
        registers = {source.register for source in sources}
        is_pair = target.width == PAIR and [each.writes[0].first for each in made] == [0, 1]
        are_own = len(registers) == PAIR and not registers & (used | set(others))
        if is_pair and are_own and all(source.register.width == PAIR for source in sources):
            used |= registers
            yield made[0], made[1]


def _renamed(instruction: Instruction, quads: dict[Register, Slice]) -> Instruction:
    """Return an instruction with the registers that are parts of wider ones now."""
    operands = tuple(
        quads[o.register].part(o.first, o.width) if isinstance(o, Slice) and o.register in quads else o
        for o in instruction.operands
    )
    return instruction if operands == instruction.operands else replace(instruction, operands=operands)
