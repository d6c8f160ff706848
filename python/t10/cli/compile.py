"""`t10 compile MODEL -o OUT`."""

from __future__ import annotations

from t10.cli.arguments import Arguments
from t10.cli.cache import cache_of
from t10.cli.options import plan_options_of, shapes_of
from t10.cli.prove import PROVED, prove
from t10.cli.terminal import progress_bar, say, stdout
from t10.driver import MODULE_FILE, PLAN_FILE, REPORT_FILE, WEIGHTS_FILE, compile
from t10.report.table import operator_table, slowest, slowest_title, summary


def run_compile(arguments: Arguments) -> int:
    """Compile a model, write its folder, and print what it costs."""
    options, shapes = plan_options_of(arguments), shapes_of(arguments)
    with progress_bar(quiet=arguments.quiet) as progress:
        executable = compile(
            arguments.model, arguments.chip, shapes, options, progress,
            cost_model=arguments.cost_model, plan=arguments.plan, cache=cache_of(arguments),
        )  # fmt: skip
        if arguments.prove:
            prove(executable, progress)
        executable.save(arguments.folder)
    report = executable.report()
    console = stdout(quiet=arguments.quiet)
    console.print(summary(report))
    console.print(operator_table(slowest(report), title=slowest_title(report)))
    files = [MODULE_FILE, PLAN_FILE, REPORT_FILE]
    if (arguments.folder / WEIGHTS_FILE).exists():
        files.append(WEIGHTS_FILE)
    if executable.missing_weights:
        say(console, "The model came without the values of its weights: it is planned, but cannot be run.")
    if arguments.prove:
        say(console, PROVED)
    say(console, f"wrote {arguments.folder}/: {', '.join(files)}")
    return 0
