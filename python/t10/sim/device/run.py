"""Executes a device program: every vertex on the instruction-set simulator, data moved only by its exchanges.

```
place weights and inputs slot by slot; write every vertex's words into its tile's memory
for every operator, step by step:
    Execute: all vertices of the compute set run; the clock advances by the slowest and the launch
    Exchange: bytes move as the pattern says; the clock advances by the schedule of the phase
    Repeat: the same again
read the outputs slot by slot
```

Nothing but the words, the code and the patterns decides what is computed: no plan, no operator, no tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Array
from t10.core.device import ComputeSet, DeviceProgram, Exchange, Execute, Step
from t10.errors import InputError, SimTrap, VerifyError
from t10.isa.image import Image
from t10.sim.device.exchange import LoadedCopy, check, load_copies, move
from t10.sim.device.host import collect, place
from t10.sim.device.machine import TileMachine, instruction_machine
from t10.sim.device.memory import DeviceMemory
from t10.sim.device.phase import ExchangeModel, PhaseTime, Relayouts, phase_time
from t10.sim.device.recorder import Recorder
from t10.sim.device.result import DeviceResult
from t10.sim.device.vertices import Batch, LoadedSet, load

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a trace goes, a line per bundle, and of which compute sets or operators (of all where none is named)."""

    write: Callable[[str], None]
    names: frozenset[str] = frozenset()

    def covers(self, compute_set: ComputeSet) -> bool:
        """Return whether a compute set is traced."""
        return not self.names or compute_set.name in self.names or compute_set.operator in self.names


def run_device(
    program: DeviceProgram,
    chip: ChipSpec,
    image: Image,
    weights: Mapping[str, Array],
    inputs: Mapping[str, Array],
    *,
    machine: TileMachine | None = None,
    progress: Progress | None = None,
    until: str | None = None,
    trace: Trace | None = None,
    exchange: ExchangeModel | None = None,
) -> DeviceResult:
    """Return what a device program computes on a chip, and the cycles that takes.

    `machine` executes the vertices (by default `instruction_machine`); its tiles' memories become those of the run.
    `progress(step, n_steps, operator)` is called after every compute set. `until` names the last operator to execute;
    outputs are then the variables its vertices and copies wrote. `trace` says which compute sets to trace, `exchange`
    how exchange phases are timed (docs/device-simulator.md). Raises `InputError` for wrong inputs or an unknown
    operator, `VerifyError` where the program contradicts itself, `SimTrap` (operator, compute set, codelet, tile) where
    the machine cannot go on.
    """
    names = [each.operator for each in program.operators]
    if until is not None and until not in names:
        raise InputError(f"there is no operator '{until}' to stop after")
    machine = machine or instruction_machine(program, image, chip.tile_memory)
    runner = _Runner(program, image, machine, exchange or ExchangeModel(chip), progress, trace)
    place(runner.memory, program.weights, weights, "weight")
    place(runner.memory, program.inputs, inputs, "input")
    for operator in program.operators:
        runner.run_operator(operator.operator, operator.steps)
        if operator.operator == until:
            break
    outputs = collect(runner.memory, program.outputs) if until is None else runner.written_variables(until)
    return runner.recorder.result(outputs)


class _Runner:
    """The machine, the clock, and what is known of compute sets and copies."""

    def __init__(
        self,
        program: DeviceProgram,
        image: Image,
        machine: TileMachine,
        exchange: ExchangeModel,
        progress: Progress | None,
        trace: Trace | None,
    ) -> None:
        self.program, self.machine, self.exchange = program, machine, exchange
        self.progress, self.trace = progress, trace
        self.memory = DeviceMemory(program, machine)
        self.sets = load(program, image, self.memory)
        self.copies = load_copies(program, self.memory)
        self.times: dict[tuple[Any, ...], PhaseTime] = {}
        self.recorder = Recorder(program.n_tiles)
        self.relayouts = Relayouts(self.exchange)
        self.n_steps = sum(_n_executed(each.steps) for each in program.operators)
        self.n_done = 0

    def run_operator(self, operator: str, steps: tuple[Step, ...]) -> None:
        """Execute the steps of an operator."""
        self.recorder.begin(operator)
        self.relayouts = Relayouts(self.exchange)
        try:
            self._run(operator, steps)
        except SimTrap as error:
            error.operator = error.operator or operator
            raise
        self.recorder.end()

    def _run(self, operator: str, steps: tuple[Step, ...]) -> None:
        for step in steps:
            if isinstance(step, Execute):
                self._execute(_named(self.sets, step.compute_set, "compute set"))
                self.n_done += 1
                if self.progress is not None:
                    self.progress(self.n_done, self.n_steps, operator)
            elif isinstance(step, Exchange):
                self._exchange(_named(self.copies, step.copy, "copy"))
            else:
                for _ in range(step.count):
                    self._run(operator, step.body)

    def _execute(self, loaded: LoadedSet) -> None:
        self.relayouts.end()
        busy = np.zeros(self.program.n_tiles, np.int64)
        is_traced = self.trace is not None and self.trace.covers(loaded.compute_set)
        if self.trace is not None and is_traced:
            self.trace.write(f"# compute set {loaded.compute_set.name} at cycle {self.recorder.now}")
            self.machine.set_trace(self._trace_line)
        for batch in loaded.batches:
            try:
                cycles = self.machine.run_vertices(batch.tiles, batch.entries, batch.states, batch.kind)
            except SimTrap as error:
                raise _located(error, loaded, batch) from error
            busy[batch.tiles] = cycles
            self.recorder.add_vertices(loaded.compute_set, batch.groups, cycles)
        if is_traced:
            self.machine.set_trace(None)
        for written in loaded.written:
            self.memory.native.mark(written.tiles, written.offsets, written.n_bytes)
        self.recorder.add_compute(
            loaded.compute_set, int(busy.max(initial=0)) + self.exchange.chip.launch_cycles, busy
        )

    def _trace_line(self, line: str) -> None:
        if self.trace is not None:
            self.trace.write(line)

    def _exchange(self, loaded: LoadedCopy) -> None:
        # Copies of one pattern between the same addresses, as in equal layers of a model, are checked and timed once.
        key = (
            loaded.pattern.key,
            loaded.copy.kind,
            tuple(loaded.source_offsets.tolist()),
            loaded.target_offset,
        )
        if key not in self.times:
            check(loaded, self.program.n_tiles)
            self.times[key] = phase_time(loaded, self.exchange, self.program.n_tiles)
        move(loaded, self.memory)
        self.recorder.add_exchange(loaded.copy, self.relayouts.time(loaded.copy.kind, self.times[key]))

    def written_variables(self, operator: str) -> dict[str, Array]:
        """Return the variables that vertices and copies of an operator write, (tiles, slots), by name."""
        names = {each.copy.target for each in self.copies.values() if each.copy.operator == operator}
        for loaded in self.sets.values():
            if loaded.compute_set.operator == operator:
                names |= loaded.written_names
        variables = [self.memory.variables[name] for name in sorted(names)]
        return {
            each.name: self.memory.read(each, np.arange(each.n_tiles, dtype=np.int32)) for each in variables
        }


def _named(found: Mapping[str, Any], name: str, what: str) -> Any:
    if name not in found:
        raise VerifyError(f"the program runs {what} '{name}', which it does not have")
    return found[name]


def _n_executed(steps: tuple[Step, ...]) -> int:
    """Return how many compute sets steps execute."""
    total = 0
    for step in steps:
        if isinstance(step, Execute):
            total += 1
        elif not isinstance(step, Exchange):
            total += step.count * _n_executed(step.body)
    return total


def _located(error: SimTrap, loaded: LoadedSet, batch: Batch) -> SimTrap:
    """Return a trap of the machine with the names of the compute set and the codelet in front."""
    tile = getattr(error, "tile", None)
    at = np.flatnonzero(batch.tiles == tile) if isinstance(tile, int) else np.zeros(0, np.int64)
    groups = loaded.compute_set.groups
    codelets = [groups[int(batch.groups[at[0]])].codelet] if at.size else sorted({g.codelet for g in groups})
    return SimTrap(
        f"compute set '{loaded.compute_set.name}', codelet {' or '.join(codelets)}: {error.message}",
        operator=loaded.compute_set.operator,
        location=error.location,
        hint=error.hint,
        details=error.details,
    )
