"""Tables that fit the terminal: where it is narrow, columns are left out, least important first, and said to be."""

from __future__ import annotations

from collections.abc import Iterable
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


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `is_folded` breaks long texts into lines; of `rank` above 0 it may be left out, the highest first."""

    title: str
    rank: int = 0
    is_folded: bool = False
    is_number: bool = True


@dataclass(slots=True)
class FittedTable:
    """A table that is made when its width is known: no cell is cut off."""

    columns: tuple[Column, ...]
    title: str = ""
    rows: list[tuple[tuple[str, ...], str]] = field(default_factory=list[tuple[tuple[str, ...], str]])

    def add_row(self, *cells: str, style: str = "") -> None:
        """Add a row of plain texts."""
        self.rows.append((cells, style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterable[RenderableType]:
        """Yield the table as wide as there is room, and what it leaves out."""
        del console
        shown = self.shown(options.max_width)
        table = Table(title=escape(self.title) or None, title_justify="left", header_style="bold")
        for number in shown:
            column = self.columns[number]
            table.add_column(
                column.title,
                justify="right" if column.is_number else "left",
                no_wrap=not column.is_folded,
                overflow="fold",
            )
        for cells, style in self.rows:
            table.add_row(*(escape(cells[number]) for number in shown), style=style)
        yield table
        left = [column.title for number, column in enumerate(self.columns) if number not in shown]
        if left:
            yield Text(f"left out, for a width of {options.max_width}: {', '.join(left)}", style="dim")

    def shown(self, width: int) -> tuple[int, ...]:
        """Return the numbers of the columns that fit a width."""
        shown = list(range(len(self.columns)))
        widths = [self._width(number) for number in shown]
        for number in sorted(shown, key=lambda each: (-self.columns[each].rank, -each)):
            if self.columns[number].rank == 0 or sum(widths[each] + AROUND for each in shown) < width:
                break
            shown.remove(number)
        return tuple(shown)

    def _width(self, number: int) -> int:
        """Return the width that a column needs: of its longest text, or a little where texts are folded."""
        texts = (self.columns[number].title, *(cells[number] for cells, _ in self.rows))
        longest = max(cell_len(text) for text in texts)
        return min(longest, NAME_COLUMNS) if self.columns[number].is_folded else longest
