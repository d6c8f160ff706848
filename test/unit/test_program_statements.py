"""Programs are executed as they are written: every statement counts, for simulator, lowering and checker alike."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from support import bodies, reference, specs
from support.bodies import Body, with_statements
from support.random_cases import Case, small_case
from support.simulation import chip_of, executed, plan_of, random_values, scheduled

from t10.codelets.image import assembled
from t10.core.program import Arrive, Epilogue, Fill, Reduce, Shift, Statement, SubTask
from t10.core.schedule import ModulePlan
from t10.cost import IpuCostModel
from t10.emit.lower import lower
from t10.errors import SimTrap
from t10.plan.verify import verify_module
from t10.sim.device import run_device

SPEC = specs.linear_relu(6, 6, 12, "f32")
CHIP = chip_of(12)
KINDS: tuple[type[Statement], ...] = (Arrive, Fill, Shift, SubTask, Reduce, Epilogue)
RULES_BY_KIND: dict[type[Statement], set[str]] = {
    Arrive: {"arrive", "order"},
    Fill: {"fill", "order"},
    Shift: {"shift", "residence", "order", "home"},
    SubTask: {"sub-tasks", "order"},
    Reduce: {"reduce", "order"},
    Epilogue: {"epilogue"},
}


@pytest.fixture(scope="module")
def plan() -> ModulePlan:
    """Return a linear layer whose program has every kind of statement: a is cut in three along k, b in two.

    The sums of two halves of k are combined. Weight b rotates in its idle buffer and is shifted home; the bias arrives.
    """
    active = plan_of(SPEC, (2, 3, 2), ((1, 1, 3), (1, 1, 2), (1, 1, 1)))
    made = scheduled(specs.one_operator_graph(SPEC), (active,), CHIP, (2,))
    assert {type(statement) for statement in made.operators[0].body} == set(KINDS)
    assert verify_module(made, CHIP) == []
    return made


def given(plan: ModulePlan) -> dict[str, np.ndarray]:
    return random_values((*plan.graph.inputs, *plan.graph.weights), seed=1)


def goes_wrong(plan: ModulePlan) -> bool:
    """Return whether the simulator stops, or computes other numbers than the reference."""
    values = given(plan)
    try:
        found = executed(plan, CHIP, values).outputs
    except SimTrap:
        return True
    due = reference.run(plan.graph, values)
    return any(not np.array_equal(found[name], due[name]) for name in due)


def damages(body: Body, kind: type[Statement], change: str) -> list[Body]:
    """Return the programs in which one statement of a kind was changed; the last one cannot move to the end."""
    changed = [bodies.CHANGES[change](body, at) for at, s in enumerate(body) if isinstance(s, kind)]
    return [each for each in changed if each != body]


CASES = [
    (kind, change)
    for kind in KINDS
    for change in bodies.CHANGES
    if (kind, change) != (Epilogue, "moved to the end")
]


@pytest.mark.parametrize(("kind", "change"), CASES)
def test_the_checker_refuses_a_damaged_program(plan: ModulePlan, kind: type[Statement], change: str) -> None:
    damaged = damages(plan.operators[0].body, kind, change)
    assert damaged
    for body in damaged:
        found = {violation.rule for violation in verify_module(with_statements(plan, body), CHIP)}
        assert found
        assert found <= RULES_BY_KIND[kind]


@pytest.mark.parametrize(("kind", "change"), CASES)
def test_the_simulator_executes_a_damaged_program(
    plan: ModulePlan, kind: type[Statement], change: str
) -> None:
    assert not goes_wrong(plan)
    for body in damages(plan.operators[0].body, kind, change):
        assert goes_wrong(with_statements(plan, body))


@pytest.mark.parametrize(("kind", "change"), CASES)
def test_a_damaged_program_is_lowered_to_another_one(
    plan: ModulePlan, kind: type[Statement], change: str
) -> None:
    right = lowered(plan)
    for body in damages(plan.operators[0].body, kind, change):
        # The first sub-task replaces what is in the accumulators: of two Fills in a row nothing is left either.
        is_same = (kind, change) == (Fill, "written twice")
        assert (lowered(with_statements(plan, body)) == right) == is_same


def lowered(plan: ModulePlan) -> tuple[object, ...]:
    """Return what a plan's device program does: steps, compute sets, codelets and copies."""
    program = lower(plan, CHIP, IpuCostModel(CHIP))
    return program.operators, program.compute_sets, program.codelets, program.copies


def on_device(plan: ModulePlan) -> dict[str, np.ndarray]:
    program = lower(plan, CHIP, IpuCostModel(CHIP))
    return dict(
        run_device(
            program, CHIP, assembled(program.codelets, CHIP.tile_memory), given(plan), given(plan)
        ).outputs
    )


def test_lowering_without_fill_adds_to_what_is_there(plan: ModulePlan) -> None:
    """The sub-tasks of a program without Fill replace nothing: their codelets add to what the accumulators hold."""
    body = tuple(s for s in plan.operators[0].body if not isinstance(s, Fill))
    found = on_device(with_statements(plan, body))
    for name, due in reference.run(plan.graph, given(plan)).items():
        assert not np.array_equal(found[name], due)


@pytest.mark.parametrize("mode", ["scatter", "all"])
def test_a_reduction_of_the_other_mode(mode: str) -> None:
    active = plan_of(SPEC, (2, 3, 2), ((1, 1, 3), (1, 1, 2), (1, 1, 1)))
    plan = scheduled(specs.one_operator_graph(SPEC), (replace(active, reduce=mode),), CHIP)
    other = Reduce("all" if mode == "scatter" else "scatter")
    body = tuple(other if isinstance(s, Reduce) else s for s in plan.operators[0].body)
    wrong = with_statements(plan, body)
    assert {violation.rule for violation in verify_module(wrong, CHIP)} == {"reduce"}
    assert goes_wrong(wrong)
    assert lowered(wrong) != lowered(plan)


def test_traps_name_operand_axis_and_positions(plan: ModulePlan) -> None:
    body = plan.operators[0].body
    first = next(at for at, s in enumerate(body) if isinstance(s, Shift))
    moving = body[first]
    assert isinstance(moving, Shift)
    alone = (*body[:first], replace(moving, operands=(1,)), *body[first + 1 :])
    with pytest.raises(
        SimTrap, match=r"a: the sub-task at \[0, 0, 1\] expects .* position 1 of axis 2, .* at 0"
    ):
        executed(with_statements(plan, alone), CHIP, given(plan))
    with pytest.raises(SimTrap, match=r"a: a shift along axis 2 expects .* position 0 of axis 2, .* at 1"):
        executed(with_statements(plan, (*body[: first + 1], *body[first:])), CHIP, given(plan))
    homeless = tuple(s for s in body if not (isinstance(s, Shift) and s.stop == 0))
    with pytest.raises(SimTrap, match=r"weight .* does not return to where it rests in idle:"):
        executed(with_statements(plan, homeless), CHIP, given(plan))


@pytest.mark.parametrize(
    "wrong",
    [
        Shift((0, 0), 2, (0, 0, 0), 1),
        Shift((), 2, (0, 0, 0), 1),
        Shift((2,), 2, (0, 0, 0), 1),
        Shift((7,), 2, (0, 0, 0), 1),
        Shift((0, 1), 1, (0, 0, 0), 1),
        Shift((0, 1), 2, (0, 0, 0), 0),
        Shift((0, 1), 2, (0, 0, 0), 3),
        Shift((0, 1), 2, (0, 0, 1), 2),
        Shift((0, 1), 2, (0,), 1),
    ],
)
def test_the_checker_refuses_shifts_that_cannot_be(plan: ModulePlan, wrong: Shift) -> None:
    body = plan.operators[0].body
    first = next(at for at, s in enumerate(body) if isinstance(s, Shift))
    damaged = with_statements(plan, (*body[:first], wrong, *body[first + 1 :]))
    assert {violation.rule for violation in verify_module(damaged, CHIP)} == {"shift"}


def test_a_detour_is_executed_as_it_is_written(plan: ModulePlan) -> None:
    """Windows that move on and back again before a sub-task stand right: nobody insists on the planner's order."""
    body = plan.operators[0].body
    first = next(at for at, s in enumerate(body) if isinstance(s, Shift))
    there = body[first]
    assert isinstance(there, Shift)
    back = replace(there, positions=(0, 0, 1), stop=0)
    detour = with_statements(plan, (*body[:first], there, back, *body[first:]))
    assert verify_module(detour, CHIP) == []
    assert not goes_wrong(detour)
    n_shifts = [
        sum(record.kind == "shift" for record in executed(each, CHIP, given(plan)).timeline)
        for each in (plan, detour)
    ]
    assert n_shifts[1] == n_shifts[0] + 2
    found = on_device(detour)
    for name, due in reference.run(plan.graph, given(plan)).items():
        np.testing.assert_array_equal(found[name], due)


def random_damage(rng: Random, case: Case) -> ModulePlan:
    """Return the plan of a case with one statement of one program changed."""
    number = rng.randrange(len(case.plan.operators))
    body = case.plan.operators[number].body
    at = rng.randrange(len(body))
    changed = bodies.CHANGES[rng.choice(sorted(bodies.CHANGES))](body, at)
    return with_statements(case.plan, changed, number)


@pytest.mark.parametrize("share", range(4))
def test_what_the_checker_accepts_computes_what_numpy_does(share: int) -> None:
    """Random plans with a damaged program: those that go wrong are refused."""
    n_refused = 0
    for seed in range(share * 50, share * 50 + 50):
        case = small_case(seed)
        assert verify_module(case.plan, case.chip) == []
        for number in range(4):
            damaged = random_damage(Random(seed * 100 + number), case)
            if verify_module(damaged, case.chip):
                n_refused += 1
                continue
            found = executed(damaged, case.chip, case.arrays).outputs
            for name, due in reference.run(case.graph, case.arrays).items():
                np.testing.assert_array_equal(found[name], due)
    assert n_refused > 100
