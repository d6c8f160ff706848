"""Tables for the terminal: no number is cut off. Where it is narrow, columns are left out, least important first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from textwrap import wrap

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

NAME_COLUMNS = 16
"""Least width of a column whose text is folded."""
LEAST_NAME_COLUMNS = 4
"""The same where there is too little room for the other columns."""
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

    Where it is narrow, titles take several lines, columns are left out, and names are folded more. If the first two of
    the columns that may not be left out need more, the table is wider than the terminal.
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
        is_tall, folded = self._is_tall(options.max_width), self._folded(shown, options.max_width)
        table = Table(title=escape(self.title) or None, title_justify="left", header_style="bold")
        for number in shown:
            column = self.columns[number]
            table.add_column(
                escape(self._title(number, is_tall=is_tall)),
                justify="right" if column.is_number else "left",
                no_wrap=not column.is_folded,
                overflow="fold",
            )
        for place, (cells, style) in enumerate(self.rows):
            if place in self.sections:
                table.add_section()
            present = (cells[number] if number < len(cells) else "" for number in shown)
            table.add_row(*(escape(c) if isinstance(c, str) else c for c in present), style=style)
        width = max(options.max_width, self._needed(shown, is_tall=is_tall, folded=folded))
        yield from console.render(table, options.update(width=width))  # pyright: ignore[reportReturnType] - rich takes segments, too
        left = [column.title for number, column in enumerate(self.columns) if number not in shown]
        if left:
            yield Text(f"left out, for a width of {options.max_width}: {', '.join(left)}", style="dim")

    def shown(self, width: int) -> tuple[int, ...]:
        """Return the numbers of the columns that fit a width; the first two of rank 0 in any case."""
        shown, is_tall = list(range(len(self.columns))), self._is_tall(width)
        stays = [number for number in shown if self.columns[number].rank == 0][:2]
        for number in sorted(set(shown) - set(stays), key=lambda each: (-self.columns[each].rank, -each)):
            folded = NAME_COLUMNS if self.columns[number].rank else LEAST_NAME_COLUMNS
            if self._needed(shown, is_tall=is_tall, folded=folded) <= width:
                break
            shown.remove(number)
        return tuple(shown)

    def _folded(self, shown: Sequence[int], width: int) -> int:
        """Return the least width of a folded column with which the columns fit, if any does."""
        is_tall, least = self._is_tall(width), LEAST_NAME_COLUMNS
        widths = range(NAME_COLUMNS, least, -1)
        return next((n for n in widths if self._needed(shown, is_tall=is_tall, folded=n) <= width), least)

    def _is_tall(self, width: int) -> bool:
        """Return whether titles take several lines: in one line each, columns need more than the width."""
        return self._needed(range(len(self.columns)), is_tall=False) > width

    def _needed(self, shown: Sequence[int], *, is_tall: bool, folded: int = NAME_COLUMNS) -> int:
        """Return the width that columns need, borders included."""
        return sum(self._width(number, is_tall=is_tall, folded=folded) + AROUND for number in shown) + 1

    def _width(self, number: int, *, is_tall: bool, folded: int) -> int:
        """Return the width that a column needs: of its longest text, or a little where texts are folded."""
        title = self._title(number, is_tall=is_tall).split("\n")
        longest = max(self._longest(number), *map(cell_len, title))
        return min(longest, folded) if self.columns[number].is_folded else longest

    def _title(self, number: int, *, is_tall: bool) -> str:
        """Return the title of a column, in lines no longer than its texts where it `is_tall`."""
        title = self.columns[number].title
        width = max(self._longest(number), *map(cell_len, title.split() or ("",)), 1)
        return "\n".join(wrap(title, width, break_on_hyphens=False)) if is_tall else title

    def _longest(self, number: int) -> int:
        """Return the width of the longest text of a column below its title."""
        cells = (row[number] for row, _ in self.rows if number < len(row))
        return max((cell_len(each if isinstance(each, str) else each.plain) for each in cells), default=0)
