"""Code as T10 writes it: one section of instructions, labels and alignments, made from lines that were seen before.

Only what decides where words lie is checked: `assemble` checks the same text before a program runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from t10.core.tile import TileMemory
from t10.isa.assembler.expressions import Node, Relative, Unknown, Value, evaluate
from t10.isa.assembler.forms import SHORT_BITS, forms_of
from t10.isa.assembler.headers import known_constants
from t10.isa.assembler.instruction import ZEROS, Parsed, Row, csr_number, parse_instruction
from t10.isa.assembler.lines import Problem
from t10.isa.assembler.section import WORD_BYTES, data_row
from t10.isa.assembler.statement import statements_of
from t10.isa.image import AUX, MAIN, MOST_OPERANDS, SECOND, SOLO, Image

KEPT_LINES: Final = 65536
WORKER, SUPERVISOR, ALIGN = ".worker", ".supervisor", ".align 8"
_NOTHING: Final = frozenset((".section", ".globl", ".type", ".size", "DEF_STACK_USAGE", ""))
"""Directives that no word depends on."""


@dataclass(frozen=True, slots=True)
class _Instruction:
    """An instruction: its operands as far as they are known, and the position and name of a label among them."""

    parsed: Parsed
    values: tuple[int, ...]
    position: int = 0
    label: str = ""

    def row(self, kind: int, address: int = 0) -> Row:
        """Return its word; `address` is that of the label, if there is one."""
        if not self.label:
            return self.parsed.row(kind, self.values)
        values = (*self.values[: self.position], address, *self.values[self.position + 1 :])
        return self.parsed.row(kind, values)


@dataclass(frozen=True, slots=True)
class _Line:
    """What a line is: `n` words, in bytes; or a label, a directive, nothing (`name`).

    A body of `rpt` begins `repeated` words behind the line's first, where that is not 0. `opens` are instructions
    that need addresses, with their kinds.
    """

    n: int = 0
    words: bytes = b""
    repeated: int = 0
    opens: tuple[tuple[int, _Instruction], ...] = ()
    name: str = ""


def assembled_code(text: str, memory: TileMemory) -> Image | None:
    """Return a section of code at the beginning of a tile's memory; None where `assemble` has to look at it."""
    parts: list[bytes] = []
    addresses: dict[str, int] = {}
    opens: list[tuple[int, _Instruction]] = []
    n = 0
    mode = ""
    known = _known("", memory)
    for written in text.split("\n"):
        line = known.get(written)
        if line is None:
            try:
                line = _line(written, mode, memory)
            except (Problem, Unknown, ValueError):
                return None
            if len(known) >= KEPT_LINES:
                known.clear()
            known[written] = line
        if line.n:
            if line.repeated and (n + line.repeated) % 2:
                return None
            opens += [(n + place, one) for place, one in line.opens]
            parts.append(line.words)
            n += line.n
        elif line.name in (WORKER, SUPERVISOR):
            mode = line.name[1:]
            known = _known(mode, memory)
        elif line.name == ALIGN:
            parts += [_filler()] * (n % 2)
            n += n % 2
        elif line.name:
            addresses[line.name] = memory.base + WORD_BYTES * n
    words = np.frombuffer(bytearray().join(parts), np.int32).reshape(n, 2 + MOST_OPERANDS)
    try:
        for place, one in opens:
            words[place] = one.row(int(words[place, 0]), addresses[one.label])
    except (Problem, KeyError):
        return None
    symbols = {name: address for name, address in addresses.items() if name[0] != "."}
    return Image(memory.base, words, symbols, {}, np.zeros(n, np.int32))


@lru_cache(maxsize=16)
def _known(mode: str, memory: TileMemory) -> dict[str, _Line]:
    """Return the lines seen before in code of a mode."""
    del mode, memory
    return {}


@lru_cache(maxsize=1)
def _filler() -> bytes:
    """Return the instruction that fills gaps."""
    return _bytes([(SOLO, forms_of("nop", "")[0].number, *ZEROS)])


def _bytes(rows: list[Row]) -> bytes:
    return np.array(rows, np.int32).tobytes()


def _line(written: str, mode: str, memory: TileMemory) -> _Line:
    """Return what a line is; raises `Problem`, `Unknown` or `ValueError` for what is nothing that T10 writes."""
    text = written.partition("//")[0].strip()
    if text.endswith(":"):
        return _Line(name=text[:-1])
    if text in (WORKER, SUPERVISOR, ALIGN):
        return _Line(name=text)
    word = text.partition(" ")[0]
    if word in _NOTHING:
        return _Line()
    if word == ".int":
        value = int(text.removeprefix(".int"), 0)
        return _Line(1, _bytes([data_row(value - (value >> 31 << 32))]))
    is_bundle = text[0] == "{" and text[-1] == "}"
    halves = text[1:-1].split(";") if is_bundle else [text]
    rows: list[Row] = []
    opens: list[tuple[int, _Instruction]] = []
    repeated = 0
    for kind, half in zip((MAIN, AUX) if is_bundle else (SOLO,), halves, strict=True):
        one = _instruction(half.strip(), mode, memory)
        if one.label:
            opens.append((len(rows), one))
            rows.append((kind, 0, *ZEROS))
            continue
        rows.append(one.row(kind))
        form = one.parsed.form
        repeated = repeated or form.is_repeat * len(halves)
        if form.is_two_words_long and not 0 <= one.values[1] < 1 << SHORT_BITS:
            rows.append((SECOND, *rows[-1][1:]))
    return _Line(len(rows), _bytes(rows), repeated, tuple(opens))


@lru_cache(maxsize=KEPT_LINES)
def _instruction(text: str, mode: str, memory: TileMemory) -> _Instruction:
    """Return an instruction with at most one label among its operands."""
    (statement,) = statements_of(text)
    if statement.labels:
        raise Problem("a label stands before an instruction", 0)
    parsed = parse_instruction(statement.word, 0, statement.rest, 0, {})
    values = list(parsed.values)
    if parsed.csr:
        values[parsed.form.shape.split(" ").index("c")] = csr_number(parsed, mode)
    constants = known_constants(memory)

    def lookup(node: Node) -> Value:
        if node.name not in constants:
            raise Unknown(node.name, node.column)
        return constants[node.name]

    found: list[tuple[int, str]] = []
    for position, node in parsed.nodes:
        if node.kind == "symbol" and node.name not in constants:
            found.append((position, node.name))
        else:
            value = evaluate(node, lookup)
            values[position] = 0 if isinstance(value, Relative) else value
    (position, label), *more = found or [(0, "")]
    if more:
        raise Unknown(more[0][1], 0)
    return _Instruction(parsed, tuple(values), position, label)
