"""`t10 report OUT`."""

from __future__ import annotations

from pathlib import Path

from t10.artefact import Folder, amended
from t10.backend import has_program, program_of, shipped
from t10.cli.arguments import Arguments
from t10.cli.options import known_costs, loaded
from t10.cli.stages import report_folder
from t10.cli.terminal import progress_bar, say, stdout
from t10.core.device import DeviceProgram
from t10.driver import Executable, Progress
from t10.report.analyser.page import PAGE_FILE
from t10.report.check import read_check
from t10.report.table import bytes_text, count_text, operator_table, slowest, summary
from t10.report.trace import TRACE_FILE
from t10.staged import is_staged


def run_report(arguments: Arguments) -> int:
    """Print what a compiled model costs; write its page, plots and timeline beside it."""
    folder = Folder.open(arguments.folder)
    if is_staged(folder):
        return report_folder(folder, arguments)
    executable = loaded(folder, arguments)
    report = executable.report()
    console = stdout(quiet=arguments.quiet)
    console.print(summary(report))
    rows = report.operators if arguments.rows is None else slowest(report, arguments.rows)
    shown = "Operators"
    if arguments.rows is not None:
        of_all = f"of {count_text(len(report.operators), 'operator')}, those of one kind in one row"
        shown = f"The slowest {count_text(len(rows), 'row')} {of_all}"
    console.print(operator_table(rows, title=f"{shown} (cycles are modelled, {executable.cost_model})"))
    if arguments.plots:
        program = shipped(program_of(folder), executable.chip).program if has_program(folder) else None
        with progress_bar(quiet=arguments.quiet) as progress, amended(folder) as into:
            names = write_report_files(into, executable, progress, program, read_check(folder))
        say(console, f"wrote {arguments.folder}/: {', '.join(names)}")
        size = bytes_text((arguments.folder / TRACE_FILE).stat().st_size)
        say(console, f"open {PAGE_FILE} in a browser, {TRACE_FILE} ({size}) at ui.perfetto.dev")
    return 0


def write_report_files(
    folder: Path,
    executable: Executable,
    progress: Progress,
    program: DeviceProgram | None = None,
    check: str = "",
) -> tuple[str, ...]:
    """Write report.html, its plots and the planned timeline into a folder; returns the names of the files.

    The memory of a device program is drawn too, where there is one. `check` is what a comparison of the outputs found:
    the page then begins with this and with an operator that rotates.
    """
    from t10.report.page import write_page

    report = executable.report()
    return write_page(
        folder,
        executable.plan,
        executable.chip,
        report,
        progress,
        program=program,
        check=check,
        costs=known_costs(executable),
    )
