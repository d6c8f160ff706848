"""Executes a planned model on every core and every step, and measures it.

```
place weights in their idle layouts and inputs in theirs, but for weights that are fetched
for every operator in order:
    fetches that may begin are asked for; it waits for its own
    for every statement of its program: execute it on all cores
    buffers live and die between its phases
read the outputs where they lie
```

After the first line nothing sees a whole tensor: what is computed comes from the cores' memories alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from t10.chip import ChipSpec
from t10.core.arrays import Array
from t10.core.costs import Costs
from t10.core.dtypes import numpy_dtype
from t10.core.movement import ArrivalCosts
from t10.core.placed_costs import placed_costs, tile_ranges
from t10.core.program import SubTask
from t10.core.schedule import Home, ModulePlan
from t10.errors import InputError
from t10.sim.arrays import checked_array
from t10.sim.execution import Execution, Machine
from t10.sim.lifetimes import Lifetimes
from t10.sim.memory import CoreMemory
from t10.sim.off_chip import Channel
from t10.sim.operator import run_operator
from t10.sim.relayout import Mover
from t10.sim.result import OperatorResult, SimResult, Timeline

Progress = Callable[[int, int, str], None]


def simulate(
    plan: ModulePlan,
    chip: ChipSpec,
    cost: Costs,
    weights: Mapping[str, Array],
    inputs: Mapping[str, Array],
    *,
    progress: Progress | None = None,
    until: str | None = None,
) -> SimResult:
    """Return what a planned model computes on a chip, and what that costs by `cost`.

    Weights and inputs come as cores store them (`stored.as_stored`).
    `progress(step, n_steps, operator)` is called after every sub-task. `until` names the last operator to execute;
    its result is then the only output, by the name of its value. Raises `InputError` for wrong inputs or an unknown
    operator, `SimTrap` where the plan does what the chip cannot.
    """
    graph = plan.graph
    specs = {spec.name: spec for spec in graph.operators}
    if until is not None and until not in specs:
        raise InputError(f"there is no operator '{until}' to stop after")
    memory = CoreMemory(chip.n_cores, chip.sram_bytes, plan.reserved_bytes)
    homes: dict[str, Home] = {}
    mover = Mover(graph, memory, homes, ArrivalCosts(cost).rates, tile_ranges(plan, chip.tile_memory))
    machine = Machine(memory, mover, Timeline(), cost, Lifetimes(plan, memory))
    machine.lifetimes.enter(0, "arrive")
    channel = Channel(plan, chip.off_chip, weights, mover)
    _place(plan, mover, weights, inputs, channel.names)
    n_steps = sum(isinstance(s, SubTask) for scheduled in plan.operators for s in scheduled.body)
    n_done = 0
    costs = placed_costs(cost, plan, chip.tile_memory)
    results: list[OperatorResult] = []
    last = until if until is not None else ""
    for number, scheduled in enumerate(plan.operators):
        name = scheduled.name
        machine.lifetimes.enter(number, "arrive")

        def step_done(name: str = name) -> None:
            nonlocal n_done
            n_done += 1
            if progress is not None:
                progress(n_done, n_steps, name)

        first = len(machine.timeline.records)
        channel.begin(number, machine.timeline.now)
        channel.wait(name, machine.timeline)
        homes[specs[name].output.name] = run_operator(
            Execution(replace(machine, cost=costs[name]), specs[name], scheduled, number, step_done)
        )
        results.append(machine.timeline.operator_result(name, first))
        if name == last:
            break
    return SimResult(
        outputs=_outputs(plan, mover, last),
        operators=tuple(results),
        timeline=tuple(machine.timeline.records),
        peak_bytes=memory.peak_bytes,
    )


def _place(
    plan: ModulePlan,
    mover: Mover,
    weights: Mapping[str, Array],
    inputs: Mapping[str, Array],
    fetched: frozenset[str],
) -> None:
    """Put weights and inputs where their layouts say, but for weights that are `fetched`."""
    groups = (
        (plan.graph.weights, plan.weight_layouts, weights, "weight", "idle"),
        (plan.graph.inputs, plan.input_layouts, inputs, "input", "input"),
    )
    for values, layouts, arrays, what, prefix in groups:
        layout_by_value = {layout.value: layout for layout in layouts}
        for value in values:
            layout = layout_by_value.get(value.name)
            if value.name in fetched:
                continue
            if layout is None or not mover.memory.is_live(f"{prefix}:{value.name}"):
                continue
            home = Home(layout, f"{prefix}:{value.name}")
            mover.place(checked_array(value, arrays, what).view(numpy_dtype(value.dtype)), home)
            mover.keep(value.name, home)


def _outputs(plan: ModulePlan, mover: Mover, until: str) -> dict[str, Array]:
    """Return the model's outputs, or the result of the operator the run stopped after."""
    graph = plan.graph
    dtypes = {value.name: value.dtype for value in (*graph.inputs, *graph.weights, *graph.views)}
    dtypes |= {spec.output.name: spec.output.dtype for spec in graph.operators}
    if until:
        value = next(spec.output.name for spec in graph.operators if spec.name == until)
        return {value: mover.collect(value, dtypes[value])}
    return {
        output.name: mover.collect(output.value, dtypes[output.value]).view(
            numpy_dtype(output.declared or dtypes[output.value])
        )
        for output in graph.outputs
    }
