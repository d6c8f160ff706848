"""A user's assembly file as one codelet among many in one text: no macros left, its own names, our entry symbol."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from t10.core.codelet import ENTRY_PREFIX, CodeletKind
from t10.core.trust.files import SOURCE_BYTES, read_text
from t10.errors import InputError
from t10.isa.assembler import FlatStatement, assemble, flattened

_NAME = re.compile(r'"(?:\\.|[^"\\])*"|(?<![\w$.])[A-Za-z_.][\w.$]*')
_ASSIGNING = frozenset((".set", ".equ", ".equiv"))
_DROPPED = frozenset((".globl", ".global", ".weak", ".extern", ".type", ".size", ".local", "DEF_STACK_USAGE"))
_TEXT_SECTIONS = (".text", ".section")


@dataclass(frozen=True, slots=True)
class UserAssembly:
    """Assembly of one codelet, ready to stand in a text with others, and the bytes of stack it says it uses."""

    text: str
    stack_bytes: int


def read_assembly(
    path: Path, name: str, kind: CodeletKind, entry: str | None, defines: Mapping[str, str]
) -> UserAssembly:
    """Return a file's codelet under the name `name`.

    `entry` is its first instruction's symbol in the file (default: the only one the file exports). Raises `InputError`
    (`AssemblyError`) for a file that cannot be read or assembled, or has no such symbol.
    """
    source = read_text(path, SOURCE_BYTES, what=f"codelet {name} in")
    statements, image = flattened(source, source=str(path), defines=defines)
    entry = entry or _only_entry(statements, image.symbols, name, path)
    if entry not in image.symbols:
        known = ", ".join(sorted(image.symbols)) or "none"
        raise InputError(f"codelet {name}: {path} defines no symbol '{entry}' (its symbols: {known})")
    stack_bytes = image.stack_bytes.get(entry, 0)
    text = _text(statements, entry, ENTRY_PREFIX + name, name, kind, stack_bytes)
    # What was renamed must still be the same code.
    again = assemble(text, source=f"{path} (as codelet {name})")
    if ENTRY_PREFIX + name not in again.symbols:
        raise InputError(f"codelet {name}: the code of '{entry}' in {path} is not placed in memory")
    return UserAssembly(text, stack_bytes)


def _only_entry(
    statements: tuple[FlatStatement, ...], symbols: Mapping[str, int], name: str, path: Path
) -> str:
    """Return the only symbol that a file exports, or the only one it defines."""
    exported = {
        symbol.strip()
        for statement in statements
        if statement.word in (".globl", ".global")
        for symbol in statement.rest.split(",")
    }
    candidates = sorted(exported & set(symbols)) or sorted(symbols)
    if len(candidates) != 1:
        found = ", ".join(candidates) or "none"
        raise InputError(
            f"codelet {name}: {path} defines several symbols or none ({found})", hint="say which: entry"
        )
    return candidates[0]


def _text(
    statements: tuple[FlatStatement, ...],
    entry: str,
    new_entry: str,
    name: str,
    kind: CodeletKind,
    stack_bytes: int,
) -> str:
    """Return the statements in sections of the codelet's own, all its symbols renamed."""
    names = {entry: new_entry}
    for statement in statements:
        symbol = _defined_symbol(statement)
        if symbol and not symbol.isdigit():
            names.setdefault(symbol, f".L_{name}_{symbol.lstrip('.')}")
    head = [
        f'.section .text.{new_entry}, "ax"',
        f".globl {new_entry}",
        f".type {new_entry}, @function",
        ".align 8",
        ".worker" if kind == "multi" else ".supervisor",
    ]
    lines = [line for statement in statements for line in _lines(statement, names, new_entry)]
    tail = [
        f".section .text.{new_entry}",
        f".size {new_entry}, . - {new_entry}",
        f"DEF_STACK_USAGE {stack_bytes}, {new_entry}",
    ]
    return "\n".join([*head, *_bundled(lines), *tail]) + "\n"


def _bundled(lines: list[str]) -> Iterator[str]:
    """Yield the lines with the halves of a bundle on one."""
    halves: list[str] | None = None
    for line in lines:
        if line.strip() == "{":
            halves = []
        elif line.strip() == "}":
            yield f"  {{ {' ; '.join(halves or [])} }}"
            halves = None
        elif halves is not None:
            halves.append(line.strip())
        else:
            yield line


def _defined_symbol(statement: FlatStatement) -> str:
    """Return the symbol that a statement defines, "" for none."""
    if statement.is_label:
        return statement.word
    if statement.word in _ASSIGNING:
        return statement.rest.partition(",")[0].strip()
    return statement.word if statement.rest.startswith("=") else ""


def _lines(statement: FlatStatement, names: Mapping[str, str], new_entry: str) -> list[str]:
    """Return a statement as lines of text."""
    word = statement.word
    if word in _DROPPED:
        return []
    if statement.is_label:
        return [f"{names.get(word, word)}:"]
    if word in _TEXT_SECTIONS:
        section = statement.rest.partition(",")[0].strip().strip('"') if word == ".section" else word
        if section.split(".")[1:2] == ["text"]:
            return [f'.section .text.{new_entry}, "ax"']
        return [f".section {section}.{new_entry}, {statement.rest.partition(',')[2].strip() or chr(34) * 2}"]

    def renamed(match: re.Match[str]) -> str:
        return names.get(match[0], match[0])

    if statement.rest.startswith("="):
        return [f"  .set {names.get(word, word)}, {_NAME.sub(renamed, statement.rest[1:].strip())}"]
    return [f"  {word} {_NAME.sub(renamed, statement.rest)}".rstrip()]
