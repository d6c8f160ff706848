"""`t10 chips [NAME]`."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from t10.chip import ChipSpec, bundled_chips, load_chip
from t10.chip.off_chip import OffChipMemory
from t10.cli.arguments import Arguments
from t10.cli.terminal import new_table, say_json, stdout
from t10.report.columns import Column, FittedTable


def run_chips(arguments: Arguments) -> int:
    """Print the chips that come with T10, or every field of one."""
    names = (arguments.chip,) if arguments.chip else bundled_chips()
    chips = [load_chip(name) for name in names]
    console = stdout(quiet=arguments.quiet)
    if arguments.as_json:
        found = [chip.model_dump(mode="json") for chip in chips]
        say_json(console, found[0] if arguments.chip else found)
        return 0
    console.print(_fields(chips[0]) if arguments.chip else _overview(chips))
    return 0


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


def _fields(chip: ChipSpec) -> FittedTable:
    """Return every field with its value and what it means; where the numbers come from says docs/chip-files.md."""
    value = Column("value", is_folded=True)
    table = new_table("field", value, Column("meaning", rank=1, is_folded=True, is_number=False))
    for name, field in ChipSpec.model_fields.items():
        value = getattr(chip, name)
        if name == "matrix_units":
            for unit in chip.matrix_units:
                macs = unit.macs_per_cycle
                rate = f"{macs:.3g}" if macs < 100 else f"{macs:,.0f}"
                meaning = f"{rate} MAC per cycle in blocks of {unit.in_block} x {unit.out_block}"
                table.add_row(name, f"{unit.in_dtype} -> {unit.acc_dtype}", meaning)
            continue
        if name == "levels" and chip.levels:
            for level in chip.levels:
                table.add_row(name, f"{level.count} x {level.name}", level.summary)
            continue
        if isinstance(value, OffChipMemory):
            table.add_row(name, value.summary, field.description or "")
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
        table.add_row(name, shown, field.description or "")
    return table
