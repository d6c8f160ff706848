"""Code as T10 writes it, one section of instructions, labels and alignments, assembled line by line from lines seen before.

Nothing is checked here but what decides where words lie: `assemble` checks the same text before a program runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
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
FILLER: Final[Row] = (SOLO, forms_of("nop", "")[0].number, *ZEROS)
_NOTHING: Final = frozenset((".section", ".globl", ".type", ".size", "DEF_STACK_USAGE"))
"""Directives that no word depends on."""
MODES: Final = (".worker", ".supervisor")
_KINDS: Final = {1: (SOLO,), 4: (MAIN, AUX)}
"""Kinds of the instructions of a line, by its number of statements: a bundle has braces."""


@dataclass(frozen=True, slots=True)
class _Open:
    """An instruction of a line that needs an address: its place among the line's words, what it is, which address."""

    place: int
    kind: int
    parsed: Parsed
    values: tuple[int, ...]
    position: int
    label: str


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a line; `repeated` is their number where a body of `rpt` follows them, else 0."""

    rows: tuple[Row, ...]
    open: _Open | None = None
    repeated: int = 0


def assembled_code(text: str, memory: TileMemory) -> Image | None:
    """Return a section of code at the beginning of a tile's memory; None where `assemble` has to look at it."""
    rows: list[Row] = []
    labels: dict[str, int] = {}
    open_words: list[tuple[int, _Open]] = []
    mode = ""
    for line in text.split("\n"):
        if line.endswith(":"):
            labels[line[:-1]] = memory.base + WORD_BYTES * len(rows)
        elif line.endswith(MODES):
            mode = line.strip()[1:]
        elif line.endswith(".align 8"):
            rows += [FILLER] * (len(rows) % 2)
        elif line:
            words = _words(line, mode, memory)
            if words is None or (words.repeated + len(rows)) % 2 * words.repeated:
                return None
            if words.open is not None:
                open_words.append((len(rows), words.open))
            rows += words.rows
    for place, one in open_words:
        address = labels.get(one.label)
        if address is None:
            return None
        values = (*one.values[: one.position], address, *one.values[one.position + 1 :])
        rows[place + one.place] = one.parsed.row(one.kind, values)
    words = np.fromiter(chain.from_iterable(rows), np.int32, len(rows) * (2 + MOST_OPERANDS))
    lines = np.zeros(len(rows), np.int32)
    symbols = {name: address for name, address in labels.items() if name[0] != "."}
    return Image(memory.base, words.reshape(len(rows), 2 + MOST_OPERANDS), symbols, {}, lines)


@lru_cache(maxsize=KEPT_LINES)
def _words(line: str, mode: str, memory: TileMemory) -> _Words | None:
    """Return the words of a line, None where it is not one instruction or bundle with at most one address."""
    statements = statements_of(line.partition("//")[0])
    if not statements or statements[0].word in _NOTHING:
        return _Words(())
    if statements[0].word == ".int":
        value = int(statements[0].rest, 0)
        return _Words((data_row(value - (value >> 31 << 32)),))
    kinds = _KINDS.get(len(statements), ())
    constants = known_constants(memory)

    def lookup(node: Node) -> Value:
        if node.name not in constants:
            raise Unknown(node.name, node.column)
        return constants[node.name]

    rows: list[Row] = []
    found: _Open | None = None
    repeated = 0
    try:
        for kind, one in zip(kinds, statements[1:3] if len(kinds) > 1 else statements, strict=True):
            parsed = parse_instruction(one.word, one.column, one.rest, one.rest_column, {})
            values = list(parsed.values)
            if parsed.csr:
                values[parsed.form.shape.split(" ").index("c")] = csr_number(parsed, mode)
            for position, node in parsed.nodes:
                if node.kind == "symbol" and node.name not in constants and found is None:
                    found = _Open(len(rows), kind, parsed, tuple(values), position, node.name)
                    continue
                value = evaluate(node, lookup)
                if isinstance(value, Relative):
                    return None
                values[position] = value
            if found is not None and found.place == len(rows):
                rows.append(FILLER)
                continue
            rows.append(parsed.row(kind, tuple(values)))
            if parsed.form.is_two_words_long and not 0 <= values[1] < 1 << SHORT_BITS:
                rows.append((SECOND, *rows[-1][1:]))
            repeated = len(kinds) if parsed.form.is_repeat else repeated
    except (Problem, Unknown, ValueError):
        return None
    return _Words(tuple(rows), found, repeated)
