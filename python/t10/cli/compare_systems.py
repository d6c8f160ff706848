"""`t10 compare MODEL`: a model as several systems plan it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from t10.chip import ChipSpec, load_chip
from t10.cli.arguments import DEFAULT_CHIP, Arguments
from t10.cli.compare_file import CSV, csv_of, form_of
from t10.cli.options import shapes_of
from t10.cli.terminal import new_table, progress_bar, say, stdout
from t10.compare import MAIN, SYSTEMS, Compared, System, ansor, compared, graph_for
from t10.core.atomic import write_text
from t10.core.graph import Graph
from t10.core.partials import Partials
from t10.cost.registry import cost_model, given
from t10.errors import InputError
from t10.frontend.importer import import_model
from t10.report.columns import Column
from t10.report.rates import OF_PEAK
from t10.report.table import share_text

ANSOR = "Ansor"
COLUMNS = (
    Column("chip", is_number=False),
    Column("batch", rank=5),
    Column("partials", rank=6, is_number=False),
    Column("system", is_folded=True, is_number=False),
    Column("µs"),
    Column("cycles"),
    Column("of the first", rank=1),
    Column("moves", rank=2),
    Column(OF_PEAK, rank=3),
    Column("KiB/core", rank=3),
    Column("rotate", rank=4),
)
HEADINGS = (
    "chip", "batch", "partials", "system", "microseconds", "cycles", "of_the_first", "moved_share", "utilisation",
    "used_bytes", "rotating", "n_operators", "reason",
)  # fmt: skip
"""Columns of the CSV file: numbers without separators and units."""


@dataclass(frozen=True, slots=True)
class _Case:
    """What a model is planned for: a chip, an extent of its batch (as text), a type of sums."""

    chip: ChipSpec
    batch: str
    partials: Partials


def compare_systems(arguments: Arguments) -> int:
    """Plan a model as several systems do and print what each makes of it."""
    form_of(arguments.output, CSV)
    systems = _systems(arguments.only, arguments.evaluations)
    console = stdout(quiet=arguments.quiet)
    table = new_table(*COLUMNS)
    rows: list[tuple[str | int | float, ...]] = [HEADINGS]
    with progress_bar(quiet=arguments.quiet) as progress:
        for case in _cases(arguments):
            first: Compared | None = None
            cost = cost_model(given(arguments.cost_model), case.chip)
            graphs: dict[bool, Graph] = {}
            for number, system in enumerate(systems):
                progress(f"plan as {system.name}", number, len(systems))
                if system.joins not in graphs:
                    graphs[system.joins] = _graph(arguments, case, joins=system.joins)
                found = compared(graphs[system.joins], system, case.chip, cost)
                first = first or found
                rows.append(_cells(case, found, first))
                table.add_row(*_line(case, found, first))
    console.print(table)
    for system in systems:
        if system.joins:
            say(console, f"{system.name}: on the graph whose operators are joined; all others on their own.")
    if arguments.output is not None:
        write_text(arguments.output, csv_of(rows))
        say(console, f"wrote {arguments.output}")
    say(console, f"All times are modelled ({arguments.cost_model}).")
    return 0


def _systems(text: str, evaluations: int | None) -> tuple[System, ...]:
    """Return the systems that are asked for."""
    names = MAIN if not text else tuple(SYSTEMS) if text == "all" else tuple(map(str.strip, text.split(";")))
    unknown = [name for name in names if name not in SYSTEMS]
    if unknown:
        raise InputError(f"there is no system '{unknown[0]}'", hint=f"expected some of {'; '.join(SYSTEMS)}")
    known = SYSTEMS if evaluations is None else {**SYSTEMS, ANSOR: ansor(evaluations)}
    if evaluations is not None and ANSOR not in names:
        raise InputError(
            f"--evaluations is for {ANSOR}, which is not compared", hint=f"add {ANSOR} to --only"
        )
    return tuple(known[name] for name in names)


def _cases(arguments: Arguments) -> Iterator[_Case]:
    """Yield every chip with every batch and every type of sums."""
    batches = [""]
    if arguments.varied:
        name, equals, values = ";".join(arguments.varied).partition("=")
        if not equals or ";" in values:
            raise InputError("--batch is malformed or repeated (expected one NAME=1,2,4)")
        batches = [f"{name}={value}" for value in values.split(",")]
    chips = [load_chip(name) for name in arguments.chips or (DEFAULT_CHIP,)]
    kinds = [Partials(kind) for kind in (arguments.partials or "f16").split(",")]
    yield from (_Case(chip, batch, kind) for chip in chips for batch in batches for kind in kinds)


def _graph(arguments: Arguments, case: _Case, *, joins: bool) -> Graph:
    from t10.frontend.shapes import parse_shapes

    shapes = {**shapes_of(arguments), **parse_shapes((case.batch,) if case.batch else ())}
    imported = import_model(arguments.model, shapes=shapes)
    return graph_for(imported, case.chip, joins=joins, partials=case.partials)


def _cells(case: _Case, found: Compared, first: Compared) -> tuple[str | int | float, ...]:
    """Return a line of the CSV file, numbers as numbers; times are beside those of the first system."""
    head = (case.chip.name, case.batch.partition("=")[2], case.partials.kind, found.system)
    if found.reason:
        return (*head, *("" for _ in HEADINGS[4:-1]), found.reason)
    return (
        *head,
        round(1e6 * found.cycles / case.chip.clock_hz, 3),
        found.cycles,
        "" if first.reason else round(found.cycles / first.cycles, 4),
        round(found.transfer_cycles / max(found.cycles, 1), 4),
        "" if found.utilisation is None else found.utilisation,
        found.peak_bytes,
        found.rotating,
        found.n_operators,
        "",
    )


def _line(case: _Case, found: Compared, first: Compared) -> tuple[str, ...]:
    """Return a line of the table."""
    head = (case.chip.name, case.batch.partition("=")[2], case.partials.kind, found.system)
    if found.reason:
        return (*head, "does not fit", *("" for _ in COLUMNS[5:]))
    ratio = "" if first.reason else f"{found.cycles / first.cycles:.2f}x"
    return (
        *head,
        f"{1e6 * found.cycles / case.chip.clock_hz:,.1f}",
        f"{found.cycles:,}",
        ratio,
        f"{found.transfer_cycles / max(found.cycles, 1):.0%}",
        share_text(found.utilisation),
        f"{found.peak_bytes / 1024:.1f}",
        f"{found.rotating} of {found.n_operators}",
    )
