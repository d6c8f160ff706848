"""`t10 demo`: a real layer whose tensors rotate, all the way, and where to look next."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.panel import Panel

from t10.artefact import check_replaceable
from t10.backend import PROGRAM_FOLDER, lowered, write_program
from t10.cli.arguments import Arguments
from t10.cli.demo_model import TITLE, write_demo_model
from t10.cli.report import write_report_files
from t10.cli.shared_arguments import DEFAULT_CHIP
from t10.cli.terminal import progress_bar, say, stdout
from t10.cli.verify import EXIT_DIFFERS, show_comparisons
from t10.driver import MODULE_FILE, WEIGHTS_FILE, Executable, compile
from t10.explain.expression import formula
from t10.explain.front import front_points
from t10.explain.steps import rotating_slots, steps_table
from t10.explain.table import front_table
from t10.random_inputs import random_inputs
from t10.reference import Comparison, compare, default_tolerance, run_onnx_runtime
from t10.report.check import write_check
from t10.report.table import bytes_text, time_text
from t10.report.trace import simulated_trace, write_trace
from t10.sim.result import SimResult

CHIP = "test-64:sram_bytes=256KiB"
"""Tight for the demo's own model: 64 cores cannot keep what their products read."""
MODEL_FILE = "bert_feed_forward.onnx"
RUN_TRACE_FILE = "run.trace.json"


def run_demo(arguments: Arguments) -> int:
    """Compile and run a model, compare it with ONNX Runtime, write its report."""
    is_own = arguments.model == Path()
    chip = arguments.chip or (CHIP if is_own else DEFAULT_CHIP)
    console = stdout(quiet=arguments.quiet)
    console.print(
        Panel.fit(f"[bold]T10[/]  {TITLE if is_own else arguments.model.name}", border_style="cyan")
    )
    check_replaceable(arguments.folder)
    with tempfile.TemporaryDirectory() as room, progress_bar(quiet=arguments.quiet) as progress:
        model = arguments.model
        if is_own:
            model = Path(room) / MODEL_FILE
            write_demo_model(model)
        executable = compile(model, chip, progress=progress, program=True).with_measured_steps(progress)
        made = lowered(executable)
        start = time.perf_counter()
        inputs = random_inputs(executable.plan.graph, arguments.seed)
        result = executable.execute(inputs, progress=progress)
        seconds = time.perf_counter() - start
        references = run_onnx_runtime(model, inputs)
        comparisons = compare(result.outputs, references, default_tolerance(executable.plan.graph))
        with executable.saving(arguments.folder) as into:
            if is_own:
                shutil.copyfile(model, into / MODEL_FILE)
            write_program(executable, made, into / PROGRAM_FOLDER)
            check = write_check(into, comparisons, (MODULE_FILE, WEIGHTS_FILE))
            write_report_files(into, executable, progress, made.program, check)
            trace = simulated_trace(executable.plan, executable.chip, result.timeline)
            write_trace(into / RUN_TRACE_FILE, trace, executable.cost_model)
    _show_rotation(console, executable)
    _show_run(console, executable, result, comparisons, seconds)
    _next_steps(console, arguments.folder, arguments.folder / MODEL_FILE if is_own else arguments.model)
    return 0 if all(each.is_within for each in comparisons) else EXIT_DIFFERS


def _show_rotation(console: Console, executable: Executable) -> None:
    """Show the longest operator whose tensors rotate: step by step, and the time that its memory costs."""
    plan, chip = executable.plan, executable.chip
    report = executable.report()
    whole = bytes_text(chip.n_cores * chip.sram_bytes)
    memory = f"{chip.n_cores:,} cores with {bytes_text(chip.sram_bytes)} each, {whole} in all"
    say(
        console,
        f"{memory}; weights {bytes_text(report.weight_bytes)}, peak {bytes_text(report.peak_bytes)} per core",
    )
    turning = [n for n, op in enumerate(plan.operators) if rotating_slots(op.active.plan)]
    if not turning:
        say(console, "No tensor rotates: every core has room for all that its operators read.")
        return
    number = max(turning, key=lambda n: plan.operators[n].active.cycles.total)
    spec, operator = plan.graph.operators[number], plan.operators[number]
    say(console, f"\n{spec.name} is the longest operator with tensors that rotate: {formula(spec)}")
    for slot in rotating_slots(operator.active.plan)[:1]:
        console.print(steps_table(spec, operator.active.plan, slot))
    points = front_points(spec, operator.pareto, operator.active.plan)
    title = f"Its plans, time against memory; * is the chosen one (modelled, {executable.cost_model})"
    console.print(front_table(points, title, around=1))


def _show_run(
    console: Console,
    executable: Executable,
    result: SimResult,
    comparisons: tuple[Comparison, ...],
    seconds: float,
) -> None:
    report = executable.report()
    moved = sum(result.bytes_by_kind.values())
    say(
        console,
        f"\nExecuted on {executable.chip.n_cores:,} simulated cores in {seconds:.1f} s: {bytes_text(moved)} exchanged, "
        f"{time_text(report)} modelled. Against ONNX Runtime:",
    )
    show_comparisons(console, comparisons)


def _next_steps(console: Console, folder: Path, model: Path) -> None:
    files = (
        ("report.html", "every operator, its rotation step by step where it has one, in a browser"),
        ("plan.json", "every plan, every layout and address"),
        ("module.mlir", "the same as MLIR"),
        (f"{PROGRAM_FOLDER}/", "the device program: C++, assembly, tables"),
        (RUN_TRACE_FILE, "every step of this run, for ui.perfetto.dev"),
    )
    for name, content in files:
        say(console, f"  {folder / name!s:<32} {content}")
    say(
        console,
        f"\nNext: t10 run {folder} --engine iss, t10 verify {model} --chip test-64, "
        "or your own model: t10 verify model.onnx",
    )
