"""Two compiled models side by side: totals, and what changed operator by operator. All cycles are modelled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from t10.report.columns import Column, FittedTable
from t10.report.rates import MEAN_RATE, UTILISATION
from t10.report.records import EnergyReport, OperatorReport, Report
from t10.report.table import KINDS, KINDS_IN_TIME, bytes_text, joules_text, share_text, time_text

COLUMNS = (
    Column("operator", is_folded=True, is_number=False),
    Column("cycles A", rank=1),
    Column("cycles B", rank=1),
    Column("change"),
    Column("B/core A", rank=2),
    Column("B/core B", rank=2),
    Column("what changed", is_folded=True, is_number=False),
)


@dataclass(frozen=True, slots=True)
class Side:
    """An operator in one of two runs: cycles, bytes of a core in use while it runs, and cores that work."""

    cycles: int
    bytes: int
    cores: int


@dataclass(frozen=True, slots=True)
class Change:
    """An operator of one run or both: `change` in cycles from A to B, and in words what else is not as it was."""

    name: str
    a: Side | None
    b: Side | None
    change: int
    what: str


def changes(a: Report, b: Report, why: Mapping[str, Sequence[str]] | None = None) -> tuple[Change, ...]:
    """Return the operators of two runs, matched by name: those of A in its order, then those that only B has.

    `why` has by name what is known of why an operator that is cut alike in both takes other cycles.
    """
    in_b = {operator.name: operator for operator in b.operators}
    in_a = {operator.name for operator in a.operators}
    rows = [_change(operator, in_b.get(operator.name)) for operator in a.operators]
    rows += [_change(None, operator) for operator in b.operators if operator.name not in in_a]
    known = why or {}
    return tuple(replace(row, what="; ".join((row.what, *known.get(row.name, ())))) for row in rows)


def compare_table(rows: tuple[Change, ...], title: str) -> FittedTable:
    """Return one row per change."""
    table = FittedTable(COLUMNS, title)
    for row in rows:
        cycles = ["absent" if side is None else f"{side.cycles:,}" for side in (row.a, row.b)]
        n_bytes = ["" if side is None else f"{side.bytes:,}" for side in (row.a, row.b)]
        table.add_row(row.name, *cycles, f"{row.change:+,}", *n_bytes, row.what)
    return table


def totals(a: Report, b: Report) -> tuple[tuple[str, str], ...]:
    """Return what two runs take in all, by name."""
    change = b.total_cycles / a.total_cycles - 1 if a.total_cycles else 0.0
    kinds = ((kind, int(getattr(a.cycles, kind)), int(getattr(b.cycles, kind))) for kind in KINDS)
    return (
        (
            "time",
            f"{time_text(a)} -> {time_text(b)}",
        ),
        ("cycles", f"{a.total_cycles:,} -> {b.total_cycles:,} ({change:+.2%})"),
        *((kind, f"{x:,} -> {y:,}") for kind, x, y in kinds if x or y),
        *_rates(a, b),
        *_energies(a.energy, b.energy),
        ("peak per core", f"{bytes_text(a.peak_bytes)} -> {bytes_text(b.peak_bytes)}"),
        ("cost model", a.cost_model if a.cost_model == b.cost_model else f"{a.cost_model} -> {b.cost_model}"),
    )


def _rates(a: Report, b: Report) -> Iterator[tuple[str, str]]:
    """Yield what part of the matrix engines' fastest rate two runs come to, where one has products; GB/s that move."""
    if a.utilisation is not None or b.utilisation is not None:
        yield UTILISATION, " -> ".join(share_text(each.utilisation) or "none" for each in (a, b))
    yield MEAN_RATE, " -> ".join(f"{each.mean_rate:.2f}" for each in (a, b))


def _energies(a: EnergyReport | None, b: EnergyReport | None) -> Iterator[tuple[str, str]]:
    """Yield the energy of two runs, where one has some."""
    if a is not None or b is not None:
        texts = ["none" if each is None else joules_text(each.total) for each in (a, b)]
        yield "energy", f"{texts[0]} -> {texts[1]}"


def change_records(rows: tuple[Change, ...]) -> list[dict[str, Any]]:
    """Return changes as JSON values."""
    return [asdict(row) for row in rows]


def page_record(a: Report, b: Report, rows: tuple[Change, ...]) -> dict[str, Any]:
    """Return what the page of two runs shows: what changed, and when either does what."""
    runs = [
        {
            "name": name,
            "hertz": run.chip.clock_hz,
            "kinds": list(KINDS_IN_TIME),
            "operators": [
                {
                    "name": each.name,
                    "kind": each.kind,
                    "cycles": [int(getattr(each.cycles, kind)) for kind in KINDS_IN_TIME],
                }
                for each in run.operators
            ],
        }
        for name, run in (("A", a), ("B", b))
    ]
    return {"rows": change_records(rows), "runs": runs}


def change_cells(rows: tuple[Change, ...]) -> Iterator[tuple[object, ...]]:
    """Yield changes as the lines of a CSV file, its titles first."""
    kinds = ("cycles", "bytes", "cores")
    yield ("operator", *(f"{kind}_{side}" for side in "ab" for kind in kinds), "change", "what")
    for row in rows:
        sides = (asdict(side) if side else dict[str, int]() for side in (row.a, row.b))
        yield (row.name, *(side.get(kind, "") for side in sides for kind in kinds), row.change, row.what)


def _change(a: OperatorReport | None, b: OperatorReport | None) -> Change:
    one = a or b
    assert one is not None
    what = ", ".join(_differences(a, b)) if a and b else "only in A" if a else "only in B"
    before, after = (each.cycles.total if each else 0 for each in (a, b))
    return Change(one.name, _side(a), _side(b), after - before, what)


def _side(operator: OperatorReport | None) -> Side | None:
    if operator is None:
        return None
    return Side(operator.cycles.total, operator.peak_bytes, operator.n_cores)


def _differences(a: OperatorReport, b: OperatorReport) -> Iterator[str]:
    """Yield what differs between two runs of an operator, besides its cycles in all and its memory."""
    for name, before, after in (
        ("points", a.n_points, b.n_points),
        ("cores", a.n_cores, b.n_cores),
        ("steps", a.n_sub_tasks, b.n_sub_tasks),
    ):
        if before != after:
            yield f"{name} {before:,} -> {after:,}"
    for kind in KINDS:
        change = int(getattr(b.cycles, kind)) - int(getattr(a.cycles, kind))
        if change:
            yield f"{kind} {change:+,}"
    if a.partials != b.partials:
        yield f"partials {a.partials or 'none'} -> {b.partials or 'none'}"
