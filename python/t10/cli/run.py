"""`t10 run OUT`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from rich.console import Console

from t10.arrays import write_arrays
from t10.artefact import Folder
from t10.backend import program_of, ran_on_host, run_on_tiles
from t10.cli.arguments import Arguments
from t10.cli.options import loaded
from t10.cli.stages import run_folder
from t10.cli.terminal import progress_bar, say, stdout
from t10.core.atomic import check_writable
from t10.driver import Executable, checked_inputs
from t10.errors import InputError
from t10.random_inputs import random_inputs
from t10.reference import read_given
from t10.report.device_trace import tile_tracks
from t10.report.table import KINDS, bytes_text, cycles_line, milliseconds_text
from t10.report.trace import simulated_trace, write_trace
from t10.sim.device import DeviceResult
from t10.sim.result import SimResult
from t10.staged import is_staged

Arrays = Mapping[str, NDArray[Any]]


def run_run(arguments: Arguments) -> int:
    """Execute a compiled model and print its modelled cycles."""
    folder = Folder.open(arguments.folder)
    if is_staged(folder):
        return run_folder(folder, arguments)
    executable = loaded(folder, arguments)
    if arguments.trace is not None and arguments.engine == "poplar-host":
        raise InputError("--trace needs an engine that counts cycles", hint="take --engine plan or iss")
    check_writable(arguments.outputs, arguments.trace)
    if arguments.inputs is None:
        inputs = random_inputs(executable.plan.graph, arguments.seed)
    else:
        found, _ = read_given(arguments.inputs, executable.inputs)
        inputs = checked_inputs(executable.inputs, found, str(arguments.inputs))
    console = stdout(quiet=arguments.quiet)
    program = None if arguments.engine == "plan" else program_of(folder)
    outputs = _executed(arguments, executable, program, inputs, console)
    if arguments.inputs is None:
        say(console, f"inputs were random (seed {arguments.seed})")
    if arguments.outputs is not None:
        write_arrays(arguments.outputs, outputs)
        say(console, f"wrote {arguments.outputs}: {', '.join(outputs)}")
    return 0


def _executed(
    arguments: Arguments, executable: Executable, program: Path | None, inputs: Arrays, console: Console
) -> Arrays:
    """Run the chosen engine, print what it took, and return the outputs."""
    with progress_bar(quiet=arguments.quiet) as progress:
        if program is not None and arguments.engine == "poplar-host":
            done = ran_on_host(executable, program, inputs)
            say(console, "program.cpp built with g++ and run on the host implementation of the Poplar API")
            planned = executable.report().cycles.compute
            text = f"{done.cycles:,} cycles of compute sets, as program.cpp estimates them for Poplar"
            say(console, f"{text} (planned: {planned:,}); exchanges take no time on the host")
            return done.outputs
        if program is not None:
            result: SimResult | DeviceResult = run_on_tiles(executable, inputs, program, progress=progress)
            source = "instruction-set simulator"
        else:
            result = executable.execute(inputs, progress=progress)
            source = executable.cost_model
    by_kind = {kind: sum(getattr(op.cycles, kind) for op in result.operators) for kind in KINDS}
    time = milliseconds_text(result.cycles / executable.chip.clock_hz * 1000)
    say(console, f"{result.cycles:,} cycles, {time} (modelled, {source}): {cycles_line(by_kind)}")
    if isinstance(result, DeviceResult):
        say(console, planned_line(executable, result.cycles))
    if arguments.trace is not None:
        trace = simulated_trace(executable.plan, executable.chip, result.timeline)
        if isinstance(result, DeviceResult):
            trace += tile_tracks(result, executable.chip)
        write_trace(arguments.trace, trace, source)
        size = bytes_text(arguments.trace.stat().st_size)
        say(console, f"wrote {arguments.trace} ({size}; open it at ui.perfetto.dev)")
    return result.outputs


def planned_line(executable: Executable, cycles: int) -> str:
    """Return what the plan says beside the cycles that its program took, and how far off that is."""
    planned = executable.report().total_cycles
    return f"planned: {planned:,} cycles" + (f" ({cycles / planned - 1:+.2%})" if planned else "")
