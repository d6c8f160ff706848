"""Statements: a line cut at `;`, `{` and `}`, each piece with its labels and its first word."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from t10.isa.assembler.expressions import names
from t10.isa.assembler.headers import CONSTANTS
from t10.isa.assembler.instruction import Parsed

_LABEL: Final = re.compile(r"\s*([A-Za-z_.][\w.$]*|\d+)\s*:(?!:)")
_WORD: Final = re.compile(r"\s*([A-Za-z_.$][\w.$]*)\s*(=(?!=))?\s*")
_SPECIAL: Final = re.compile(r'"(?:\\.|[^"\\])*"|[;{}]')
ASSIGNMENT: Final = "="
"""`word` of `name = value`; the name is the first part of `rest`."""


@dataclass(slots=True)
class Statement:
    """One statement: `labels` with their columns, its first word, and the `rest` behind it.

    `text` is the statement padded so that its columns are those of the line. `parsed` keeps the instruction it is.
    """

    text: str
    labels: tuple[tuple[str, int], ...]
    word: str
    column: int
    rest: str
    rest_column: int
    name: str = ""
    parsed: Parsed | None = None


def is_constant(statement: Statement) -> bool:
    """Return whether a statement is a brace, or an instruction whose operands are known wherever it stands."""
    if statement.labels:
        return False
    if statement.parsed is None:
        return statement.word in ("{", "}")
    return all(names(node) <= CONSTANTS.keys() for _, node in statement.parsed.nodes)


def statements_of(text: str) -> tuple[Statement, ...]:
    """Return the statements of a line; a brace is a statement of its own."""
    if ";" not in text and "{" not in text and "}" not in text:
        return (_statement(text, 0),)
    pieces: list[tuple[str, int]] = []
    start = 0
    for match in _SPECIAL.finditer(text):
        char = match[0]
        if char[0] == '"':
            continue
        pieces.append((text[start : match.start()], start))
        if char != ";":
            pieces.append((char, match.start()))
        start = match.end()
    pieces.append((text[start:], start))
    return tuple(_statement(piece, column) for piece, column in pieces if piece and not piece.isspace())


def _statement(piece: str, column: int) -> Statement:
    text = " " * column + piece
    if piece in ("{", "}"):
        return Statement(text, (), piece, column, "", column + 1)
    labels: list[tuple[str, int]] = []
    position = 0
    while True:
        match = _LABEL.match(piece, position)
        if match is None:
            break
        labels.append((match[1], column + match.start(1)))
        position = match.end()
    match = _WORD.match(piece, position)
    if match is None:
        rest = piece[position:]
        word = rest.split()[0] if rest.strip() else ""
        where = column + position + len(rest) - len(rest.lstrip())
        return Statement(text, tuple(labels), word, where, rest.strip()[len(word) :], where + len(word))
    word, rest_column = match[1], column + match.end()
    rest = piece[match.end() :].rstrip()
    if match[2]:
        return Statement(text, tuple(labels), ASSIGNMENT, column + match.start(1), rest, rest_column, word)
    return Statement(text, tuple(labels), word, column + match.start(1), rest, rest_column)
