"""What commands show: results on standard output, progress on standard error once something takes over two seconds."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

from rich.console import Console, ConsoleOptions
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from t10.core.document.text import json_text
from t10.driver import Progress as Report
from t10.errors import printable
from t10.report.columns import Column, FittedTable
from t10.report.console import PrintableConsole

FILE_COLUMNS = 120
"""Width of tables that go to a file or a pipe, where COLUMNS says no other."""

FURTHER = 2
"""Spaces by which the rest of a folded line is indented."""
QUIET_SECONDS = 2.0
"""Nothing is shown before this: what is done sooner needs no progress."""


class _Output(PrintableConsole):
    """A console that leaves it to the command what happens when the reader of its output is gone."""

    @property
    def options(self) -> ConsoleOptions:
        """Draw tables of ASCII in files and pipes: a line of a box takes three bytes per character otherwise."""
        options = super().options
        return options if self.is_terminal else replace(options, encoding="ascii")

    def on_broken_pipe(self) -> NoReturn:
        """Raise what rich would turn into an exit code of its own."""
        raise BrokenPipeError


def stdout(*, quiet: bool = False) -> Console:
    """Return the console for results: colours on a terminal only, and no guessing at numbers and names."""
    console = _Output(highlight=False, quiet=quiet, emoji=False)
    if not console.is_terminal:
        wide = os.environ.get("COLUMNS", "")
        console.width = int(wide) if wide.isascii() and wide.isdigit() and int(wide) > 0 else FILE_COLUMNS
    return console


def say(console: Console, text: str) -> None:
    """Print a sentence as it is: names may hold brackets, and a path must not be broken into lines."""
    console.print(text, soft_wrap=True, markup=False)


def say_folded(console: Console, text: Text) -> None:
    """Print lines; one that is longer than the console is wide goes on below, indented further than it begins."""
    for line in text.split("\n", allow_blank=True):
        indent = len(line.plain) - len(line.plain.lstrip()) + FURTHER
        if line.cell_len <= console.width or console.width < 2 * indent:
            console.print(line, soft_wrap=True)
            continue
        first, *others = line.wrap(console, console.width)
        console.print(first, soft_wrap=True)
        for each in others:
            each.rstrip()
        for more in Text(" ").join(others).wrap(console, console.width - indent):
            console.print(Text(" " * indent) + more, soft_wrap=True)


def say_json(console: Console, value: Any) -> None:
    """Print a value as JSON, and nothing else."""
    text = json_text(value).rstrip()
    say(console, "".join(each if printable(each) == each else json.dumps(each)[1:-1] for each in text))


def new_table(first: str | Column, *others: str | Column, title: str = "") -> FittedTable:
    """Return a table of names and, in the other columns, numbers; those of a narrow one are left out from the right.

    The first two columns stay; a `Column` says of itself what it is.
    """
    name = Column(first, is_folded=True, is_number=False) if isinstance(first, str) else first
    numbers = [
        Column(each, rank=place) if isinstance(each, str) else each for place, each in enumerate(others)
    ]
    return FittedTable((name, *numbers), title)


@contextmanager
def progress_bar(*, quiet: bool = False) -> Generator[Report]:
    """Yield a callback (stage, steps done, steps in all) that shows a bar where a person looks on."""
    console = PrintableConsole(stderr=True, emoji=False)
    if quiet or not console.is_terminal:
        yield _ignore
        return
    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    shown = _Delayed(bar)
    try:
        yield shown.report
    finally:
        bar.stop()


class _Delayed:
    """A progress bar that appears after `QUIET_SECONDS`."""

    def __init__(self, bar: Progress) -> None:
        self.bar = bar
        self.start = time.monotonic()
        self.task = bar.add_task("", total=None)
        self.stage = ""

    def report(self, stage: str, done: int, total: int) -> None:
        """Show that `done` of `total` steps of a stage are done."""
        if stage != self.stage:
            self.stage = stage
            self.bar.reset(self.task, description=stage, total=total)
        self.bar.update(self.task, completed=done, total=total if total > 1 else None)
        if time.monotonic() - self.start > QUIET_SECONDS and not self.bar.live.is_started:
            self.bar.start()


def _ignore(stage: str, done: int, total: int) -> None:
    del stage, done, total
