"""A bar: a number that was asked for, the value that was found, and whether it is enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["measured", "modelled", "computed"]
"""`measured`: wall time here; `modelled`: cycles of a cost model; `computed`: bytes, counts and ratios of plans."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of the verdict. `value` is None where nothing could be found, and `note` then says why."""

    section: str
    name: str
    value: float | None
    unit: str
    limit: float
    sense: Literal["<=", ">="]
    kind: Kind
    note: str = ""

    @property
    def is_met(self) -> bool:
        """Return whether the value is on the right side of the limit."""
        if self.value is None:
            return False
        return self.value <= self.limit if self.sense == "<=" else self.value >= self.limit

    @property
    def verdict(self) -> str:
        """Return `ok` or `MISSED`."""
        return "ok" if self.is_met else "MISSED"

    def record(self) -> dict[str, object]:
        """Return the bar as plain data."""
        return {
            "section": self.section,
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "bar": f"{self.sense} {self.limit:g}",
            "kind": self.kind,
            "verdict": self.verdict,
            "note": self.note,
        }


def number(value: float | None) -> str:
    """Return a value as the tables show it."""
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def bar_lines(bars: list[Bar]) -> list[str]:
    """Return the table of bars, one line each, with a heading."""
    width = max((len(bar.name) for bar in bars), default=0)
    lines = [f"{'bar':<{width}}  {'value':>12} {'':<9} {'limit':>14}  {'kind':<8} verdict"]
    for bar in bars:
        note = f"  ({bar.note})" if bar.note else ""
        limit = f"{bar.sense} {number(bar.limit)}"
        lines.append(
            f"{bar.name:<{width}}  {number(bar.value):>12} {bar.unit:<9} {limit:>14}  {bar.kind:<8} {bar.verdict}{note}"
        )
    return lines


def table_lines(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """Return a table with its columns aligned: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in (headings, *rows)) for i in range(len(headings))]
    return [
        "  ".join(text.ljust(widths[0]) if i == 0 else text.rjust(widths[i]) for i, text in enumerate(row))
        for row in (headings, *rows)
    ]


def seconds(value: float) -> str:
    """Return wall time for a table."""
    return f"{value:.2f}"


def percent(value: float | None) -> str:
    """Return a part of one as a percentage."""
    return "-" if value is None else f"{100 * value:.3f} %"
