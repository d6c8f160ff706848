"""Directives that write data, change section or mode, or say something about a symbol."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final

from t10.isa.assembler.expressions import Unknown, evaluate, parse_expression
from t10.isa.assembler.instruction import split_operands
from t10.isa.assembler.lines import Line, Problem
from t10.isa.assembler.output import DataFixup, Output
from t10.isa.assembler.section import MOST_BYTES
from t10.isa.assembler.statement import Statement

Directive = Callable[[Output, Statement, Line], None]

MOST_ALIGNMENT = 1 << 16

_STACK: Final = re.compile(r"(.*[^\s,])[\s,]+([A-Za-z_.][\w.$]*)\Z")
_STRING: Final = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*(,|\Z)')
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "b": "\b", "f": "\f"}
_SECTION: Final = re.compile(r'\s*"?([^\s,"]+)"?\s*(?:,\s*"([^"]*)")?(?:,.*)?\Z')
_SIZES: Final = {
    ".byte": 1, ".short": 2, ".half": 2, ".hword": 2, ".2byte": 2, ".value": 2, ".int": 4, ".long": 4, ".word": 4,
    ".4byte": 4, ".quad": 8, ".8byte": 8,
}  # fmt: skip
_IGNORED: Final = frozenset(
    (
        ".type", ".extern", ".hidden", ".protected", ".ident", ".file", ".loc", ".addrsig", ".addrsig_sym",
    )
)  # fmt: skip
_PERMISSIONS: Final = re.compile(r"\.(allow|warn|error)_(on_)?\w+\Z")


def find_directive(word: str) -> Directive | None:
    """Return what does a directive, None where the word is no directive of this kind."""
    if word in _IGNORED or word.startswith(".cfi_"):
        return _nothing
    if word in _SIZES:
        return _integers
    found = _DIRECTIVES.get(word)
    if found is None and _PERMISSIONS.match(word):
        return _nothing
    return found


def assign(output: Output, statement: Statement) -> None:
    """Do `.set name, value` and `name = value`."""
    name, rest, column = statement.name, statement.rest, statement.rest_column
    if not name:
        name, _, rest = statement.rest.partition(",")
        column += len(name) + 1
        name = name.strip()
    if not re.fullmatch(r"[A-Za-z_.][\w.$]*", name):
        raise Problem(f"'{name}' is not a name", statement.rest_column)
    output.symbols.assign(name, parse_expression(rest, column), statement.rest_column)


def _nothing(output: Output, statement: Statement, line: Line) -> None:
    """Types and debugging information do not change an image."""


def _export(output: Output, statement: Statement, line: Line) -> None:
    for name in statement.rest.split(","):
        output.exported.setdefault(name.strip(), line)
        if statement.word == ".weak":
            output.weak.add(name.strip())


def _local(output: Output, statement: Statement, line: Line) -> None:
    for name in statement.rest.split(","):
        output.exported.pop(name.strip(), None)
        output.weak.discard(name.strip())


def _integers(output: Output, statement: Statement, line: Line) -> None:
    size = _SIZES[statement.word]
    for text, column in split_operands(statement.rest, statement.rest_column):
        node = parse_expression(text, column)
        output.symbols.here = output.place()
        try:
            value = evaluate(node, output.symbols.lookup)
        except Unknown:
            value = None
        if not isinstance(value, int):
            section = output.section
            output.data_fixups.append(
                DataFixup(section, section.n_bytes, size, output.symbols.bound(node), line)
            )
            value = 0
        output.section.put_bytes(integer_bytes(value, size, column), line)


def integer_bytes(value: int, size: int, column: int) -> bytes:
    """Return a number as bytes. Raises Problem where it does not fit."""
    if not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
        raise Problem(f"{value} does not fit {size} bytes", column)
    return (value % (1 << 8 * size)).to_bytes(size, "little")


def _floats(output: Output, statement: Statement, line: Line) -> None:
    letter = "d" if statement.word == ".double" else "f"
    for text, column in split_operands(statement.rest, statement.rest_column):
        try:
            data = struct.pack("<" + letter, float(text))
        except (ValueError, OverflowError):
            raise Problem(f"'{text}' is not a number that fits", column) from None
        output.section.put_bytes(data, line)


def _strings(output: Output, statement: Statement, line: Line) -> None:
    position = 0
    while position < len(statement.rest):
        match = _STRING.match(statement.rest, position)
        if match is None:
            raise Problem("a string in quotes is expected", statement.rest_column + position)
        text = _ESCAPE.sub(_unescaped, match[1])
        output.section.put_bytes(
            text.encode("latin-1", "replace") + (b"" if statement.word == ".ascii" else b"\0"), line
        )
        position = match.end()


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code.isdigit():
        return chr(int(code, 8) & 0xFF) if set(code) <= set("01234567") else code
    return _ESCAPES.get(code, code)


def _numbers(output: Output, statement: Statement, least: int, most: int) -> list[int]:
    """Return the operands of a directive, which must be known here."""
    output.symbols.here = output.place()
    values = [
        output.symbols.number(parse_expression(text, column), f"operand of {statement.word}")
        for text, column in split_operands(statement.rest, statement.rest_column)
        if text
    ]
    if not least <= len(values) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise Problem(f"{statement.word} takes {wanted} operands, found {len(values)}", statement.column)
    return values


def _align(output: Output, statement: Statement, line: Line) -> None:
    n_bytes = _numbers(output, statement, 1, 3)[0]
    if statement.word == ".p2align":
        n_bytes = 1 << n_bytes if 0 <= n_bytes <= 16 else 0
    if n_bytes < 1 or n_bytes & (n_bytes - 1) or n_bytes > MOST_ALIGNMENT:
        raise Problem(f"alignment must be a power of two up to {MOST_ALIGNMENT} bytes", statement.rest_column)
    output.section.align(n_bytes, output.filler(), line)


def _space(output: Output, statement: Statement, line: Line) -> None:
    values = _numbers(output, statement, 1, 2)
    count, fill = values[0], values[1] if len(values) > 1 else 0
    if not 0 <= count <= MOST_BYTES:
        raise Problem(f"{count} bytes of space are not in 0..{MOST_BYTES}", statement.rest_column)
    output.section.put_bytes(bytes([fill & 0xFF]) * count, line)


def _fill(output: Output, statement: Statement, line: Line) -> None:
    values = [*_numbers(output, statement, 1, 3), 1, 0]
    count, size, value = (values[0], 1, 0) if len(values) == 3 else (values[0], values[1], values[2])
    if not 0 <= count * size <= MOST_BYTES or not 0 < size <= 8:
        raise Problem(f"{count} pieces of {size} bytes cannot be filled in", statement.rest_column)
    output.section.put_bytes(integer_bytes(value, size, statement.rest_column) * count, line)


def _section(output: Output, statement: Statement, line: Line) -> None:
    match = _SECTION.match(statement.rest)
    if match is None:
        raise Problem(".section needs a name", statement.rest_column)
    output.enter(match[1], match[2])


def _named_section(output: Output, statement: Statement, line: Line) -> None:
    output.enter(statement.word, None)


def _previous(output: Output, statement: Statement, line: Line) -> None:
    output.enter_previous()


def _mode(output: Output, statement: Statement, line: Line) -> None:
    output.mode = statement.word[1:]


def _size(output: Output, statement: Statement, line: Line) -> None:
    name, comma, rest = statement.rest.partition(",")
    if not comma:
        raise Problem(".size needs a symbol and a size", statement.rest_column)
    output.symbols.here = output.place()
    node = parse_expression(rest, statement.rest_column + len(name) + 1)
    output.sizes.append((name.strip(), output.symbols.bound(node), line))


def _stack(output: Output, statement: Statement, line: Line) -> None:
    rest = statement.rest.strip()
    called = rest.startswith("(") and rest.endswith(")") and "," in rest
    match = _STACK.match(rest[1:-1].strip() if called else rest)
    if match is None:
        raise Problem(f"{statement.word} needs bytes and a symbol", statement.rest_column)
    name = match[2].removeprefix(".text.")
    stacks = output.stacks if statement.word == "DEF_STACK_USAGE" else output.own_stacks
    stacks.append((name, parse_expression(match[1], statement.rest_column), line))


def _optimizations(output: Output, statement: Statement, line: Line) -> None:
    output.allows_optimizations = True


def _error(output: Output, statement: Statement, line: Line) -> None:
    raise Problem(f".error {statement.rest}".strip(), statement.column)


_DIRECTIVES: Final[dict[str, Directive]] = {
    ".float": _floats,
    ".single": _floats,
    ".double": _floats,
    ".ascii": _strings,
    ".asciz": _strings,
    ".string": _strings,
    ".align": _align,
    ".balign": _align,
    ".p2align": _align,
    ".space": _space,
    ".skip": _space,
    ".zero": _space,
    ".fill": _fill,
    ".section": _section,
    ".text": _named_section,
    ".data": _named_section,
    ".rodata": _named_section,
    ".bss": _named_section,
    ".previous": _previous,
    ".worker": _mode,
    ".supervisor": _mode,
    ".size": _size,
    ".allow_optimizations": _optimizations,
    ".error": _error,
    ".err": _error,
    ".warning": _nothing,
    ".globl": _export,
    ".global": _export,
    ".weak": _export,
    ".local": _local,
    "DEF_STACK_USAGE": _stack,
    "DEF_STACK_SIZE_OWN": _stack,
}
_ELSEWHERE: Final = (
    ".set",
    ".equ",
    ".equiv",
    ".macro",
    ".endm",
    ".rept",
    ".irp",
    ".irpc",
    ".endr",
    ".exitm",
    ".purgem",
)
ALL_WORDS: Final = frozenset((*_DIRECTIVES, *_SIZES, *_IGNORED, *_ELSEWHERE))
"""Every directive, for suggestions."""
