"""`t10 conformance --only 'grid/*'`: operator x element type x engine."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase

from t10.cli.arguments import Arguments
from t10.cli.terminal import new_table, progress_bar, say, stdout
from t10.conformance.grid.cases import load_grid, packs
from t10.conformance.grid.summary import by_case, defects, rows
from t10.conformance.known import KNOWN, read_known, stale, unknown
from t10.conformance.verdict import Verdict
from t10.conformance.workers import Limits, run_cases
from t10.errors import InputError
from t10.report.columns import Column
from t10.report.table import count_text

EXIT_DIFFERS = 1
EVERYTHING = "grid/*"


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

        verdicts = by_case(run_cases(packs(cases), Limits(), arguments.jobs, done))
    console = stdout(quiet=arguments.quiet)
    reason = Column("refused because", is_folded=True, is_number=False)
    types = Column("types", is_number=False)
    table = new_table("operator", types, "cases", "plan", "iss", "poplar-host", reason)
    for row in rows(verdicts):
        table.add_row(
            row.operator,
            row.types,
            str(row.n),
            str(row.plan),
            str(row.iss),
            f"{row.host} of {row.n_host}",
            row.reason[:80],
        )
    console.print(table)
    found, known = defects(verdicts), read_known()
    wrong = unknown(found, known)
    for defect in wrong:
        print(defect, file=sys.stderr)
    gone = (
        stale(found, [line for line in known if line.case.startswith(EVERYTHING[:-1])])
        if arguments.only == EVERYTHING
        else ()
    )
    for line in gone:
        print(f"{line.case} {line.engine} is right now: take it out of {KNOWN.name}", file=sys.stderr)
    n_inputs = sum(each.n_inputs for each in verdicts)
    counts = f"{count_text(len(wrong), 'unexplained difference')}, {len(found) - len(wrong)} known"
    told = f"{count_text(len(verdicts), 'case')}, {count_text(n_inputs, 'input')}: {counts}"
    if wrong or gone:
        print(f"t10: {told}", file=sys.stderr)
        return EXIT_DIFFERS
    say(console, told)
    return 0
