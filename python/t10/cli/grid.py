"""`t10 conformance --only 'grid/*'`: operator x element type x engine."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase

from t10.cli.arguments import Arguments
from t10.cli.terminal import new_table, progress_bar, say, stdout
from t10.conformance.grid.cases import load_grid
from t10.conformance.grid.summary import defects, rows
from t10.conformance.verdict import Verdict
from t10.conformance.workers import Limits, run_cases
from t10.errors import InputError

EXIT_DIFFERS = 1


def run_grid(arguments: Arguments) -> int:
    """Run the cases that are asked for; return 1 if an engine computes anything but what the references do."""
    cases = tuple(case for case in load_grid() if fnmatchcase(case.name, arguments.only))
    if not cases:
        raise InputError(
            f"--only {arguments.only}: no case has such a name", hint="grid/OPERATOR/TYPES/SHAPE"
        )
    with progress_bar(quiet=arguments.quiet) as progress:

        def done(verdict: Verdict, n_done: int, n_all: int) -> None:
            del verdict
            progress("conformance", n_done, n_all)

        verdicts = run_cases(cases, Limits(), arguments.jobs, done)
    console = stdout(quiet=arguments.quiet)
    table = new_table("operator", "types", "cases", "plan", "iss", "refused because")
    for row in rows(verdicts):
        table.add_row(row.operator, row.types, str(row.n), str(row.plan), str(row.iss), row.reason[:80])
    console.print(table)
    wrong = defects(verdicts)
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print(f"t10: {len(wrong)} differences of {len(verdicts)} cases", file=sys.stderr)
        return EXIT_DIFFERS
    say(console, f"{len(verdicts)} cases give what the references give, or are refused")
    return 0
