"""Device programs: the order of sub-tasks and shifts, what they cost in all, and what they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from math import prod
from random import Random

import pytest
from support import specs, task_interpreter
from support.random_plans import random_plan

from t10.chip import load_chip
from t10.core.contiguous_parts import sub_task_parts
from t10.core.device import DeviceProgram, Exchange, Execute, Reference, Repeat, Step
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.core.schedule import ModulePlan
from t10.cost import IpuCostModel
from t10.cost.operator import n_advances
from t10.emit.lower import lower
from t10.plan.memory.room import DataRoom
from t10.plan.schedule import as_placed, restore_module

CHIP = load_chip("test-64")
COST = IpuCostModel(CHIP)
N_LOOPS = (0, 1, 2, 3)
N_PLANS = 12

SPECS = (
    specs.matmul(12, 12, 12),
    specs.linear_relu(8, 12, 8),
    specs.bmm(4, 6, 8, 6, "f32"),
    specs.conv2d(2, 8, 6, 6, 4, 3, 3, pad=1),
    specs.row_reduce(12, 16, "max"),
    specs.elementwise((12, 8), b_axes=(1,)),
    specs.gather(12, 8, 16),
)


def scheduled(graph: Graph, plans: tuple[OperatorPlan, ...], level: int = 1) -> ModulePlan:
    """Return the schedule of a graph under given plans."""
    costed = tuple(CostedPlan(plan, Cycles(), 0, 0) for plan in plans)
    return DataRoom(CHIP)(restore_module(graph, CHIP, COST, costed, (level,) * len(plans)))


@cache
def random_cases(n_loops: int) -> tuple[tuple[OperatorSpec, OperatorPlan], ...]:
    """Return operators under random plans in which that many axes rotate."""
    rng = Random(n_loops)
    found: list[tuple[OperatorSpec, OperatorPlan]] = []
    for _ in range(4000):
        spec = rng.choice(SPECS)
        plan = random_plan(rng, spec, CHIP.n_cores)
        if len(plan.loop_order) == n_loops:
            found.append((spec, plan))
        if len(found) == N_PLANS:
            break
    return tuple(found)


def lowered(spec: OperatorSpec, plan: OperatorPlan, level: int = 1) -> tuple[ModulePlan, DeviceProgram]:
    """Return the schedule and the program of one operator."""
    module = scheduled(specs.one_operator_graph(spec), (plan,), level)
    with task_interpreter.recording():
        return module, lower(module, CHIP, COST)


def flat(steps: tuple[Step, ...]) -> Iterator[Execute | Exchange]:
    """Yield the steps one after the other, loops unrolled."""
    for step in steps:
        if isinstance(step, Repeat):
            for _ in range(step.count):
                yield from flat(step.body)
        else:
            yield step


def serpentine(steps: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the positions of a nest of loops, outermost first, every one but the outermost to and fro.

    Closed form: loop i has advanced t // (product of the steps inside it) times in all; every second sweep runs back.
    """
    positions: list[tuple[int, ...]] = []
    for t in range(prod(steps)):
        row: list[int] = []
        for i, n in enumerate(steps):
            sweeps, position = divmod(t // prod(steps[i + 1 :]), n)
            row.append(n - 1 - position if sweeps % 2 else position)
        positions.append(tuple(row))
    return positions


Advance = tuple[str, str]
"""The axis that advances, and which way."""


def nest_of(program: DeviceProgram) -> list[Advance]:
    """Return the advances of an operator's nest in order; between two of them lies at least one execution.

    A sub-task may be several pieces and a shift several rounds: each counts once. Shifts after the last sub-task, which
    bring weights home, are left out.
    """
    copies = {copy.name: copy for copy in program.copies}
    found: list[Advance] = []
    n_sub_tasks = 0
    is_new = True
    for step in flat(program.operators[0].steps):
        if isinstance(step, Execute):
            if step.compute_set.startswith("sub_task:"):
                n_sub_tasks += is_new
                is_new = False
        elif copies[step.copy].kind == "shift" and not is_new:
            axis, way = copies[step.copy].name.split(":")[2:4]
            found.append((axis, way.split(".")[0]))
            is_new = True
    return found[: n_sub_tasks - 1]


def computes(spec: OperatorSpec, plan: OperatorPlan, position: tuple[int, ...]) -> bool:
    """Return whether any core has something to compute at a position of the nest; else two shifts follow each other."""
    positions = [0] * len(plan.steps)
    for axis, at in zip(plan.loop_order, position, strict=True):
        positions[axis] = at
    return bool(sub_task_parts(spec, plan, tuple(positions)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_loops", N_LOOPS)
def test_sub_tasks_and_shifts_alternate_as_a_serpentine_nest(n_loops: int) -> None:
    cases = random_cases(n_loops)
    assert cases
    for spec, plan in cases:
        _, program = lowered(spec, plan)
        positions = serpentine(tuple(plan.steps[axis] for axis in plan.loop_order))
        if not all(computes(spec, plan, position) for position in positions):
            continue
        advances = nest_of(program)
        assert len(advances) == plan.n_sub_tasks - 1
        for (before, after), advance in zip(pairwise(positions), advances, strict=True):
            (moved,) = (i for i in range(n_loops) if before[i] != after[i])
            way = "forward" if after[moved] > before[moved] else "backward"
            assert advance == (spec.axes[plan.loop_order[moved]].name, way)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_loops", N_LOOPS)
def test_every_axis_advances_as_often_as_the_closed_form_says(n_loops: int) -> None:
    for spec, plan in random_cases(n_loops):
        _, program = lowered(spec, plan)
        if not all(
            computes(spec, plan, p) for p in serpentine(tuple(plan.steps[a] for a in plan.loop_order))
        ):
            continue
        found = Counter(axis for axis, _ in nest_of(program))
        assert found == Counter({spec.axes[axis].name: n_advances(plan, axis) for axis in plan.loop_order})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("n_loops", N_LOOPS)
def test_a_program_takes_the_cycles_of_its_plan(n_loops: int, level: int) -> None:
    for spec, plan in random_cases(n_loops):
        module, program = lowered(spec, plan, level)
        assert _cycles(program, spec.name) == as_placed(module, CHIP, COST).operators[0].active.cycles


def _cycles(program: DeviceProgram, operator: str) -> Cycles:
    """Return the cycles of all steps of an operator, by kind."""
    copies = {copy.name: copy for copy in program.copies}
    cycles_by_set = {each.name: each.cycles for each in program.compute_sets}
    (steps,) = (each.steps for each in program.operators if each.operator == operator)
    spent: Counter[str] = Counter()
    for step in flat(steps):
        if isinstance(step, Execute):
            spent["compute"] += cycles_by_set[step.compute_set]
        else:
            kind = copies[step.copy].kind
            spent["shift" if kind == "copy_out" else kind] += copies[step.copy].cycles
    return Cycles(**spent)


@pytest.mark.parametrize("n_loops", N_LOOPS)
def test_variables_fill_their_buffers_and_everything_named_exists(n_loops: int) -> None:
    for spec, plan in random_cases(n_loops):
        module, program = lowered(spec, plan)
        buffers = {buffer.name: buffer for buffer in module.buffers}
        for variable in program.variables:
            buffer = buffers["shift" if variable.role == "buffer" else variable.name]
            assert variable.address_bytes == CHIP.memory_base + buffer.address_bytes
            assert 0 < prod(variable.shape) * size_bytes(variable.dtype) <= buffer.size_bytes
        names = {variable.name for variable in program.variables}
        words = [w for each in program.compute_sets for group in each.groups for w in group.words]
        assert {word.variable for word in words if isinstance(word, Reference)} <= names
        assert all({*copy.sources, copy.target} <= names for copy in program.copies)
        steps = list(flat(program.operators[0].steps))
        executed = {step.compute_set for step in steps if isinstance(step, Execute)}
        exchanged = {step.copy for step in steps if isinstance(step, Exchange)}
        assert executed == {each.name for each in program.compute_sets}
        assert exchanged == {copy.name for copy in program.copies}


def test_operators_run_in_the_order_of_the_graph() -> None:
    rng = Random(0)
    graph = specs.mlp_graph(6, (12, 8, 10))
    module = scheduled(graph, tuple(random_plan(rng, spec, CHIP.n_cores) for spec in graph.operators))
    with task_interpreter.recording():
        program = lower(module, CHIP, COST)
    assert [each.operator for each in program.operators] == [spec.name for spec in graph.operators]
    assert {copy.operator for copy in program.copies} <= {spec.name for spec in graph.operators}
