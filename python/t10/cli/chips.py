"""`t10 chips`."""

from __future__ import annotations

from t10.chip import bundled_chips, load_chip
from t10.cli.arguments import Arguments
from t10.cli.terminal import new_table, stdout


def run_chips(arguments: Arguments) -> int:
    """Print the chips that come with T10."""
    table = new_table("chip", "cores", "KiB/core", "clock", "exchange")
    table.add_column("description")
    for name in bundled_chips():
        chip = load_chip(name)
        table.add_row(
            chip.name,
            f"{chip.n_cores:,}",
            f"{chip.sram_bytes / 1024:g}",
            f"{chip.clock_hz / 1e9:g} GHz",
            f"{chip.exchange_bytes_per_cycle} B/cycle",
            chip.description,
        )
    stdout(quiet=arguments.quiet).print(table)
    return 0
