"""The end of an assembly: sections get addresses, open operands their values, repetitions are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np

from t10.core.tile import IPU_MEMORY
from t10.isa import INSTRUCTIONS
from t10.isa.assembler.directives import integer_bytes
from t10.isa.assembler.expressions import Node, Relative
from t10.isa.assembler.forms import SHORT_BITS
from t10.isa.assembler.lines import Line, Problem, Reporter
from t10.isa.assembler.linkage import Unit
from t10.isa.assembler.output import BUNDLE_BYTES, DataFixup, Fixup, Output, RepeatSite
from t10.isa.assembler.section import WORD_BYTES, data_row
from t10.isa.image import AUX, MAIN, MOST_OPERANDS, SOLO, Image

MOST_STACK_BYTES: Final = IPU_MEMORY.end - IPU_MEMORY.base
_HEAD: Final = 2
"""Columns of a row before its operands."""


def finish(units: Sequence[Unit], reporter: Reporter, base_address: int) -> Image:
    """Return the image of connected files; errors go to `reporter`, and the image means nothing if there were any."""
    whole = [Line("", "", unit.source, 1) for unit in units]
    if base_address % BUNDLE_BYTES:
        reporter.report(whole[0], f"base address {base_address:#x} is not a multiple of {BUNDLE_BYTES}", 0)
    for unit, line in zip(units, whole, strict=True):
        for section in unit.output.sections:
            section.finish(line)
    bases = _place(units, base_address)
    for unit, addresses in zip(units, bases, strict=True):
        unit.output.symbols.place_sections(addresses)
    for unit, addresses in zip(units, bases, strict=True):
        _settle(unit.output, addresses, reporter)
    stacks: dict[str, int] = {}
    for unit in units:
        _add_stacks(stacks, unit, unit.output.stacks, reporter)
    stacks |= _totals(units, stacks, reporter)
    sizes = [_numbers(unit, _of_defined(unit.output), reporter) for unit in units]
    rows, lines = _joined(units, bases, base_address)
    flat = np.fromiter(chain.from_iterable(rows), np.int32, len(rows) * (_HEAD + MOST_OPERANDS))
    words = flat.reshape(len(rows), _HEAD + MOST_OPERANDS)
    owners = _named(units)
    symbols = {name: bases[index][place.section] + place.offset for name, (index, place) in owners.items()}
    return Image(
        base_address,
        words,
        symbols,
        {name: sizes[index][name] for name, (index, _) in owners.items() if name in sizes[index]},
        np.array(lines, np.int32),
        tuple(line for unit in units for line in unit.text.split("\n")),
        {name: n_bytes for name, n_bytes in stacks.items() if name in symbols},
        tuple(zip((unit.source for unit in units), _lines_before(units), strict=True)) if units[1:] else (),
    )


def _place(units: Sequence[Unit], base_address: int) -> list[list[int]]:
    """Return the address of every section by file; those left out of the image follow the others."""
    bases = [[0] * len(unit.output.sections) for unit in units]
    address = base_address
    sections = [(index, section) for index, unit in enumerate(units) for section in unit.output.sections]
    for index, section in sorted(sections, key=lambda pair: not pair[1].is_in_image):
        address += -address % section.alignment
        bases[index][section.index] = address
        address += section.n_bytes
    return bases


def _settle(output: Output, bases: list[int], reporter: Reporter) -> None:
    """Give everything that waits for addresses its value, and look at repetitions."""
    for fixup in output.fixups:
        if fixup.section.is_needed:
            _fix(fixup, output, reporter)
    for data in output.data_fixups:
        if data.section.is_needed:
            _fix_data(data, output, reporter)
    for repeat in output.repeats:
        if repeat.section.is_needed:
            _check_repeat(repeat, bases[repeat.section.index], reporter)


def _named(units: Sequence[Unit]) -> dict[str, tuple[int, Relative]]:
    """Return the labels of the image: file and place by name; of a name that several files have, the exported one."""
    exported: dict[str, tuple[int, Relative]] = {}
    others: dict[str, list[tuple[int, Relative]]] = {}
    for index, unit in enumerate(units):
        symbols = unit.output.symbols
        for name, place in symbols.places().items():
            if name.startswith(".L") or not unit.output.sections[place.section].is_in_image:
                continue
            if name not in unit.output.exported:
                others.setdefault(name, []).append((index, place))
            elif symbols.owner(name) is symbols:
                exported[name] = index, place
    return {name: places[0] for name, places in others.items() if len(places) == 1} | exported


def _lines_before(units: Sequence[Unit]) -> list[int]:
    """Return by file how many lines stand before its first one if the files' lines are joined."""
    counts = [len(unit.text.split("\n")) for unit in units]
    return [sum(counts[:index]) for index in range(len(units))]


def _joined(
    units: Sequence[Unit], bases: list[list[int]], base_address: int
) -> tuple[list[tuple[int, ...]], list[int]]:
    """Return the words of the image, gaps filled with zeros, and the line of each."""
    rows: list[tuple[int, ...]] = []
    lines: list[int] = []
    for unit, addresses, before in zip(units, bases, _lines_before(units), strict=True):
        for section in unit.output.sections:
            if not section.is_in_image or not section.rows:
                continue
            gap = (addresses[section.index] - base_address) // WORD_BYTES - len(rows)
            rows += [data_row(0)] * gap
            lines += [0] * gap
            rows += section.rows
            lines += [before + _line_in(origin, unit.source) for origin in section.origins]
    return rows, lines


def _line_in(line: Line, source: str) -> int:
    """Return the line of the file given to which a line belongs: its own, or that of the macro call or include."""
    while line.file != source and line.outer is not None:
        line = line.outer
    return line.number


def _fix(fixup: Fixup, output: Output, reporter: Reporter) -> None:
    """Give a word its operands."""
    values = list(fixup.values)
    try:
        for position, node in fixup.nodes:
            values[position] = output.symbols.final(node)
        row = fixup.parsed.row(fixup.kind, tuple(values))
        if fixup.parsed.form.is_two_words_long and not 0 <= values[1] < 1 << SHORT_BITS:
            raise Problem(
                f"{fixup.parsed.mnemonic} of a symbol defined below takes one word, which {values[1]:#x} does not fit",
                fixup.parsed.column,
            )
    except Problem as problem:
        reporter.report(fixup.line, problem.message, problem.column)
        return
    fixup.section.rows[fixup.index] = row


def _fix_data(fixup: DataFixup, output: Output, reporter: Reporter) -> None:
    try:
        value = output.symbols.final(fixup.node)
        fixup.section.patch(fixup.offset, integer_bytes(value, fixup.size, fixup.node.column))
    except Problem as problem:
        reporter.report(fixup.line, problem.message, problem.column)


def _numbers(unit: Unit, entries: list[tuple[str, Node, Line]], reporter: Reporter) -> dict[str, int]:
    """Return sizes by symbol."""
    sizes: dict[str, int] = {}
    for name, node, line in entries:
        try:
            sizes[name] = unit.output.symbols.final(node)
        except Problem as problem:
            reporter.report(line, problem.message, problem.column)
    return sizes


def _add_stacks(
    stacks: dict[str, int], unit: Unit, entries: list[tuple[str, Node, Line]], reporter: Reporter
) -> None:
    """Add stacks by function; a number of bytes that no stack has, and two for one function, are reported."""
    for entry in entries:
        name, line = entry[0], entry[2]
        for n_bytes in _numbers(unit, [entry], reporter).values():
            if not 0 <= n_bytes <= MOST_STACK_BYTES:
                reporter.report(
                    line, f"{name} takes {n_bytes} bytes of stack, expected 0 to {MOST_STACK_BYTES}", 0
                )
            elif stacks.setdefault(name, n_bytes) != n_bytes:
                reporter.report(line, f"{name} takes {n_bytes} bytes of stack, and before {stacks[name]}", 0)


def _of_defined(output: Output) -> list[tuple[str, Node, Line]]:
    """Return the sizes of the symbols that a file defines; `.size` of another one says nothing."""
    return [entry for entry in output.sizes if entry[0] in output.symbols.values]


def _totals(units: Sequence[Unit], stacks: Mapping[str, int], reporter: Reporter) -> dict[str, int]:
    """Return the stack of functions that state only their own: that, and the most of what they call (`call`)."""
    own: dict[str, int] = {}
    calls: dict[str, set[str]] = {}
    lines: dict[str, Line] = {}
    for unit in units:
        _add_stacks(own, unit, unit.output.own_stacks, reporter)
        calls |= _calls(unit)
        lines |= {name: line for name, _, line in unit.output.own_stacks}
    known = dict(stacks)

    def total(name: str, callers: tuple[str, ...]) -> int:
        if name in callers:
            cycle = " -> ".join((*callers[callers.index(name) :], name))
            reporter.report(
                lines[name],
                f"calls are recursive, so that no stack is known: {cycle}; state one by DEF_STACK_USAGE",
                0,
            )
            return 0
        if name not in known:
            called = sorted(calls.get(name, ())) if name in own else []
            known[name] = own.get(name, 0) + max(
                (total(each, (*callers, name)) for each in called), default=0
            )
        return known[name]

    return {name: total(name, ()) for name in own if name not in stacks}


def _calls(unit: Unit) -> dict[str, set[str]]:
    """Return by function that states a stack what it calls: from its label to the next such label of its section."""
    places = unit.output.symbols.places()
    entries = (*unit.output.stacks, *unit.output.own_stacks)
    begins = {(places[name].section, places[name].offset, name) for name, _, _ in entries if name in places}
    calls: dict[str, set[str]] = {}
    for fixup in unit.output.fixups:
        if fixup.parsed.mnemonic == "call" and fixup.section.is_needed:
            at = fixup.section.index, WORD_BYTES * fixup.index
            before = [each for each in begins if each[0] == at[0] and each[:2] <= at]
            for name in (each[2] for each in before if each[:2] == max(before)[:2]):
                calls.setdefault(name, set()).update(node.name for _, node in fixup.nodes)
    return calls


def _check_repeat(site: RepeatSite, base: int, reporter: Reporter) -> None:
    """Report a body that does not begin at a multiple of eight bytes, or holds what cannot be repeated (§6)."""
    rows, origins = site.section.rows, site.section.origins
    start = site.index + site.n_words
    address = base + WORD_BYTES * start
    if address % BUNDLE_BYTES:
        way = "{ rpt ... ; fnop }" if site.n_words == 1 else "a rpt by itself"
        reporter.report(
            site.line,
            f"the body of rpt begins at {address:#x}, which is not a multiple of 8; write {way}, or .align 8 before it",
            site.column,
        )
        return
    n_bundles = rows[site.index][_HEAD + 1] + 1
    body = range(start, start + 2 * n_bundles)
    if body.stop > len(rows):
        reporter.report(
            site.line,
            f"the body of rpt, {n_bundles} bundles, goes on behind the end of the section",
            site.column,
        )
        return
    for index in body:
        kind, form = rows[index][:2]
        record = INSTRUCTIONS[form]
        if kind != (MAIN if (index - start) % 2 == 0 else AUX):
            what = record.mnemonic if kind == SOLO else "data or half of a bundle"
            reporter.report(
                origins[index], f"{what} by itself stands in the body of rpt, which holds only bundles"
            )
            return
        if not record.can_repeat:
            reporter.report(origins[index], f"{record.mnemonic} cannot stand in the body of rpt")
            return
