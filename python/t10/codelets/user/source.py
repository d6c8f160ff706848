"""A user's assembly files as one codelet among many in one text: no macros left, own names, our entry symbol."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from t10.core.codelet import ENTRY_PREFIX, CodeletKind
from t10.core.trust.files import SOURCE_BYTES, read_text
from t10.errors import InputError
from t10.isa.assembler import FlatFile, FlatStatement, Source, assemble, flattened

_NAME = re.compile(r'"(?:\\.|[^"\\])*"|(?<![\w$.])[A-Za-z_.][\w.$]*')
_ASSIGNING = frozenset((".set", ".equ", ".equiv"))
_DROPPED = frozenset(
    (
        ".globl", ".global", ".weak", ".extern", ".type", ".size", ".local", ".hidden", ".protected",
        "DEF_STACK_USAGE", "DEF_STACK_SIZE_OWN",
    )
)  # fmt: skip
_TEXT_SECTIONS = (".text", ".section")


@dataclass(frozen=True, slots=True)
class UserAssembly:
    """Assembly of one codelet, ready to stand in a text with others, and the bytes of stack it says it uses."""

    text: str
    stack_bytes: int


def read_assembly(
    paths: Sequence[Path],
    name: str,
    kind: CodeletKind,
    entry: str | None,
    defines: Mapping[str, str],
    include_paths: tuple[Path, ...] = (),
) -> UserAssembly:
    """Return the codelet of files that are linked together, under the name `name`: what its entry needs of them.

    `entry` is its first instruction's symbol in the files (default: the only one they export). Raises `InputError`
    (`AssemblyError`) for files that cannot be read, assembled or linked, or have no such symbol.
    """
    sources = [Source(read_text(path, SOURCE_BYTES, what=f"codelet {name} in"), str(path)) for path in paths]
    where = ", ".join(map(str, paths))
    if entry is None:
        files, image = flattened(sources, defines=defines, include_paths=include_paths)
        entry = _only_entry(files, image.symbols, name, where)
    files, image = flattened(sources, defines=defines, include_paths=include_paths, entries=(entry,))
    stack_bytes = image.stack_bytes.get(entry, 0)
    text = _text(files, entry, ENTRY_PREFIX + name, name, kind, stack_bytes)
    # What was renamed must still be the same code.
    again = assemble(text, source=f"{where} (as codelet {name})")
    if ENTRY_PREFIX + name not in again.symbols:
        raise InputError(f"codelet {name}: the code of '{entry}' in {where} is not placed in memory")
    return UserAssembly(text, stack_bytes)


def _only_entry(files: tuple[FlatFile, ...], symbols: Mapping[str, int], name: str, where: str) -> str:
    """Return the only symbol that the files export, or the only one they define."""
    exported = frozenset[str]().union(*(file.exported for file in files))
    candidates = sorted(exported & set(symbols)) or sorted(symbols)
    if len(candidates) != 1:
        found = ", ".join(candidates) or "none"
        raise InputError(
            f"codelet {name}: {where} defines several symbols or none ({found})", hint="say which: entry"
        )
    return candidates[0]


def _text(
    files: tuple[FlatFile, ...], entry: str, new_entry: str, name: str, kind: CodeletKind, stack_bytes: int
) -> str:
    """Return the statements in sections of the codelet's own, all its symbols renamed."""
    head = [
        f'.section .text.{new_entry}, "ax"',
        f".globl {new_entry}",
        f".type {new_entry}, @function",
    ]
    begin = [f'.section .text.{new_entry}, "ax"', ".align 8", ".worker" if kind == "multi" else ".supervisor"]
    shared = {
        symbol: f".L_{name}_{symbol.lstrip('.')}" for file in files for symbol in file.exported - file.absent
    }
    lines: list[str] = []
    for number, file in enumerate(files):
        prefix = f"{name}_{number}" if files[1:] else name
        own = {
            symbol: f".L_{prefix}_{symbol.lstrip('.')}"
            for symbol in map(_defined_symbol, file.statements)
            if symbol and not symbol.isdigit()
        }
        names = {**dict.fromkeys(file.absent, "0"), **own, **shared, entry: new_entry}
        labels = {**names, **{symbol: own[symbol] for symbol in file.replaced & own.keys()}}
        lines += begin[number == 0 :]
        lines += [
            line
            for one in file.statements
            for line in _lines(one, labels if one.is_label else names, new_entry)
        ]
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
