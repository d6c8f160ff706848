"""`t10 verify MODEL`."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from t10.arrays import Arrays, read_arrays, write_arrays
from t10.cli.arguments import Arguments
from t10.cli.cache import cache_of
from t10.cli.options import chip_of, constants_of, plan_options_of, shapes_of
from t10.cli.prove import PROVED, prove
from t10.cli.terminal import progress_bar, say, stdout
from t10.core.atomic import check_writable
from t10.driver import Executable, compile
from t10.errors import InputError
from t10.random_inputs import random_inputs
from t10.reference import Comparison, compare, default_tolerance, run_onnx_runtime, split_reference
from t10.report.table import milliseconds_text

EXIT_DIFFERS = 1


def run_verify(arguments: Arguments) -> int:
    """Compile, execute, compare; return 1 when an output differs by more than its tolerance."""
    check_writable(arguments.outputs)
    given, references = _given(arguments)
    options, shapes = plan_options_of(arguments), shapes_of(arguments)
    if arguments.tolerance is not None and not arguments.tolerance >= 0:
        raise InputError(f"--tolerance is {arguments.tolerance}, expected a number of at least 0")
    with progress_bar(quiet=arguments.quiet) as progress:
        executable = compile(
            arguments.model, chip_of(arguments), shapes, options, progress,
            cost_model=arguments.cost_model, codelets=arguments.codelets,
            plan=arguments.plan, dtype=arguments.dtype, constants=constants_of(arguments),
            keep_f64=arguments.keep_f64,
            frontend=arguments.frontend, cache=cache_of(arguments),
        )  # fmt: skip
        if arguments.prove:
            prove(executable, progress)
        graph = executable.plan.graph
        inputs = given
        if arguments.inputs is None:
            inputs = random_inputs(graph, arguments.seed)
        result = executable.execute(inputs, progress=progress)
    if not references:
        references = run_onnx_runtime(arguments.model, inputs)
    if arguments.outputs is not None:
        write_arrays(arguments.outputs, result.outputs)
    tolerance = default_tolerance(graph) if arguments.tolerance is None else arguments.tolerance
    comparisons = compare(result.outputs, references, tolerance)
    console = stdout(quiet=arguments.quiet)
    show_comparisons(console, comparisons)
    say(console, f"{executable.chip.name}: {_time(executable, result.cycles)}; {_source(arguments)}")
    if arguments.prove:
        say(console, PROVED)
    is_right = all(each.is_within for each in comparisons)
    console.print(
        "[green]verified[/]" if is_right else "[red]FAILED[/]: outputs differ by more than the tolerance"
    )
    return 0 if is_right else EXIT_DIFFERS


def show_comparisons(console: Console, comparisons: tuple[Comparison, ...]) -> None:
    """Print one row per output."""
    table = Table(header_style="bold")
    table.add_column("output")
    table.add_column("shape")
    table.add_column("type")
    table.add_column("max|y-ref| / max|ref|", justify="right")
    table.add_column("tolerance", justify="right")
    table.add_column("")
    for each in comparisons:
        verdict = "[green]ok[/]" if each.is_within else "[red]differs[/]"
        shape = "x".join(map(str, each.shape)) or "scalar"
        table.add_row(
            escape(each.name), shape, each.dtype, f"{each.error:.2e}", f"{each.tolerance:.0e}", verdict
        )
    console.print(table)


def _given(arguments: Arguments) -> tuple[Arrays, Arrays]:
    """Return the inputs and references of the file given with `--inputs`."""
    return ({}, {}) if arguments.inputs is None else split_reference(read_arrays(arguments.inputs))


def _time(executable: Executable, cycles: int) -> str:
    time = milliseconds_text(cycles / executable.chip.clock_hz * 1000)
    return f"{cycles:,} cycles, {time} (modelled, {executable.cost_model})"


def _source(arguments: Arguments) -> str:
    if arguments.inputs is None:
        return f"random inputs (seed {arguments.seed}), reference ONNX Runtime in f32"
    return f"inputs of {arguments.inputs.name}"
