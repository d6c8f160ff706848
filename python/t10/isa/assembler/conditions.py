"""Conditional assembly: `.if` and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from t10.isa.assembler.expressions import parse_expression
from t10.isa.assembler.lines import Line, Problem
from t10.isa.assembler.statement import Statement
from t10.isa.assembler.symbols import Symbols

_NUMERIC: Final[dict[str, Callable[[int], bool]]] = {
    ".if": lambda value: value != 0,
    ".ifne": lambda value: value != 0,
    ".ifeq": lambda value: value == 0,
    ".ifgt": lambda value: value > 0,
    ".ifge": lambda value: value >= 0,
    ".iflt": lambda value: value < 0,
    ".ifle": lambda value: value <= 0,
}
_DEFINED: Final = {".ifdef": True, ".ifndef": False, ".ifnotdef": False}
_BLANK: Final = {".ifb": True, ".ifnb": False}
_EQUAL: Final = {".ifc": True, ".ifnc": False, ".ifeqs": True, ".ifnes": False}

OPENING: Final = frozenset((*_NUMERIC, *_DEFINED, *_BLANK, *_EQUAL))
WORDS: Final = frozenset((*OPENING, ".else", ".elseif", ".endif"))
"""Directives that are looked at where nothing else is assembled."""


class Conditions:
    """The conditions that are open; `is_active` tells whether statements count."""

    def __init__(self, symbols: Symbols) -> None:
        """Begin outside of any condition."""
        self.is_active = True
        self._symbols = symbols
        self._states: list[
            tuple[bool, bool, bool, Line]
        ] = []  # active outside, taken before, `.else` seen, where

    @property
    def depth(self) -> int:
        """Return how many are open."""
        return len(self._states)

    def cut(self, depth: int) -> Line | None:
        """Close those deeper than `depth`; return the line of the outermost of them, None where there is none."""
        if len(self._states) <= depth:
            return None
        outside, _, _, line = self._states[depth]
        del self._states[depth:]
        self.is_active = outside
        return line

    def apply(self, statement: Statement, line: Line, floor: int) -> None:
        """Do what a conditional directive says; those below `floor` belong to the text around. Raises Problem."""
        word = statement.word
        if word in OPENING:
            outside = self.is_active
            self.is_active = False  # stays so if the condition is wrong
            self._states.append((outside, True, False, line))
            holds = outside and self._holds(statement)
            self._states[-1] = (outside, holds, False, line)
            self.is_active = holds
            return
        if len(self._states) <= floor:
            raise Problem(f"{word} has no .if", statement.column)
        outside, taken, seen_else, opened = self._states[-1]
        if word == ".endif":
            self._states.pop()
            self.is_active = outside
            return
        if seen_else:
            raise Problem(f"{word} stands behind .else", statement.column)
        self.is_active = False
        self.is_active = outside and not taken and (word == ".else" or self._is_true(".if", statement))
        self._states[-1] = (outside, taken or self.is_active, word == ".else", opened)

    def _holds(self, statement: Statement) -> bool:
        word, rest = statement.word, statement.rest
        if word in _NUMERIC:
            return self._is_true(word, statement)
        if word in _DEFINED:
            return self._symbols.is_defined(rest.strip()) == _DEFINED[word]
        if word in _BLANK:
            return (not rest.strip()) == _BLANK[word]
        first, second = _two_strings(rest, word, statement.rest_column)
        return (first == second) == _EQUAL[word]

    def _is_true(self, word: str, statement: Statement) -> bool:
        node = parse_expression(statement.rest, statement.rest_column)
        return _NUMERIC[word](self._symbols.number(node, "a condition"))


def _two_strings(text: str, word: str, column: int) -> tuple[str, str]:
    """Return the two texts that `.ifc` compares: parted by the first comma outside of quotes, without quotes."""
    quote = ""
    for position, char in enumerate(text):
        if char in "\"'":
            quote = "" if quote == char else quote or char
        elif char == "," and not quote:
            return _bare(text[:position]), _bare(text[position + 1 :])
    raise Problem(f"{word} needs two texts parted by a comma", column)


def _bare(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text
