"""`t10 demo`: one bundled model all the way, and where to look next."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.panel import Panel

from t10.artefact import check_replaceable
from t10.cli.arguments import Arguments
from t10.cli.report import write_report_files
from t10.cli.terminal import progress_bar, say, stdout
from t10.cli.verify import EXIT_DIFFERS, show_comparisons
from t10.driver import Executable, compile
from t10.errors import InputError
from t10.random_inputs import random_inputs
from t10.reference import Comparison, compare, default_tolerance, run_onnx_runtime
from t10.report.table import operator_table, slowest, slowest_title, summary
from t10.report.trace import simulated_trace, write_trace
from t10.sim.result import SimResult

MODEL = Path("examples/models/bert_fp16.onnx")
ROOT = Path(__file__).parents[3]
N_SHOWN = 8
RUN_TRACE_FILE = "run.trace.json"


def run_demo(arguments: Arguments) -> int:
    """Compile and run a model, compare it with ONNX Runtime, write its report."""
    model = _model(arguments)
    console = stdout(quiet=arguments.quiet)
    console.print(Panel.fit(f"[bold]T10[/]  {model.name} on {arguments.chip}", border_style="cyan"))
    check_replaceable(arguments.folder)
    with progress_bar(quiet=arguments.quiet) as progress:
        executable = compile(model, arguments.chip, progress=progress)
        console.print(summary(executable.report()))
        start = time.perf_counter()
        inputs = random_inputs(executable.plan.graph, arguments.seed)
        result = executable.execute(inputs, progress=progress)
        seconds = time.perf_counter() - start
        references = run_onnx_runtime(model, inputs)
        with executable.saving(arguments.folder) as into:
            write_report_files(into, executable, progress)
            trace = simulated_trace(executable.plan, executable.chip, result.timeline)
            write_trace(into / RUN_TRACE_FILE, trace, executable.cost_model)
    comparisons = compare(result.outputs, references, default_tolerance(executable.plan.graph))
    _show(console, executable, result, comparisons, seconds)
    _next_steps(console, arguments.folder, model)
    return 0 if all(each.is_within for each in comparisons) else EXIT_DIFFERS


def _model(arguments: Arguments) -> Path:
    """Return the model to show; the bundled one is part of the source tree, not of the installed package."""
    if arguments.model != Path():
        return arguments.model
    for folder in (Path(), ROOT):
        if (folder / MODEL).is_file():
            return folder / MODEL
    raise InputError(f"{MODEL} is not here", hint="run this in a clone of the repository, or give --model")


def _show(
    console: Console,
    executable: Executable,
    result: SimResult,
    comparisons: tuple[Comparison, ...],
    seconds: float,
) -> None:
    report = executable.report()
    console.print()
    console.print(operator_table(slowest(report, N_SHOWN), title=slowest_title(report)))
    steps = sum(op.active.plan.n_sub_tasks for op in executable.plan.operators)
    moved = sum(result.bytes_by_kind.values())
    say(
        console,
        f"\nExecuted on {executable.chip.n_cores:,} simulated cores in {seconds:.1f} s: {steps:,} compute steps, "
        f"{moved:,} bytes exchanged. Against ONNX Runtime:",
    )
    show_comparisons(console, comparisons)


def _next_steps(console: Console, folder: Path, model: Path) -> None:
    files = (
        ("report.html", "plots and every operator, on one page"),
        ("plan.json", "every plan, every layout and address"),
        ("module.mlir", "the same as MLIR"),
        (RUN_TRACE_FILE, "every step of this run, for ui.perfetto.dev"),
    )
    for name, content in files:
        say(console, f"  {folder / name!s:<28} {content}")
    say(console, f"\nNext: t10 verify {model} --chip test-64, or your own model: t10 verify model.onnx")
