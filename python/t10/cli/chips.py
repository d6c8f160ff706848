"""`t10 chips [NAME]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from t10.chip import ChipSpec, bundled_chips, load_chip, sources_of
from t10.chip.off_chip import OffChipMemory
from t10.chip.sources import NOTES_KEY, SOURCES_KEY, Sources
from t10.cli.arguments import Arguments
from t10.cli.terminal import new_table, say, say_json, stdout
from t10.report.columns import Column, FittedTable

UNSOURCED = ("name", "description")


def run_chips(arguments: Arguments) -> int:
    """Print the chips that come with T10, or every field of one and where it comes from."""
    names = (arguments.chip,) if arguments.chip else bundled_chips()
    chips = [load_chip(name) for name in names]
    console = stdout(quiet=arguments.quiet)
    if arguments.as_json:
        found = [_with_sources(chip, name) for chip, name in zip(chips, names, strict=True)]
        say_json(console, found[0] if arguments.chip else found)
        return 0
    if not arguments.chip:
        console.print(_overview(chips))
        return 0
    sources = sources_of(arguments.chip)
    console.print(_fields(chips[0], sources))
    for note in sources.notes:
        say(console, note)
    return 0


def _with_sources(chip: ChipSpec, name: str) -> dict[str, Any]:
    """Return the fields of a chip, where they come from, and notes: again a chip file, of JSON."""
    known = sources_of(name)
    given = [field for field in ChipSpec.model_fields if getattr(chip, field) not in (None, ())]
    rows = dict.fromkeys((*given, *(field for field, _ in known.by_field)))
    sources = {field: known.of(field) for field in rows if field not in UNSOURCED}
    return {**chip.model_dump(mode="json"), SOURCES_KEY: sources, NOTES_KEY: list(known.notes)}


def _overview(chips: Sequence[ChipSpec]) -> FittedTable:
    about = Column("description", rank=9, is_folded=True, is_number=False)
    table = new_table("chip", "cores", "KiB/core", "clock", "exchange", about)
    for chip in chips:
        table.add_row(
            chip.name,
            f"{chip.n_cores:,}",
            f"{chip.sram_bytes / 1024:g}",
            f"{chip.clock_hz / 1e9:g} GHz",
            f"{chip.exchange_bytes_per_cycle} B/cycle",
            chip.description,
        )
    return table


def _fields(chip: ChipSpec, sources: Sources) -> FittedTable:
    """Return every field with its value, where it comes from, and what it means."""
    source = Column("source", rank=1, is_folded=True, is_number=False)
    meaning = Column("meaning", rank=2, is_folded=True, is_number=False)
    table = new_table("field", Column("value", is_folded=True), source, meaning)
    for name, field in ChipSpec.model_fields.items():
        value = getattr(chip, name)
        if name == "matrix_units":
            for number, unit in enumerate(chip.matrix_units):
                macs = unit.macs_per_cycle
                rate = f"{macs:.3g}" if macs < 100 else f"{macs:,.0f}"
                meaning = f"{rate} MAC per cycle in blocks of {unit.in_block} x {unit.out_block}"
                table.add_row(
                    name, f"{unit.in_dtype} -> {unit.acc_dtype}", sources.of(f"{name}[{number}]"), meaning
                )
            continue
        if name == "levels" and chip.levels:
            for number, level in enumerate(chip.levels):
                source = sources.of(f"{name}[{number}]")
                table.add_row(name, f"{level.count} x {level.name}", source, level.summary)
            continue
        if isinstance(value, OffChipMemory):
            table.add_row(name, value.summary, sources.of(name), field.description or "")
            continue
        if isinstance(value, BaseModel):
            value = ", ".join(f"{key} {each:g}" for key, each in value.model_dump().items())
        shown = (
            f"{value:,}"
            if isinstance(value, int)
            else f"{value:g}"
            if isinstance(value, float)
            else str(value)
        )
        source = "" if name in UNSOURCED or value in (None, ()) else sources.of(name)
        table.add_row(name, shown, source, field.description or "")
    return table
