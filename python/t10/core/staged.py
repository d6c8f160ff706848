"""A model as a pipeline of stages, each on a group of cores of its own: what runs where, what is handed over.

```
group 0   [run stage 0][send]                    [run stage 0][send]
group 1                [take][run stage 1][send]              [take][run ...
                                          ^ one result, and the next after as long as the slowest stage takes
```

Both ends of a hand-over take part in it, so that a stage's share of a result is what it takes, runs and sends.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HandOver:
    """A value that a stage gives to the next: its bytes, once, and modelled cycles on the links between them."""

    value: str
    n_bytes: int
    cycles: int


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive operators of a model on group number `group`.

    `plan` is the number of the plan that runs: equal stages have one, with the names of the first. `inputs`, `weights`
    and `outputs` name in the whole model what that plan names, in its order. `sends` are handed to the next stage.
    """

    plan: int
    group: int
    operators: tuple[str, ...]
    inputs: tuple[str, ...]
    weights: tuple[str, ...]
    outputs: tuple[str, ...]
    run_cycles: int
    peak_bytes: int
    sends: tuple[HandOver, ...] = ()

    @property
    def send_cycles(self) -> int:
        """Return what handing over takes."""
        return sum(each.cycles for each in self.sends)


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """All stages, in order. `chip` has all groups, of `level`; `group_cores` cores are one.

    `bound_cycles`: of no cut at `n_places` places into as many stages, each as it would be planned, does the slowest
    stage take less; `n_planned` different stages were planned to know that. Fewer stages are counted, too, where their
    number was free.
    """

    chip: str
    level: str
    group_cores: int
    clock_hz: float
    stages: tuple[Stage, ...]
    n_places: int
    n_planned: int
    bound_cycles: int
    is_free: bool = False

    def stage_cycles(self, number: int) -> int:
        """Return what a stage takes for a result: to receive, to run and to send."""
        received = self.stages[number - 1].send_cycles if number else 0
        return received + self.stages[number].run_cycles + self.stages[number].send_cycles

    @property
    def interval_cycles(self) -> int:
        """Return the cycles from one result to the next: those of the slowest stage."""
        return max(map(self.stage_cycles, range(len(self.stages))))

    @property
    def latency_cycles(self) -> int:
        """Return the cycles from a request to its result."""
        return sum(stage.run_cycles + stage.send_cycles for stage in self.stages)

    @property
    def results_per_second(self) -> float:
        """Return how many results all stages together make in a second."""
        return self.clock_hz / max(self.interval_cycles, 1)

    @property
    def gap(self) -> float:
        """Return the part of the interval that a better cut could save at most."""
        return 1 - self.bound_cycles / max(self.interval_cycles, 1)
