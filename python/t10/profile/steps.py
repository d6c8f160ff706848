"""The statements of a plan, timed: what is emitted for them, where it lies, on the simulators that execute it.

Every different compute set runs once on the instruction-set simulator, every different exchange once on that of the
exchange. A check of prices: what placement did not grant shows here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from t10.chip import ChipSpec
from t10.codelets.count import cycles_of
from t10.core.device import Copy, Exchange, Execute, Step
from t10.core.placed_costs import tile_ranges
from t10.core.schedule import ModulePlan
from t10.core.tile import TileRange
from t10.core.vertex_nest import Lie, different_offsets, tasks
from t10.emit.builder import Job
from t10.emit.link import Parts, buffer_of
from t10.sim.device.phase import ExchangeModel, PhaseTime, Relayouts, pattern_time

Progress = Callable[[str, int, int], None]


def timed(
    parts: Parts, plan: ModulePlan, chip: ChipSpec, progress: Progress | None = None
) -> dict[str, tuple[int, ...]]:
    """Return by operator the cycles of every statement of its body.

    Launches are included. A job that does not fit one tile side by side keeps its modelled cycles.
    """
    places = tile_ranges(plan, chip.tile_memory)
    clock = _Clock(parts, chip, {name: places[buffer_of(name)] for name in parts.builder.variables})
    builder = parts.builder
    jobs: dict[str, int] = {}
    for number, (name, job) in enumerate(builder.jobs.items()):
        if progress:
            progress("measure", number, len(builder.jobs))
        jobs[name] = clock.job(job)
    copies = {name: clock.copy(copy) for name, copy in builder.copies.items()}

    def cycles(step: Step, relayouts: Relayouts) -> int:
        match step:
            case Execute(name):
                relayouts.end()
                return jobs[name]
            case Exchange(name):
                return relayouts.time(builder.copies[name].kind, copies[name]).cycles
            case _:
                return sum(cycles(each, relayouts) for each in step.body) * step.count

    def of_operator(statements: Sequence[Sequence[Step]]) -> tuple[int, ...]:
        relayouts = Relayouts(ExchangeModel(chip))
        return tuple(sum(cycles(step, relayouts) for step in steps) for steps in statements)

    return {each.operator: of_operator(each.statements) for each in parts.operators}


@dataclass(slots=True)
class _Clock:
    """Times jobs and copies whose variables lie in `places`; equal ones once."""

    parts: Parts
    chip: ChipSpec
    places: Mapping[str, TileRange]
    _jobs: dict[tuple[int, Lie], int | None] = field(default_factory=dict[tuple[int, Lie], "int | None"])
    _copies: dict[object, PhaseTime] = field(default_factory=dict[object, PhaseTime])

    def job(self, job: Job) -> int:
        """Return the cycles of a compute set's slowest vertex and of its launch."""
        lie = Lie.of([self.places[name] for name in job.names])
        key = (job.number, lie)
        if key not in self._jobs:
            nest, work = self.parts.builder.kept.compiled.content(job.number)
            found = [
                cycles_of(task, tuple(offsets))
                for chosen, task in tasks(nest, work, lie)
                for offsets in different_offsets(work, chosen)
            ]
            known = [each for each in found if each is not None]
            self._jobs[key] = (
                max(known, default=0) + self.chip.launch_cycles if len(known) == len(found) else None
            )
        cycles = self._jobs[key]
        return job.cycles if cycles is None else cycles

    def copy(self, copy: Copy) -> PhaseTime:
        """Return what an exchange takes by itself; where it lies matters only if it reads and writes one element."""
        sources = [self.places[name] for name in copy.sources]
        target = self.places[copy.target]
        base = self.chip.memory_base
        offsets = np.array([source.address_bytes - base for source in sources], np.int64)
        is_apart = not any(source.elements & target.elements for source in sources)
        where = () if is_apart else (*offsets.tolist(), target.address_bytes)
        key = (copy.pattern, copy.kind == "shift", where)
        if key not in self._copies:
            self._copies[key] = pattern_time(
                self.parts.builder.patterns[copy.pattern],
                ExchangeModel(self.chip),
                self.chip.n_cores,
                source_offsets=offsets,
                target_offset=target.address_bytes - base,
                is_neighbour=copy.kind == "shift",
            )
        return self._copies[key]
