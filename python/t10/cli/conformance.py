"""`t10 conformance`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from rich.console import Console

from t10.cli.arguments import Arguments
from t10.cli.grid import run_grid
from t10.cli.terminal import new_table, progress_bar, say, stdout
from t10.conformance.cases import KINDS, load_cases
from t10.conformance.expectations import (
    Expectations,
    list_path,
    merged,
    read_expectations,
    reworded,
    write_expectations,
)
from t10.conformance.known import read_known, unexpected
from t10.conformance.measured import FILE_NAME, read_measured
from t10.conformance.summary import COLUMNS, counts_by_kind, reasons
from t10.conformance.verdict import Verdict
from t10.conformance.workers import Limits, run_cases
from t10.errors import InputError
from t10.report.columns import Column
from t10.report.table import count_text

EXIT_DIFFERS = 1
QUICK_KINDS = KINDS[:-1]
MOST_REASONS = 25
MOST_NAMED = 5


def run_conformance(arguments: Arguments) -> int:
    """Run the tests that are asked for; return 1 if any gives what is not expected. `--summary` runs none."""
    if arguments.only.startswith("grid/"):
        return run_grid(arguments)
    listed = list_path(arguments.expectations)
    expected = read_expectations(listed)
    if arguments.summary:
        found = tuple(v for v in expected.verdict_by_name.values() if _is_wanted(v.name, arguments.only))
        console = stdout(quiet=arguments.quiet)
        _show(console, found)
        if not arguments.only:
            _show_measured(console, listed.with_name(FILE_NAME))
        return 0
    kinds = (arguments.only.partition("/")[0],) if arguments.only.partition("/")[0] in KINDS else QUICK_KINDS
    cases = tuple(case for case in load_cases(kinds) if _is_wanted(case.name, arguments.only))
    if not cases:
        raise InputError(
            f"--only {arguments.only}: no test has such a name", hint=f"kinds are {', '.join(KINDS)}"
        )
    with progress_bar(quiet=arguments.quiet) as progress:

        def done(verdict: Verdict, n_done: int, n_all: int) -> None:
            del verdict
            progress("conformance", n_done, n_all)

        verdicts = run_cases(cases, Limits(), arguments.jobs, done)
    _show(stdout(quiet=arguments.quiet), verdicts)
    if arguments.update:
        write_expectations(merged(verdicts, expected), listed)
        expected = read_expectations(listed)
    return _judge(verdicts, expected, arguments)


def _judge(verdicts: Sequence[Verdict], expected: Expectations, arguments: Arguments) -> int:
    differing = unexpected(verdicts, expected, read_known())
    others = reworded(verdicts, expected)
    if others:
        listed = ", ".join(others[:MOST_NAMED]) + (", ..." if len(others) > MOST_NAMED else "")
        print(
            f"t10: {len(others)} are refused in other words than the list has (--update takes them over): {listed}",
            file=sys.stderr,
        )
    for line in differing:
        print(line, file=sys.stderr)
    if differing:
        print(f"t10: {count_text(len(differing), 'test')} with an unexpected verdict", file=sys.stderr)
        return EXIT_DIFFERS
    say(stdout(quiet=arguments.quiet), f"{count_text(len(verdicts), 'test')} with the expected verdict")
    return 0


def _is_wanted(name: str, only: str) -> bool:
    """Return whether a name, or the part behind its kind, fits a pattern."""
    return not only or fnmatchcase(name, only) or fnmatchcase(name.partition("/")[2], only)


def _show_measured(console: Console, path: Path) -> None:
    """Print the counts that other commands have recorded."""
    recorded = read_measured(path)
    if not recorded:
        return
    table = new_table("recorded of", *COLUMNS)
    for each in recorded:
        table.add_row(each.what, *map(str, each.row))
    console.print(table)
    for each in recorded:
        apart = "".join(f"; {n} {what}" for what, n in each.apart.items())
        say(console, f"{each.what}: {each.command}{apart}")


def _show(console: Console, verdicts: Sequence[Verdict]) -> None:
    columns = (*COLUMNS, "on tiles")
    table = new_table("tests of", *columns)
    for kind, row in counts_by_kind(verdicts).items():
        table.add_row(kind, *(str(row[column]) for column in columns))
    console.print(table)
    why = new_table(Column("n"), Column("reason", is_folded=True, is_number=False))
    for reason, count in reasons(verdicts)[:MOST_REASONS]:
        why.add_row(str(count), reason)
    if why.rows:
        console.print(why)
