"""Files of assembly before they are linked: their sections, what they define, and what they need of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from t10.core.tile import IPU_MEMORY
from t10.isa.assembler.assembler import Assembler
from t10.isa.assembler.expressions import Node, Relative
from t10.isa.assembler.lines import Line, Reporter, TooManyErrors
from t10.isa.assembler.link import Source
from t10.isa.assembler.linkage import Unit

Binding = Literal["global", "weak", "local"]


class ObjectSection(NamedTuple):
    """A section that is placed in memory."""

    name: str
    n_bytes: int
    alignment_bytes: int
    is_code: bool


class ObjectSymbol(NamedTuple):
    """A symbol that a file defines: its section (None for a number), and its offset there or its value."""

    name: str
    binding: Binding
    section: str | None
    value: int


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """A file that is assembled, not linked; `needed` tells by symbol where the file first uses it."""

    source: str
    sections: tuple[ObjectSection, ...]
    symbols: tuple[ObjectSymbol, ...]
    needed: Mapping[str, str]


def object_files(
    sources: Sequence[Source],
    *,
    defines: Mapping[str, str] | None = None,
    include_paths: tuple[Path, ...] = (),
) -> tuple[ObjectFile, ...]:
    """Return files, each assembled by itself; symbols may be undefined. Raises AssemblyError for other errors."""
    reporter = Reporter()
    units: list[Unit] = []
    try:
        for source in sources:
            assembler = Assembler(source.name, reporter, defines or {}, include_paths, IPU_MEMORY)
            units.append(assembler.read(source.text))
    except TooManyErrors:
        pass
    reporter.raise_if_any()
    return tuple(map(_object, units))


def _object(unit: Unit) -> ObjectFile:
    sections = unit.output.sections
    placed = tuple(
        ObjectSection(section.name, section.n_bytes, section.alignment, section.is_code)
        for section in sections
        if section.is_placed and section.n_bytes
    )
    known = unit.output.symbols
    needed: dict[str, str] = {}
    for name, line in sorted(_used(unit), key=lambda use: use[1].number):
        if not known.is_defined(name):
            needed.setdefault(name, f"{line.file}:{line.number}")
    return ObjectFile(unit.source, placed, tuple(_symbols(unit)), needed)


def _symbols(unit: Unit) -> Iterator[ObjectSymbol]:
    """Yield the labels that have names, and the numbers that are exported."""
    for name, value in unit.output.symbols.values.items():
        binding = _binding(unit, name)
        if isinstance(value, Relative) and not name.startswith(".L"):
            yield ObjectSymbol(name, binding, unit.output.sections[value.section].name, value.offset)
        elif isinstance(value, int) and binding != "local":
            yield ObjectSymbol(name, binding, None, value)


def _binding(unit: Unit, name: str) -> Binding:
    if name in unit.output.weak:
        return "weak"
    return "global" if name in unit.output.exported else "local"


def _used(unit: Unit) -> Iterator[tuple[str, Line]]:
    """Yield the symbols whose values are open at the end of the file, and where."""
    output = unit.output
    for fixup in output.fixups:
        for _, node in fixup.nodes:
            yield from ((name, fixup.line) for name in _names(node))
    for data in output.data_fixups:
        yield from ((name, data.line) for name in _names(data.node))
    for name, value in output.symbols.values.items():
        if isinstance(value, Node) and name in output.exported:
            yield from ((used, output.exported[name]) for used in _names(value))


def _names(node: Node) -> Iterator[str]:
    if node.kind == "symbol":
        yield node.name
    for operand in node.operands:
        yield from _names(operand)
