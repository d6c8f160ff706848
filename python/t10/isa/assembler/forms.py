"""Which forms an instruction has, by mnemonic and by the shape of its operands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from t10.isa import INSTRUCTIONS
from t10.isa.record import Instruction, OperandRecord

MARKED: Final = re.compile(r"\{(\w+)\}(:B[LU]?|\+=|\+\+|@|>>)?")
"""An operand in `Instruction.syntax`, and the mark behind it."""
IMMEDIATE: Final = re.compile(r"([zs])imm(\d+)\Z")
WIDTHS: Final = {"mreg": 1, "mreg_pair": 2, "areg": 1, "areg_pair": 2, "areg_quad": 4}
TWO_WORDS: Final = "imm32"
"""Kind of the operand of instructions that take one or two words, depending on its value."""
SHORT_BITS: Final = 20
"""Unsigned bits of an `imm32` that fit one word."""
ADDRESS_BITS: Final = 21
FLAG_BITS: Final = 16
CSR_BITS: Final = 9


@dataclass(frozen=True, slots=True)
class Range:
    """Values an immediate takes: least, most, and what divides them."""

    least: int
    most: int
    multiple: int = 1

    def holds(self, value: int) -> bool:
        """Return whether a value can be written."""
        return self.least <= value <= self.most and value % self.multiple == 0

    def __str__(self) -> str:
        """Return it for messages."""
        if self.multiple == 1:
            return f"{self.least}..{self.most}"
        return f"multiples of {self.multiple:#x} in {self.least}..{self.most:#x}"


@dataclass(frozen=True, slots=True)
class Form:
    """An instruction form as the assembler needs it.

    `immediates` are positions and ranges of operands that are numbers; `outs` positions of registers written, with
    their file ("m" or "a") and width.
    """

    number: int
    record: Instruction
    shape: str
    immediates: tuple[tuple[int, Range], ...]
    outs: tuple[tuple[int, str, int], ...]
    is_two_words_long: bool
    is_repeat: bool


def range_of(kind: str) -> Range:
    """Return the values that an operand of this kind takes; raises KeyError for registers."""
    match = IMMEDIATE.match(kind)
    if match is not None:
        bits = int(match[2])
        return Range(0, (1 << bits) - 1) if match[1] == "z" else Range(-(1 << bits - 1), (1 << bits - 1) - 1)
    return {
        "immz12": Range(-(1 << 31), 0xFFF00000, 1 << 20),
        "imm32": Range(-(1 << 31), (1 << 32) - 1),
        "label": Range(0, (1 << ADDRESS_BITS) - 4, 4),
        "flags": Range(0, (1 << FLAG_BITS) - 1),
        "csr": Range(0, (1 << CSR_BITS) - 1),
    }[kind]


def is_register(kind: str) -> bool:
    """Return whether an operand of this kind is a register or group."""
    return kind.startswith(("mreg", "areg"))


def shape_of(operand: OperandRecord, mark: str) -> str:
    """Return an operand's shape: `m`, `m2`, `a`, `a2`, `a4`, `a:BL` with its mark, `c` for control registers, `i`."""
    if operand.kind.startswith("areg_bcast"):
        return "a" + mark
    if is_register(operand.kind):
        width = WIDTHS[operand.kind]
        return operand.kind[0] + (str(width) if width > 1 else "") + mark
    return "c" if operand.kind == "csr" else "i"


def _form(number: int, record: Instruction) -> Form:
    marks = {match[1]: match[2] or "" for match in MARKED.finditer(record.syntax)}
    operands = record.operands
    return Form(
        number=number,
        record=record,
        shape=" ".join(shape_of(operand, marks[operand.name]) for operand in operands),
        immediates=tuple((i, range_of(o.kind)) for i, o in enumerate(operands) if not is_register(o.kind)),
        outs=tuple(
            (i, o.kind[0], WIDTHS.get(o.kind, 1))
            for i, o in enumerate(operands)
            if o.role != "in" and is_register(o.kind)
        ),
        is_two_words_long=any(o.kind == TWO_WORDS for o in operands),
        is_repeat=record.mnemonic == "rpt",
    )


@lru_cache(maxsize=1)
def all_forms() -> tuple[Form, ...]:
    """Return every form, in the order of `t10.isa.INSTRUCTIONS`."""
    return tuple(_form(number, record) for number, record in enumerate(INSTRUCTIONS))


@lru_cache(maxsize=1)
def _forms_by_shape() -> dict[tuple[str, str], tuple[Form, ...]]:
    found: dict[tuple[str, str], list[Form]] = {}
    for form in all_forms():
        found.setdefault((form.record.mnemonic, form.shape), []).append(form)
    return {key: tuple(forms) for key, forms in found.items()}


@lru_cache(maxsize=1)
def mnemonics() -> frozenset[str]:
    """Return all mnemonics."""
    return frozenset(form.record.mnemonic for form in all_forms())


def forms_of(mnemonic: str, shape: str) -> tuple[Form, ...]:
    """Return the forms with these operands, the shortest immediates first; () where there are none."""
    index = _forms_by_shape()
    forms = index.get((mnemonic, shape), ())
    if not forms and "i" in shape:
        # A control register may be given by number.
        for numbered in _with_one_csr(shape):
            forms = forms or index.get((mnemonic, numbered), ())
    return forms


def _with_one_csr(shape: str) -> Iterator[str]:
    parts = shape.split(" ")
    for position, part in enumerate(parts):
        if part == "i":
            yield " ".join([*parts[:position], "c", *parts[position + 1 :]])


def closest(name: str, known: frozenset[str]) -> str:
    """Return ", did you mean 'x'?" for a misspelt name, "" where nothing is near."""
    near = get_close_matches(name, sorted(known), n=1, cutoff=0.65)
    return f"; did you mean '{near[0]}'?" if near else ""


def usage(mnemonic: str) -> str:
    """Return the forms of an instruction as people write them, one string."""
    texts = dict.fromkeys(
        syntax_text(form.record) for form in all_forms() if form.record.mnemonic == mnemonic
    )
    return " | ".join(texts)


def syntax_text(record: Instruction) -> str:
    """Return a form as people write it, e.g. `ld64step $aD:D+1, $mBase, $mDelta+=, k`."""
    return record.syntax.format(**{o.name: _placeholder(o) for o in record.operands})


def _placeholder(operand: OperandRecord) -> str:
    name = operand.name.capitalize()
    if operand.kind.startswith("areg_bcast"):
        return f"$a{name}"
    if IMMEDIATE.match(operand.kind) or operand.kind == "immz12":
        return operand.kind
    if not is_register(operand.kind):
        return operand.name
    width = WIDTHS[operand.kind]
    return f"${operand.kind[0]}{name}" + (f":{name}+{width - 1}" if width > 1 else "")
