"""Tables for the terminal: no number is cut off. Where it is narrow, columns are left out, least important first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

NAME_COLUMNS = 16
"""Least width of a column whose text is folded."""
AROUND = 3
"""Characters that a column takes beside its text: a border and two spaces."""

Cell = str | Text
"""A plain text, or one with a style."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `is_folded` breaks long texts into lines; of `rank` above 0 it may be left out, the highest first."""

    title: str
    rank: int = 0
    is_folded: bool = False
    is_number: bool = True


@dataclass(slots=True)
class FittedTable:
    """A table that is made when its width is known: no cell is cut off.

    If the columns that may not be left out need more, the table is wider than the terminal.
    """

    columns: tuple[Column, ...]
    title: str = ""
    rows: list[tuple[tuple[Cell, ...], str]] = field(default_factory=list[tuple[tuple[Cell, ...], str]])
    sections: set[int] = field(default_factory=set[int])

    def add_row(self, *cells: Cell, style: str = "") -> None:
        """Add a row."""
        self.rows.append((cells, style))

    def add_section(self) -> None:
        """Draw a line between the last row and the next."""
        self.sections.add(len(self.rows))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[RenderableType]:
        """Yield the table as wide as there is room, and what it leaves out."""
        shown = self.shown(options.max_width)
        table = Table(title=escape(self.title) or None, title_justify="left", header_style="bold")
        for number in shown:
            column = self.columns[number]
            table.add_column(
                escape(column.title),
                justify="right" if column.is_number else "left",
                no_wrap=not column.is_folded,
                overflow="fold",
            )
        for place, (cells, style) in enumerate(self.rows):
            if place in self.sections:
                table.add_section()
            present = (cells[number] if number < len(cells) else "" for number in shown)
            table.add_row(*(escape(c) if isinstance(c, str) else c for c in present), style=style)
        width = max(options.max_width, self._needed(shown))
        yield from console.render(table, options.update(width=width))  # pyright: ignore[reportReturnType] - rich takes segments, too
        left = [column.title for number, column in enumerate(self.columns) if number not in shown]
        if left:
            yield Text(f"left out, for a width of {options.max_width}: {', '.join(left)}", style="dim")

    def shown(self, width: int) -> tuple[int, ...]:
        """Return the numbers of the columns that fit a width; those of rank 0 in any case."""
        shown = list(range(len(self.columns)))
        for number in sorted(shown, key=lambda each: (-self.columns[each].rank, -each)):
            if self.columns[number].rank == 0 or self._needed(shown) <= width:
                break
            shown.remove(number)
        return tuple(shown)

    def _needed(self, shown: Sequence[int]) -> int:
        """Return the width that columns need, borders included."""
        return sum(self._width(number) + AROUND for number in shown) + 1

    def _width(self, number: int) -> int:
        """Return the width that a column needs: of its longest text, or a little where texts are folded."""
        cells = (row[number] for row, _ in self.rows if number < len(row))
        texts = (self.columns[number].title, *(c if isinstance(c, str) else c.plain for c in cells))
        longest = max(cell_len(text) for text in texts)
        return min(longest, NAME_COLUMNS) if self.columns[number].is_folded else longest
