"""The end of an assembly: sections get addresses, open operands their values, repetitions are checked."""

from __future__ import annotations

from itertools import chain
from typing import Final

import numpy as np

from t10.isa import INSTRUCTIONS
from t10.isa.assembler.directives import integer_bytes
from t10.isa.assembler.expressions import Node
from t10.isa.assembler.forms import SHORT_BITS
from t10.isa.assembler.lines import Line, Problem, Reporter
from t10.isa.assembler.output import BUNDLE_BYTES, DataFixup, Fixup, Output, RepeatSite
from t10.isa.assembler.section import WORD_BYTES, data_row
from t10.isa.image import AUX, MAIN, MOST_OPERANDS, SOLO, Image

_HEAD: Final = 2
"""Columns of a row before its operands."""


def finish(output: Output, reporter: Reporter, source: str, text: str, base_address: int) -> Image:
    """Return the image; errors go to `reporter`, and the image means nothing if there were any."""
    whole = Line("", "", source, 1)
    if base_address % BUNDLE_BYTES:
        reporter.report(whole, f"base address {base_address:#x} is not a multiple of {BUNDLE_BYTES}", 0)
    for section in output.sections:
        section.finish(whole)
    bases = _place(output, base_address)
    output.symbols.place_sections(bases)
    for fixup in output.fixups:
        _fix(fixup, output, reporter)
    for data in output.data_fixups:
        _fix_data(data, output, reporter)
    for repeat in output.repeats:
        _check_repeat(repeat, bases[repeat.section.index], reporter)
    sizes = _numbers(output.sizes, output, reporter)
    stacks = _numbers(output.stacks, output, reporter)
    rows, origins = _joined(output, bases, base_address, whole)
    lines = np.array([_line_in(origin, source) for origin in origins], np.int32)
    flat = np.fromiter(chain.from_iterable(rows), np.int32, len(rows) * (_HEAD + MOST_OPERANDS))
    words = flat.reshape(len(rows), _HEAD + MOST_OPERANDS)
    symbols = {
        name: bases[place.section] + place.offset
        for name, place in output.symbols.places().items()
        if not name.startswith(".L") and output.sections[place.section].is_placed
    }
    return Image(base_address, words, symbols, sizes, lines, tuple(text.split("\n")), stacks)


def _place(output: Output, base_address: int) -> list[int]:
    """Return the address of every section; those that are not placed follow the others and are left out later."""
    bases = [0] * len(output.sections)
    address = base_address
    for section in sorted(output.sections, key=lambda section: not section.is_placed):
        address += -address % section.alignment
        bases[section.index] = address
        address += section.n_bytes
    return bases


def _joined(
    output: Output, bases: list[int], base_address: int, whole: Line
) -> tuple[list[tuple[int, ...]], list[Line]]:
    """Return the words of all placed sections, gaps filled with zeros, and the line of each."""
    rows: list[tuple[int, ...]] = []
    origins: list[Line] = []
    for section in output.sections:
        if not section.is_placed or not section.rows:
            continue
        gap = (bases[section.index] - base_address) // WORD_BYTES - len(rows)
        rows += [data_row(0)] * gap
        origins += [whole._replace(number=0)] * gap
        rows += section.rows
        origins += section.origins
    return rows, origins


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


def _numbers(entries: list[tuple[str, Node, Line]], output: Output, reporter: Reporter) -> dict[str, int]:
    """Return sizes by symbol."""
    sizes: dict[str, int] = {}
    for name, node, line in entries:
        try:
            sizes[name] = output.symbols.final(node)
        except Problem as problem:
            reporter.report(line, problem.message, problem.column)
    return sizes


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
