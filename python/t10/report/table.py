"""The report as tables for the terminal (rich), or as plain text."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from t10.report.columns import Column, FittedTable
from t10.report.console import PrintableConsole
from t10.report.rates import MEAN_RATE, OF_PEAK, UTILISATION

if TYPE_CHECKING:
    from t10.report.records import EnergyReport, OperatorReport, OptimalityReport, Report

PLAIN_WIDTH = 120
KINDS = ("compute", "shift", "reduce", "relayout", "setup", "wait")
KINDS_IN_TIME = ("wait", "setup", "relayout", "compute", "shift", "reduce")
"""The order in which an operator spends its cycles."""
COLOURS = {
    "compute": "green",
    "shift": "cyan",
    "reduce": "magenta",
    "relayout": "yellow",
    "setup": "blue",
    "wait": "red",
}
"""One colour per kind of cycles, on the terminal and in the plots."""

BAR_CELLS = 36
SMALLEST_GAP = 5e-6
AS_PINNED = "as pinned"
"""Of a plan that leaves no choice: how good it is says nothing."""
"""What is less is none when it is printed."""
MOST_SHOWN = 12
LEAST_SHARE = 0.005
JOULES = ("J", "mJ", "µJ", "nJ", "pJ")


def report_text(report: Report) -> str:
    """Return the summary and the table of all operators as plain text."""
    out = io.StringIO()
    console = PrintableConsole(
        file=out, width=PLAIN_WIDTH, color_system=None, legacy_windows=False, emoji=False
    )
    console.print(summary(report), operator_table(report.operators))
    return out.getvalue().rstrip()


def summary(report: Report) -> RenderableType:
    """Return the short form: what was compiled, how long it runs, where time and memory go."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    chip = report.chip
    table.add_row("model", f"{escape(report.model)} ({count_text(len(report.operators), 'operator')})")
    table.add_row("chip", f"{escape(chip.name)}: {chip.n_cores:,} cores, {chip.clock_hz / 1e9:g} GHz")
    table.add_row(
        "time",
        f"{time_text(report)}, {report.total_cycles:,} cycles {modelled(report)}",
    )
    if report.timed_cycles is not None:
        more = report.timed_cycles / max(report.total_cycles, 1) - 1
        text = f"{report.timed_cycles:,} cycles as emitted, on the device simulator ({more:+.2%})"
        if report.n_timed_on_data:
            where = count_text(report.n_timed_on_data, "operator")
            text = f"{text}; made-up data in {where} whose code branches on it"
        table.add_row("timed", text)
    table.add_row("", breakdown(report))
    if report.utilisation is not None:
        table.add_row(UTILISATION, f"{report.utilisation:.1%} of the fastest rate of the matrix engines")
    table.add_row(MEAN_RATE, f"{report.mean_rate:.2f}, into the busiest core, over all of the time")
    if report.optimality is not None:
        table.add_row("plan", optimality_text(report))
    sums = partials_text(report)
    if sums:
        table.add_row("partials", sums)
    share = report.peak_bytes / report.capacity_bytes if report.capacity_bytes else 0.0
    where = f", in {escape(report.peak_operator)}" if report.peak_operator else ""
    table.add_row(
        "memory",
        f"{bytes_text(report.peak_bytes)} of {bytes_text(report.capacity_bytes)} per core ({share:.0%}){where}",
    )
    table.add_row(
        "weights",
        f"{bytes_text(report.weight_bytes)} in all, idle {bytes_text(report.idle_bytes)} per core",
    )
    if report.energy is not None:
        table.add_row("energy", energy_text(report.energy))
    if report.planner_seconds:
        stages = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in report.planner_seconds.items())
        table.add_row("compiled in", f"{sum(report.planner_seconds.values()):.2f} s ({stages})")
    return table


def energy_text(energy: EnergyReport) -> str:
    """Return the energy of a run, and how much of it goes where."""
    parts = {kind: getattr(energy, kind) / energy.total for kind in type(energy).model_fields if energy.total}
    shares = ", ".join(
        f"{kind.replace('_', '-')} {'<1%' if share < LEAST_SHARE else f'{share:.0%}'}"
        for kind, share in parts.items()
        if share
    )
    return f"{joules_text(energy.total)} (modelled): {shares or 'none'}"


def joules_text(joules: float) -> str:
    """Return joules with three digits, in a unit that suits."""
    exponent = int(f"{joules:.2e}".partition("e")[2]) if joules else 0
    step = min(max(-(exponent // 3), 0), len(JOULES) - 1)
    scaled = joules * 1000**step
    return f"{scaled:,.0f} {JOULES[step]}" if scaled >= 999.5 else f"{scaled:.3g} {JOULES[step]}"


def breakdown(report: Report) -> RenderableType:
    """Return a bar of where the cycles go, and its legend."""
    total = max(report.total_cycles, 1)
    counts = {kind: int(getattr(report.cycles, kind)) for kind in KINDS}
    bar, legend = Text(), Text()
    done = 0
    for kind, count in counts.items():
        cells = round((done + count) / total * BAR_CELLS) - round(done / total * BAR_CELLS)
        done += count
        bar.append("█" * cells, style=COLOURS[kind])
        if count:
            legend.append("■ ", style=COLOURS[kind])
            legend.append(f"{kind} {count / total:.0%}  ")
    return Group(bar, legend)


OPERATOR_COLUMNS = (
    Column("operator", is_folded=True, is_number=False),
    Column("kind", rank=5, is_number=False),
    Column("cores", rank=2),
    Column("steps", rank=3),
    Column("cycles"),
    Column("share"),
    Column("compute", rank=1),
    Column("move", rank=1),
    Column("wait", rank=1),
    Column(MEAN_RATE, rank=4),
    Column(OF_PEAK, rank=4),
    Column("energy", rank=4),
    Column("KiB/core"),
    Column("plans", rank=6),
)


def operator_table(operators: Sequence[OperatorReport], title: str = "") -> FittedTable:
    """Return one row per operator.

    Rates are as in `t10.report.rates`, over the operator's time.
    Cycles that wait for off-chip memory, and energy, are shown where some operator has them.
    """
    has = {
        "energy": any(operator.energy is not None for operator in operators),
        "wait": any(operator.cycles.wait for operator in operators),
    }
    table = FittedTable(tuple(c for c in OPERATOR_COLUMNS if has.get(c.title, True)), title)
    for operator in operators:
        cycles = operator.cycles
        energy = (joules_text(operator.energy.total),) if operator.energy is not None else ()
        wait = (f"{cycles.wait:,}",) if has["wait"] else ()
        table.add_row(
            operator.name,
            operator.kind,
            f"{operator.n_cores:,}",
            f"{operator.n_sub_tasks:,}",
            f"{cycles.total:,}",
            f"{operator.share:.1%}",
            f"{cycles.compute:,}",
            f"{cycles.total - cycles.compute - cycles.wait:,}",
            *wait,
            f"{operator.mean_rate:.2f}",
            share_text(operator.utilisation),
            *energy,
            f"{operator.peak_bytes / 1024:.1f}",
            str(operator.n_plans),
        )
    return table


def share_text(share: float | None) -> str:
    """Return a part of the engines' peak, or nothing where there is none."""
    return "" if share is None else f"{share:.1%}"


def partials_text(report: Report) -> str:
    """Return in which types sums of f16 are kept; empty for a model that has none."""
    kept = [operator for operator in report.operators if operator.partials]
    narrow = [operator for operator in kept if operator.partials != "f32"]
    if not narrow:
        return "f32" if kept else ""
    others = f", f32 in {len(kept) - len(narrow):,}" if len(narrow) < len(kept) else ""
    return (
        f"{narrow[0].partials} in {len(narrow):,} of {len(kept):,} operators that sum f16{others}: "
        f"{error_text(max(operator.partials_error for operator in narrow))} at most"
    )


def error_text(error: float) -> str:
    """Return what a sum kept in f16 may be off by."""
    return f"off by {error:.1e} of |sum| + root of squares"


def optimality_text(report: Report) -> str:
    """Return how good a plan is known to be, as one sentence."""
    known = report.optimality
    assert known is not None
    if known.method == "pinned":
        return AS_PINNED
    if known.method == "greedy":
        text = "chosen by Algorithm 1"
    elif known.method == "fetched" and known.gap is not None:
        text = (
            f"weights are fetched from off-chip memory: no schedule of {count_text(known.n_states, 'state')} takes "
            f"fewer than {known.bound_cycles:,} cycles, {known.gap:.2%} less"
        )
    elif known.gap is None:
        text = "chosen together, without a bound"
    else:
        near = f"within {known.gap:.3%} of the optimum" if known.gap >= SMALLEST_GAP else "optimal"
        text = (
            f"{near} over {count_text(known.n_states, 'state')} of {count_text(len(report.operators), 'operator')}: "
            f"no choice takes fewer than {known.bound_cycles:,} cycles"
        )
    if known.priced_cycles and (known.literal_cycles or known.aware_cycles):
        text = f"{text}; {_algorithm_1_text(known)}"
    if known.n_choices > 1:
        text = f"{text}; the best of {known.n_choices} choices that were placed in memory"
    return text


def _algorithm_1_text(known: OptimalityReport) -> str:
    """Return what Algorithm 1's choices take more than the plan, all before placement, by what it calls fastest."""
    readings = (("fastest execution", known.literal_cycles), ("fastest with set-up", known.aware_cycles))
    more = [f"{cycles / known.priced_cycles - 1:+.2%} ({what})" for what, cycles in readings if cycles]
    return f"Algorithm 1, before placement in memory: {', '.join(more)}"


def count_text(n: int, thing: str) -> str:
    """Return how many things there are, in the singular where it is one."""
    return f"{n:,} {thing}" + ("" if n == 1 else "s")


def modelled(report: Report) -> str:
    """Return what stands beside cycles: that they are modelled, and by what."""
    return f"(modelled, {escape(report.cost_model)})"


def slowest_title(report: Report) -> str:
    """Return the title of the table of the slowest operators."""
    return f"Slowest kinds of operators (cycles are modelled, {escape(report.cost_model)})"


def cycles_line(by_kind: Mapping[str, int]) -> str:
    """Return cycles by kind as one line, those of no cycles left out."""
    return ", ".join(f"{kind} {by_kind[kind]:,}" for kind in KINDS if by_kind.get(kind))


def slowest(report: Report, n_shown: int = MOST_SHOWN) -> tuple[OperatorReport, ...]:
    """Return the operators that take most cycles, most first; those of one kind in one row, their cycles added."""
    groups: dict[str, list[OperatorReport]] = {}
    for operator in report.operators:
        groups.setdefault(operator.same_as or operator.name, []).append(operator)
    rows = [_added(group) for group in groups.values()]
    return tuple(sorted(rows, key=lambda row: -row.cycles.total)[:n_shown])


def _added(group: Sequence[OperatorReport]) -> OperatorReport:
    """Return one row for operators of one kind: cycles and shares added, the largest of what they hold."""
    first = group[0]
    if len(group) == 1:
        return first
    kinds = type(first.cycles).model_fields
    cycles = {kind: sum(getattr(operator.cycles, kind) for operator in group) for kind in kinds}
    traffic = {
        kind: sum(getattr(operator.traffic_bytes, kind) for operator in group)
        for kind in type(first.traffic_bytes).model_fields
    }
    return first.model_copy(
        update={
            "name": f"{first.name} (×{len(group)})",
            "cycles": type(first.cycles)(**cycles),
            "share": sum(operator.share for operator in group),
            "milliseconds": sum(operator.milliseconds for operator in group),
            "traffic_bytes": type(first.traffic_bytes)(**traffic),
            "energy": None if first.energy is None else first.energy.added(each.energy for each in group),
            "peak_bytes": max(operator.peak_bytes for operator in group),
        }
    )


def bytes_text(n_bytes: int) -> str:
    """Return a number of bytes with a binary unit: the smallest in which it is less than 1024 when it is rounded."""
    if n_bytes < 1 << 10:
        return f"{n_bytes} B"
    for unit, size in (("KiB", 1 << 10), ("MiB", 1 << 20)):
        if round(n_bytes / size, 1) < 1 << 10:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes / (1 << 30):.1f} GiB"


def milliseconds_text(milliseconds: float) -> str:
    """Return a time with a readable unit: the smallest in which it is less than 1000 when it is rounded."""
    microseconds, rounded = f"{milliseconds * 1000:.1f}", f"{milliseconds:.3f}"
    if float(microseconds) < 1000:
        return f"{microseconds} µs"
    return f"{rounded} ms" if float(rounded) < 1000 else f"{milliseconds / 1000:.3f} s"


def time_text(report: Report) -> str:
    """Return the modelled time; the record's milliseconds are rounded already, and rounding twice may go astray."""
    return milliseconds_text(report.total_cycles / report.chip.clock_hz * 1000)
