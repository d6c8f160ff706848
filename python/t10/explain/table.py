"""An explanation for the terminal (rich): loops, who holds what, why this plan, its front, what moves, what is held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from t10.explain.choice import Choice, Held, Moved
from t10.explain.explanation import Explanation
from t10.explain.front import FrontPoint, cuts_text
from t10.explain.holdings import MOST_DRAWN, MOST_IN_RING, Holding
from t10.report.columns import Column, FittedTable
from t10.report.table import COLOURS, bytes_text, error_text

MOST_COLUMNS = 8
MOST_HELD = 8
AROUND = 4
"""Plans of a front shown on each side of the chosen one, besides both ends."""


def explanation_parts(explained: Explanation) -> Iterator[RenderableType]:
    """Yield what is printed of an explanation, from top to bottom."""
    note = f"(modelled, {explained.cost_model})"
    where = f" at {explained.location}" if explained.location else ""
    yield Text(f"{explained.operator}: {explained.kind}{where}, on {explained.chip}", style="bold")
    yield Text(explained.formula)
    if explained.partials:
        error = f": {error_text(explained.partials_error)} at most" if explained.partials_error else ""
        yield Text(f"{explained.partials} partials{error}")
    yield Text(f"{explained.cycles['total']:,} cycles {note}")
    yield Text("\n" + explained.nest)
    yield Text("")
    yield holdings_table(explained.holdings)
    for holding in explained.holdings:
        drawn = _drawn(explained, holding)
        if drawn is not None:
            yield drawn
    yield Text("\nWhy this plan", style="bold")
    yield from (Text(f"  - {reason}") for reason in explained.choice.reasons)
    yield _shares(explained.choice)
    yield front_table(explained.front, _front_title(explained, note))
    yield _moves(explained.choice.moved_in, "What it reads", "from")
    yield _moves(explained.choice.moved_out, "Who reads it", "by")
    yield _memory(explained.choice)


def _front_title(explained: Explanation, note: str) -> str:
    """Return what the table of the front says; its costs are those of the search, not of the operator's neighbours."""
    title = f"Its front: costs of the operator alone, without bank conflicts {note}"
    is_on = any(point.number for point in explained.front if point.is_chosen)
    return title if is_on else f"{title}; * is not on the front"


HOLDING_COLUMNS = (
    Column("tensor", is_folded=True, is_number=False),
    Column("use", rank=6, is_number=False),
    Column("type", rank=8, is_number=False),
    Column("sub-tensors", rank=5),
    Column("cores/ring", rank=3),
    Column("rings", rank=7),
    Column("replicas", rank=4),
    Column("partition", rank=2),
    Column("B/core"),
)
FRONT_COLUMNS = (
    Column("", is_number=False),
    Column("cycles"),
    Column("compute", rank=3),
    Column("shift", rank=1),
    Column("reduce", rank=5),
    Column("fetch", rank=4),
    Column("B/core"),
    Column("cores", rank=6),
    Column("steps", rank=2),
    Column("cut in space | in time", is_folded=True, is_number=False),
)

MOVE_COLUMNS = (
    Column("tensor", rank=2, is_folded=True, is_number=False),
    Column("how", rank=1, is_number=False),
    Column("B received", rank=1),
    Column("runs", rank=3),
    Column("cycles"),
)


def holdings_table(holdings: Sequence[Holding]) -> FittedTable:
    """Return one row per tensor: how many pieces there are, and how they turn."""
    table = FittedTable(HOLDING_COLUMNS, "Tensors at step 0")
    for each in holdings:
        counts = (each.sub_tensors, each.ring, each.rings, each.replicas)
        partition = "x".join(map(str, each.partition)) or "1"
        numbers = (f"{n:,}" for n in counts)
        table.add_row(each.name, each.use, each.dtype, *numbers, partition, f"{each.n_bytes:,}")
    return table


def front_table(
    points: Sequence[FrontPoint], title: str, *, whole: bool = False, around: int = AROUND
) -> FittedTable:
    """Return one row per plan of a front, the chosen one marked.

    Unless `whole`, plans other than both ends and `around` plans on either side of the chosen one are left out.
    """
    table = FittedTable(FRONT_COLUMNS, title)
    shown = set(range(len(points))) if whole else _shown(points, around)
    for is_shown, group in groupby(range(len(points)), key=lambda i: i in shown):
        rows = list(group)
        if not is_shown:
            table.add_row("", *[""] * 8, f"... {len(rows)} more")
            continue
        for i in rows:
            table.add_row(*_front_row(points[i]), style="bold" if points[i].is_chosen else "")
    return table


def _front_row(point: FrontPoint) -> tuple[str, ...]:
    counts = (
        point.cycles, point.compute_cycles, point.shift_cycles, point.reduce_cycles, point.fetch_cycles,
        point.active_bytes, point.n_cores, point.n_sub_tasks,
    )  # fmt: skip
    mark = "*" if point.is_chosen else " "
    return (f"{mark}{point.number or ''}", *(f"{count:,}" for count in counts), cuts_text(point))


def _shown(points: Sequence[FrontPoint], around: int) -> set[int]:
    """Return the plans worth a row: both ends and those around the chosen one."""
    chosen = [i for i, point in enumerate(points) if point.is_chosen]
    near = {i + d for i in chosen for d in range(-around, around + 1)}
    return {i for i in (near | {0, len(points) - 1}) if 0 <= i < len(points)}


def _drawn(explained: Explanation, holding: Holding) -> RenderableType | None:
    """Return who holds what of a tensor: core by core where they are few, else along its first ring."""
    if not any(holding.parts):
        return None
    if len(holding.parts) <= MOST_DRAWN:
        grid = _grid(explained, holding)
        if grid is not None:
            return grid
    if holding.ring < 2:
        return None
    ring = holding.first_ring[:MOST_IN_RING]
    more = " > ..." if len(holding.first_ring) > MOST_IN_RING else ""
    text = " > ".join(f"core {core} ({holding.parts[core]})" for core in ring)
    return Text(f"{holding.name}, its first ring: {text}{more}")


def _grid(explained: Explanation, holding: Holding) -> FittedTable | None:
    """Return the cores as a grid over the axes that matter, the last one across; None where it is too wide."""
    names = list(explained.axes)
    part_by_core = dict(zip(explained.coordinates, holding.parts, strict=True))
    kept = [i for i in range(len(names)) if _matters(i, part_by_core)]
    if not kept or explained.axes[names[kept[-1]]] > MOST_COLUMNS:
        return None
    cells = {tuple(core[i] for i in kept): part for core, part in part_by_core.items()}
    same = [name for i, name in enumerate(names) if i not in kept]
    turns = f", passed on around rings of {holding.ring}" if holding.ring > 1 else ""
    copies = f"; the same for every {', '.join(same)}" if same else ""
    *down, across = (names[i] for i in kept)
    places = range(explained.axes[across])
    columns = (Column(f"{across} = {i}", rank=i, is_number=False) for i in places)
    title = f"{holding.name}: who holds what{turns}{copies}"
    table = FittedTable((Column("", is_number=False), *columns), title)
    for row in sorted({each[:-1] for each in cells}):
        head = ", ".join(f"{name} = {value}" for name, value in zip(down, row, strict=True))
        table.add_row(head, *(cells[(*row, i)] for i in places))
    return table


def _matters(axis: int, part_by_core: Mapping[tuple[int, ...], str]) -> bool:
    """Return whether what a core holds depends on its place along an axis."""
    return any(
        part != part_by_core[(*core[:axis], 0, *core[axis + 1 :])] for core, part in part_by_core.items()
    )


def _shares(choice: Choice) -> Text:
    """Return where the operator's cycles go, as one line."""
    text = Text("  ")
    for kind, share in choice.shares.items():
        if share:
            text.append("■ ", style=COLOURS[kind])
            text.append(f"{kind} {share:.0%}  ")
    return text


def _moves(moved: Sequence[Moved], title: str, what: str) -> RenderableType:
    if not moved:
        return Text(f"{title}: nobody" if what == "by" else f"{title}: nothing")
    who = Column(what, is_folded=True, is_number=False)
    table = FittedTable((who, *MOVE_COLUMNS), title)
    for each in moved:
        other = each.source if what == "from" else each.reader
        counts = (each.received_bytes, each.fragments, each.cycles)
        table.add_row(other, each.operand, each.kind, *(f"{n:,}" for n in counts))
    return table


def _memory(choice: Choice) -> FittedTable:
    """Return what lies in a core's memory meanwhile."""
    columns = (Column("buffer", is_folded=True, is_number=False), Column("bytes"))
    title = "In every core's memory while it runs"
    held = sum(each.n_bytes for each in choice.held) + choice.reserved_bytes + choice.free_bytes
    table = FittedTable(columns, title if held == choice.capacity_bytes else f"{title}, not all at once")
    own = [each for each in choice.held if each.is_own]
    others = [each for each in choice.held if not each.is_own]
    for each in (*own, *others[:MOST_HELD]):
        table.add_row(each.buffer, f"{each.n_bytes:,}")
    if len(others) > MOST_HELD:
        rest: Sequence[Held] = others[MOST_HELD:]
        table.add_row(f"{len(rest)} more of other operators", f"{sum(each.n_bytes for each in rest):,}")
    table.add_row("code and stacks", f"{choice.reserved_bytes:,}")
    table.add_row("free", f"{choice.free_bytes:,} ({bytes_text(max(choice.free_bytes, 0))})")
    return table
