"""`t10 run OUT`."""

from __future__ import annotations

from t10.arrays import read_arrays, write_arrays
from t10.cli.arguments import Arguments
from t10.cli.terminal import progress_bar, say, stdout
from t10.driver import Executable
from t10.random_inputs import random_inputs
from t10.report.table import KINDS, cycles_line, milliseconds_text
from t10.report.trace import simulated_trace, write_trace


def run_run(arguments: Arguments) -> int:
    """Execute a compiled model and print its modelled cycles."""
    executable = Executable.load(arguments.folder)
    if arguments.inputs is None:
        inputs = random_inputs(executable.plan.graph, arguments.seed)
    else:
        inputs = read_arrays(arguments.inputs)
    with progress_bar(quiet=arguments.quiet) as progress:
        result = executable.execute(inputs, progress=progress)
    console = stdout(quiet=arguments.quiet)
    by_kind = {kind: sum(getattr(op.cycles, kind) for op in result.operators) for kind in KINDS}
    time = milliseconds_text(result.cycles / executable.chip.clock_hz * 1000)
    say(
        console,
        f"{result.cycles:,} cycles, {time} (modelled, {executable.cost_model}): {cycles_line(by_kind)}",
    )
    if arguments.inputs is None:
        say(console, f"inputs were random (seed {arguments.seed})")
    if arguments.outputs is not None:
        write_arrays(arguments.outputs, result.outputs)
        say(console, f"wrote {arguments.outputs}: {', '.join(result.outputs)}")
    if arguments.trace is not None:
        trace = simulated_trace(executable.plan, executable.chip, result.timeline)
        write_trace(arguments.trace, trace, executable.cost_model)
        say(console, f"wrote {arguments.trace} (open it at ui.perfetto.dev)")
    return 0
