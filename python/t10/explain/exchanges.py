"""Exchanges of a device program as text: which tiles send what to which, equal pieces in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from t10.core.device import Copy, DeviceProgram, Exchange, Pattern, Repeat, Step
from t10.report.table import count_text

MOST_LINES = 12
"""Lines of one exchange, unless all are asked for."""
COUNTED_WITH = {"shift": "shift", "copy_out": "shift", "reduce": "reduce"}
"""Kinds of exchanges that may have no cycles of their own, because they share the time of an earlier one of a kind."""

Pair = tuple[int, int]


def exchange_lines(program: DeviceProgram, operator: str | None = None) -> Iterator[str]:
    """Yield every exchange, in the order they first happen; of one operator, with all lines of its pattern."""
    patterns = {pattern.key: pattern for pattern in program.patterns}
    copies = {copy.name: copy for copy in program.copies}
    counts: dict[str, int] = {}
    for one in program.operators:
        _count(one.steps, 1, counts)
    if operator is not None and all(copies[name].operator != operator for name in counts):
        yield f"{operator} has no exchanges."
        return
    yield "A line: tiles that receive from tiles that send, in order: bytes, source variable + offset -> target offset."
    counted: dict[tuple[str, str], str] = {}
    for name, count in counts.items():
        copy = copies[name]
        kind = COUNTED_WITH.get(copy.kind, copy.kind)
        if copy.cycles:
            counted[copy.operator, copy.kind] = name
        if operator not in (None, copy.operator):
            continue
        costs = _costs(copy, patterns[copy.pattern], counted.get((copy.operator, kind)))
        times = "once" if count == 1 else f"{count:,} times"
        yield ""
        yield f"{name}: {copy.kind} of {copy.operator}, {times}, {costs}"
        yield f"  {', '.join(copy.sources) or 'constants'} -> {copy.target}, {copy.dtype}"
        lines = list(_pattern_lines(copy, patterns[copy.pattern]))
        shown = lines if operator is not None else lines[:MOST_LINES]
        yield from shown
        if len(shown) < len(lines):
            yield f"  ... {count_text(len(lines) - len(shown), 'more line')}: --op {copy.operator}"


def _costs(copy: Copy, pattern: Pattern, counted: str | None) -> str:
    """Return what an exchange costs and moves; one without cycles may have them with one that was `counted` before."""
    is_counted_elsewhere = copy.cycles == 0 and counted is not None and copy.kind in COUNTED_WITH
    cycles = (
        f"cycles counted with {counted}" if is_counted_elsewhere else f"{copy.cycles:,} modelled cycles each"
    )
    if copy.received_bytes:
        return f"{cycles}; a tile receives {copy.received_bytes:,} bytes at most"
    by_tile: dict[int, int] = {}
    runs: list[list[int]] = pattern.runs.tolist()
    for _, _, _, tile, _, n_bytes, count, *_ in runs:
        by_tile[tile] = by_tile.get(tile, 0) + n_bytes * count
    return f"{cycles}; a tile copies {max(by_tile.values(), default=0):,} bytes of its own at most"


def _count(steps: Sequence[Step], times: int, counts: dict[str, int]) -> None:
    """Add how often each exchange happens."""
    for step in steps:
        if isinstance(step, Exchange):
            counts[step.copy] = counts.get(step.copy, 0) + times
        elif isinstance(step, Repeat):
            _count(step.body, times * step.count, counts)


def _pattern_lines(copy: Copy, pattern: Pattern) -> Iterator[str]:
    """Yield what tiles send; pieces that differ in their tiles only are one line if the tiles follow each other."""
    pairs: dict[tuple[int, ...], list[Pair]] = {}
    runs: list[list[int]] = pattern.runs.tolist()
    for source, source_tile, source_offset, target_tile, *rest in runs:
        pairs.setdefault((source, source_offset, *rest), []).append((target_tile, source_tile))
    for (source, offset, to, n_bytes, count, step, to_step), tiles in pairs.items():
        what = f"{n_bytes:,} bytes" if count == 1 else f"{count:,} x {n_bytes:,} bytes"
        steps = "" if count == 1 else f" (every {step:,} -> every {to_step:,})"
        for first, last in _ranges(sorted(tiles)):
            receive, send = _tiles(first[0], last[0]), _tiles(first[1], last[1])
            if receive == send:
                send = "itself" if first == last else "themselves"
            yield f"  {receive} from {send}: {what}, {copy.sources[source]} + {offset:,} -> {to:,}{steps}"
    fills: list[list[int]] = pattern.fills.tolist()
    values: list[int] = pattern.fill_values.tolist()
    constants: dict[tuple[int, ...], list[Pair]] = {}
    for (tile, *rest), value in zip(fills, values, strict=True):
        constants.setdefault((value, *rest), []).append((tile, tile))
    for (value, offset, n_bytes, count, step), tiles in constants.items():
        what = f"{n_bytes:,} bytes" if count == 1 else f"{count:,} x {n_bytes:,} bytes every {step:,}"
        for first, last in _ranges(sorted(tiles)):
            yield f"  {_tiles(first[0], last[0])} filled with {pattern.constants[value]}: {what} -> {offset:,}"


def _ranges(pairs: list[Pair]) -> Iterator[tuple[Pair, Pair]]:
    """Yield first and last of receiving and sending tiles, one apart; or received from one tile by all of a range."""
    begin = 0
    while begin < len(pairs):
        end = begin + 1
        if end < len(pairs):
            step = pairs[end][1] - pairs[begin][1]
            while (
                step in (0, 1)
                and end < len(pairs)
                and pairs[end] == (pairs[end - 1][0] + 1, pairs[end - 1][1] + step)
            ):
                end += 1
        yield pairs[begin], pairs[end - 1]
        begin = end


def _tiles(first: int, last: int) -> str:
    return f"tile {first}" if first == last else f"tiles {first}..{last}"
