"""Running planned graphs in tests: plans chosen by hand become schedules, random data goes in, references come out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from support import reference
from t10.chip import ChipSpec, load_chip
from t10.codelets.image import assembled
from t10.core.dtypes import numpy_dtype
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.graph import Graph, TensorValue
from t10.core.plan import CostedPlan, OperatorPlan
from t10.core.schedule import ModulePlan
from t10.cost import IpuCostModel, operator_cycles
from t10.emit.lower import lower
from t10.plan.memory.room import DataRoom
from t10.plan.schedule import restore_module
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import place
from t10.sim.device import run_device
from t10.sim.plan_level import simulate
from t10.sim.result import SimResult

Array = NDArray[Any]
Rows = tuple[AxisSizes, ...]


def chip_of(n_cores: int, **fields: int) -> ChipSpec:
    """Return a small chip with some fields changed."""
    return load_chip("test-16").model_copy(update={"n_cores": n_cores, **fields})


def plan_of(spec: OperatorSpec, f_op: AxisSizes, ft: Rows | None = None) -> OperatorPlan:
    """Return the placed plan of a partition; nothing rotates where `ft` is left out."""
    rows = ft or tuple((1,) * len(f_op) for _ in spec.rotatable)
    placed = place(spec, f_op, rows, align_pace(spec, f_op, rows))
    assert placed is not None
    return placed


def scheduled(
    graph: Graph, plans: tuple[OperatorPlan, ...], chip: ChipSpec, idle_levels: tuple[int, ...] | None = None
) -> ModulePlan:
    """Return the schedule of chosen plans; weights rest linear (level 0) unless `idle_levels` says otherwise."""
    cost = IpuCostModel(chip)
    priced = tuple(
        CostedPlan(plan, operator_cycles(cost, spec, plan), 0, 0)
        for spec, plan in zip(graph.operators, plans, strict=True)
    )
    return DataRoom(chip)(restore_module(graph, chip, cost, priced, idle_levels or (0,) * len(plans)))


def random_values(values: tuple[TensorValue, ...], seed: int = 0, high: int = 4) -> dict[str, Array]:
    """Return small random integers of every value's own type: sums and products of them are exact in f16."""
    rng = np.random.default_rng(seed)
    return {v.name: rng.integers(0, high, v.shape).astype(numpy_dtype(v.dtype)) for v in values}


def executed(plan: ModulePlan, chip: ChipSpec, given: dict[str, Array], **options: Any) -> SimResult:
    """Return the simulation of a plan; `given` holds inputs and weights by name."""
    return simulate(plan, chip, IpuCostModel(chip), given, given, **options)


def check_simulators(made: ModulePlan, chip: ChipSpec, low: int = 0) -> None:
    """Compare both simulators with numpy, on random integers from `low` on."""
    given = {
        name: values + values.dtype.type(low)
        for name, values in random_values((*made.graph.inputs, *made.graph.weights), seed=5).items()
    }
    due = reference.run(made.graph, given)
    program = lower(made, chip, IpuCostModel(chip))
    on_device = run_device(program, chip, assembled(program.codelets, chip.tile_memory), given, given)
    for output, expected in due.items():
        np.testing.assert_array_equal(executed(made, chip, given).outputs[output], expected)
        np.testing.assert_array_equal(on_device.outputs[output], expected)
