"""`t10 compare A B`: what changed from one compiled model to another."""

from __future__ import annotations

import sys
from pathlib import Path

from t10.artefact import Folder
from t10.cli.arguments import Arguments
from t10.cli.compare_file import CSV, HTML, csv_of, form_of
from t10.cli.options import check_single
from t10.cli.terminal import say, say_json, stdout
from t10.core.atomic import check_writable, write_text
from t10.core.document import read_document
from t10.driver import PLAN_FILE, REPORT_FILE
from t10.errors import printable
from t10.explain.placement import Placed, reasons_of_same_plans
from t10.report import Report, read_report
from t10.report.compare import change_cells, change_records, changes, compare_table, page_record, totals


def compare_runs(arguments: Arguments) -> int:
    """Print what changed from one compiled model to another: totals, then operators, largest change first."""
    folder, other = arguments.model, arguments.other
    assert other is not None
    form = form_of(arguments.output, HTML, CSV)
    check_writable(arguments.output)
    opened = Folder.open(folder), Folder.open(other)
    a, b = map(_report, opened)
    rows = changes(a, b)
    if any(row.change for row in rows):
        rows = changes(a, b, _why(*opened))
    _warn_of_other_models(a, b)
    console = stdout(quiet=arguments.quiet)
    heads = [f"A: {_name(a, folder)}", f"B: {_name(b, other)}"]
    if arguments.output is not None and form == CSV:
        write_text(arguments.output, csv_of(change_cells(rows)))
    elif arguments.output is not None:
        from t10.report.analyser.page import compare_page

        title = f"{a.model}: two runs compared"
        note = f"{'; '.join(heads)}. {a.statement}"
        write_text(arguments.output, compare_page(title, note, totals(a, b), page_record(a, b, rows)))
    if arguments.as_json:
        head = {"format": "t10-comparison", "version": 1, "modelled": True}
        both = {
            side: {"folder": str(folder), "chip": report.chip.name, "cycles": report.total_cycles}
            for side, folder, report in (("a", folder, a), ("b", other, b))
        }
        say_json(console, {**head, **both, "operators": change_records(rows)})
        return 0
    for head in heads:
        say(console, head)
    for name, text in totals(a, b):
        say(console, f"{name:<14} {text}")
    changed = sorted((row for row in rows if row.change or row.what), key=lambda row: -abs(row.change))
    shown = changed if arguments.rows is None else changed[: arguments.rows]
    if changed:
        title = f"{len(changed):,} of {len(rows):,} operators changed"
        title += f", {len(shown):,} shown" if len(shown) < len(changed) else ""
        if shown:
            console.print(compare_table(tuple(shown), f"{title}, largest change first (modelled cycles)"))
        else:
            say(console, f"{len(changed):,} of {len(rows):,} operators changed (--rows 0: none is shown)")
    else:
        say(console, f"all {len(rows):,} operators are the same")
    if arguments.output is not None:
        say(console, f"wrote {arguments.output}")
    return 0


def _warn_of_other_models(a: Report, b: Report) -> None:
    """Say on standard error where two folders are of different models: operators are matched by name."""
    n_both = len({each.name for each in a.operators} & {each.name for each in b.operators})
    if a.model != b.model or (a.operators and not n_both):
        text = f"A is of model {a.model}, B of {b.model}; {n_both:,} operators have the same name"
        print(printable(f"t10: warning: two different models are compared: {text}"), file=sys.stderr)


def _report(folder: Folder) -> Report:
    check_single(folder)
    return read_report(folder.checked(REPORT_FILE))


def _why(a: Folder, b: Folder) -> dict[str, tuple[str, ...]]:
    """Return why operators that are cut alike in two folders take other cycles, by name."""
    placed = [Placed.on(each.manifest.about.chip, read_document(each.checked(PLAN_FILE))) for each in (a, b)]
    return reasons_of_same_plans(*placed)


def _name(report: Report, folder: Path) -> str:
    return f"{report.model} on {report.chip.name} ({report.chip.n_cores:,} cores), {folder}"
