"""`t10 report OUT`."""

from __future__ import annotations

from pathlib import Path

from t10.artefact import Folder, amended
from t10.backend import PROGRAM_FOLDER, lowered
from t10.cli.arguments import Arguments
from t10.cli.options import loaded
from t10.cli.terminal import progress_bar, say, stdout
from t10.driver import Executable, Progress
from t10.report.table import operator_table, slowest, summary


def run_report(arguments: Arguments) -> int:
    """Print what a compiled model costs; write its page, plots and timeline beside it."""
    folder = Folder.open(arguments.folder)
    executable = loaded(folder, arguments)
    report = executable.report()
    console = stdout(quiet=arguments.quiet)
    console.print(summary(report))
    rows = report.operators if arguments.rows is None else slowest(report, arguments.rows)
    console.print(operator_table(rows, title=f"Operators (cycles are modelled, {executable.cost_model})"))
    if arguments.plots:
        with progress_bar(quiet=arguments.quiet) as progress, amended(folder) as into:
            has_program = bool(folder.names(PROGRAM_FOLDER))
            names = write_report_files(into, executable, progress, has_program=has_program)
        say(console, f"wrote {arguments.folder}/: {', '.join(names)}")
        say(console, "open trace.json at ui.perfetto.dev")
    return 0


def write_report_files(
    folder: Path, executable: Executable, progress: Progress, *, has_program: bool = False
) -> tuple[str, ...]:
    """Write report.html, its plots and the planned timeline into a folder; returns the names of the files.

    A device program that was compiled, `has_program`, is drawn too.
    """
    from t10.report.page import write_page

    program = lowered(executable).program if has_program else None
    report = executable.report()
    return write_page(folder, executable.plan, executable.chip, report, progress, program=program)
