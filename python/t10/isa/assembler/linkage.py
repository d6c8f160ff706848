"""Symbols across files: which file defines what, and which sections a set of entries needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from t10.errors import InputError
from t10.isa.assembler.expressions import Node, Relative, Unknown
from t10.isa.assembler.forms import closest
from t10.isa.assembler.lines import Line, Reporter
from t10.isa.assembler.output import Output
from t10.isa.assembler.section import Section
from t10.isa.assembler.symbols import MOST_CHAIN, Symbols

MOST_SHOWN = 12
"""Symbols that an error lists."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One assembled file whose sections have no addresses yet; `source` names it in messages."""

    source: str
    text: str
    output: Output


def connect(units: Sequence[Unit], reporter: Reporter) -> None:
    """Let every file see the symbols that the others export; reports what two files define (`.weak` ones yield)."""
    owners: dict[str, Unit] = {}
    for unit in units:
        for name in _exported(unit):
            owner = owners.setdefault(name, unit)
            if owner is unit or name in unit.output.weak:
                continue
            if name in owner.output.weak:
                owners[name] = unit
            else:
                before = _definition(owner, name)
                where = f"{before.file}:{before.number}"
                reporter.report(_definition(unit, name), f"symbol '{name}' is defined before, at {where}")
    hidden = {
        name: f"{line.file}:{line.number} defines it without .globl"
        for unit in units
        for name, line in unit.output.symbols.labels.items()
        if name not in owners
    }
    tables = {name: unit.output.symbols for name, unit in owners.items()}
    for unit in units:
        symbols = unit.output.symbols
        symbols.connect(tables, unit.output.weak, hidden)
        for name in unit.output.weak & symbols.values.keys():
            if tables.get(name) is not symbols and not isinstance(symbols.values[name], Relative):
                where = f"the definition in {owners[name].source} comes too late"
                reporter.report(_definition(unit, name), f"weak symbol '{name}' is no label here: {where}")


def keep_needed(units: Sequence[Unit], entries: Sequence[str]) -> None:
    """Mark the sections that the code at `entries` refers to, directly or not, as the only ones needed.

    Raises InputError for an entry that no file defines, or that several define and none exports.
    """
    by_symbols = {id(unit.output.symbols): unit for unit in units}
    uses = {id(section): list[Node]() for unit in units for section in unit.output.sections}
    for unit in units:
        for section in unit.output.sections:
            section.is_needed = False
        for fixup in unit.output.fixups:
            uses[id(fixup.section)] += [node for _, node in fixup.nodes]
        for data in unit.output.data_fixups:
            uses[id(data.section)].append(data.node)
    left = [place for name in entries for place in _reached(Node("symbol", name=name), _owner(units, name))]
    while left:
        symbols, index = left.pop()
        section: Section = by_symbols[id(symbols)].output.sections[index]
        if not section.is_needed:
            section.is_needed = True
            left += [place for node in uses[id(section)] for place in _reached(node, symbols)]


def _exported(unit: Unit) -> Iterator[str]:
    """Yield the names that a file exports and defines."""
    values = unit.output.symbols.values
    return (name for name in unit.output.exported if name in values)


def _definition(unit: Unit, name: str) -> Line:
    """Return the line of an exported symbol's label; of one that was set, that of its `.globl`."""
    return unit.output.symbols.labels.get(name) or unit.output.exported[name]


def _owner(units: Sequence[Unit], name: str) -> Symbols:
    """Return the symbols of the file that defines an entry."""
    tables = [unit.output.symbols for unit in units]
    for unit, table in zip(units, tables, strict=True):
        if name in unit.output.exported and name in table.values and table.owner(name) is table:
            return table
    defining = [table for table in tables if name in table.values]
    if len(defining) == 1:
        return defining[0]
    if defining:
        raise InputError(
            f"entry '{name}' is a label of {len(defining)} files, and none exports it",
            hint=f"write .globl {name} in one of them",
        )
    known = sorted({name for table in tables for name in table.labels if not name.startswith(".L")})
    shown = ", ".join(known[:MOST_SHOWN]) + (", ..." if known[MOST_SHOWN:] else "") or "none"
    where = ", ".join(unit.source for unit in units)
    wanted = f"none of {where} defines the symbol" if len(units) > 1 else f"{where} defines no symbol"
    raise InputError(f"{wanted} '{name}' (its symbols: {shown}){closest(name, frozenset(known))}")


def _reached(node: Node, symbols: Symbols, depth: int = 0) -> Iterator[tuple[Symbols, int]]:
    """Yield the sections whose addresses an expression's value depends on, with the symbols of their file."""
    for operand in node.operands:
        yield from _reached(operand, symbols, depth)
    if node.operands or node.kind == "int":
        return
    if node.kind == "symbol":
        symbols = symbols.owner(node.name) or symbols
        value = symbols.values.get(node.name)
        if isinstance(value, Node) and depth < MOST_CHAIN:
            yield from _reached(value, symbols, depth + 1)
    else:
        try:
            value = symbols.lookup(node)
        except Unknown:
            return
    if isinstance(value, Relative):
        yield symbols, value.section
