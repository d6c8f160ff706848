"""Instructions as text: one form with its operands, or a whole image that assembles to itself again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from t10.isa import INSTRUCTIONS, constants
from t10.isa.assembler.forms import WIDTHS, is_register
from t10.isa.assembler.registers import register_name
from t10.isa.image import AUX, DATA, MAIN, SECOND, Image
from t10.isa.record import Instruction, OperandRecord

_HEAD: Final = 2
"""Columns of a word before its operands."""


def instruction_text(form: int, operands: Sequence[int]) -> str:
    """Return an instruction of `t10.isa.INSTRUCTIONS[form]` as the assembler reads it.

    `operands` are register numbers and values in the order of the record, as in the words of an image; more are left.
    """
    record = INSTRUCTIONS[form]
    return record.syntax.format(
        **{
            o.name: _operand(record, o, int(value))
            for o, value in zip(record.operands, operands, strict=False)
        }
    )


def image_text(image: Image, *, addresses: bool = True) -> str:
    """Return an image as text: labels, bundles on one line, data as `.int`, and addresses as comments.

    Assembled at the same base address, it gives the same words, symbols, sizes and stacks.
    """
    labels: dict[int, list[str]] = {}
    for name, address in image.symbols.items():
        labels.setdefault(address, []).append(name)
    lines: list[str] = []
    words: list[list[int]] = image.words.tolist()
    index = 0
    while index < len(words):
        address = image.base_address + 4 * index
        lines += [f"{name}:" for name in sorted(labels.pop(address, []))]
        kind = words[index][0]
        text = word_text(words[index])
        n_words = 2 if index + 1 < len(words) and words[index + 1][0] in (AUX, SECOND) else 1
        if kind == MAIN:
            text = f"{{ {text} ; {word_text(words[index + 1])} }}"
        lines.append(f"  {text:<78}  // {address:#x}" if addresses else f"  {text}")
        index += n_words
    end = image.base_address + image.size_bytes
    lines += [f"{name}:" for name in sorted(labels.pop(end, []))]
    lines += [f".size {name}, {n_bytes}" for name, n_bytes in sorted(image.sizes.items())]
    lines += [f"DEF_STACK_USAGE {n_bytes}, {name}" for name, n_bytes in sorted(image.stack_bytes.items())]
    return "\n".join([*lines, ""])


def word_text(word: Sequence[int]) -> str:
    """Return one word of an image as text, without its other half."""
    if word[0] == DATA:
        return f".int {word[_HEAD] & 0xFFFFFFFF:#x}"
    return instruction_text(word[1], word[_HEAD:])


def _operand(record: Instruction, operand: OperandRecord, value: int) -> str:
    kind = operand.kind
    if is_register(kind):
        return register_name("m" if kind[0] == "m" else "a", value, WIDTHS.get(kind, 1))
    if kind == "csr":
        return _control_register(record, value)
    if kind == "flags":
        return _flag_names(_flag_prefix(record.mnemonic)).get(value, str(value))
    if kind in ("label", "immz12", "imm32") and not 0 <= value < 1 << 16:
        return f"{value & 0xFFFFFFFF:#x}"
    return str(value)


def _control_register(record: Instruction, number: int) -> str:
    """Return a control register's name; of numbers that worker and supervisor use differently, the worker's."""
    spaces = (
        (constants.UPPER_CSRS,)
        if record.pipe == "aux"
        else (constants.WORKER_CSRS, constants.SUPERVISOR_CSRS)
    )
    for space in spaces:
        for name, known in space.items():
            if known == number:
                return f"${name}"
    return str(number)


def _flag_prefix(mnemonic: str) -> str:
    """Return what the names of an instruction's flags begin with."""
    if "slic" in mnemonic:
        return "TSLIC"
    if "istacc" in mnemonic:
        return "TISTACC"
    if "stacc" in mnemonic:
        return "TSTACC"
    return "TAMP_F32" if mnemonic.startswith("f32") else "TAMP_F16V4"


@lru_cache(maxsize=8)
def _flag_names(prefix: str) -> dict[int, str]:
    return {value: name for name, value in constants.FLAGS.items() if name.startswith(prefix + "_")}
