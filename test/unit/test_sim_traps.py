"""Plans that real cores could not execute stop the simulation, and the trap says what, where and when."""

from dataclasses import replace

import numpy as np
import pytest
from support import specs
from support.simulation import chip_of, executed, plan_of, random_values, scheduled

from t10.core.operator_body import scheduled_operator
from t10.core.plan import OperatorPlan, PhaseTerm
from t10.core.schedule import Buffer, ModulePlan
from t10.errors import InputError, SimTrap
from t10.plan.memory.allocation import aligned_size

CHIP = chip_of(6)
GRAPH = specs.chain_graph(
    "two",
    (
        specs.matmul(4, 6, 6, name="first", a="x", b="w0", c="y"),
        specs.elementwise((4, 6), name="second", a="y", b="x2", o="z"),
    ),
)
FT = ((1, 1, 3), (1, 1, 2), (1, 1, 1))


@pytest.fixture
def plan() -> ModulePlan:
    first, second = GRAPH.operators
    return scheduled(GRAPH, (plan_of(first, (2, 3, 1), FT), plan_of(second, (2, 3))), CHIP)


def run(plan: ModulePlan) -> np.ndarray:
    result = executed(plan, CHIP, random_values((*GRAPH.inputs, *GRAPH.weights)))
    return result.outputs["result"]


def with_active(plan: ModulePlan, **changes: object) -> ModulePlan:
    """Return the plan with fields of the first operator's active plan changed; what it reads lies accordingly."""
    first = plan.operators[0]
    active: OperatorPlan = replace(first.active.plan, **changes)
    layouts = tuple(
        replace(layout, plan=active) if layout.operator == first.name else layout
        for layout in plan.input_layouts
    )
    operators = (replace(first, active=replace(first.active, plan=active)), *plan.operators[1:])
    return replace(plan, operators=operators, input_layouts=layouts)


def with_buffer(plan: ModulePlan, name: str, **changes: int) -> ModulePlan:
    """Return the plan with fields of one buffer changed."""
    buffers = tuple(replace(b, **changes) if b.name == name else b for b in plan.buffers)
    return replace(plan, buffers=buffers)


def test_the_unchanged_plan_runs(plan: ModulePlan) -> None:
    assert run(plan).shape == (4, 6)


@pytest.mark.parametrize(
    "term", [PhaseTerm((1,), 1, 3, 1), PhaseTerm((1,), 1, 2, 2), PhaseTerm((0,), 1, 2, 3)]
)
def test_wrong_phases_leave_cores_without_ring_neighbours(plan: ModulePlan, term: PhaseTerm) -> None:
    with pytest.raises(
        SimTrap, match=r"operator 'first': .*no ring neighbour along axis 2 at core \d, step 0"
    ):
        run(with_active(plan, phases=((), (), (term,))))


def test_a_sub_task_larger_than_the_window_lacks_data(plan: ModulePlan) -> None:
    with pytest.raises(
        SimTrap, match=r"x: axis 2 of the sub-task needs index \d, resident is \[\d, \+2\) mod 6"
    ):
        run(with_active(plan, rp=(0, 0, 3)))


def test_too_many_cores(plan: ModulePlan) -> None:
    given = random_values((*GRAPH.inputs, *GRAPH.weights))
    with pytest.raises(SimTrap, match="cores of a chip with 4"):
        executed(plan, chip_of(4), given)


def test_memory_overflow_names_buffer_and_address(plan: ModulePlan) -> None:
    outside = CHIP.sram_bytes
    with pytest.raises(SimTrap, match=f"value:y of .* lies outside the memory .* at address {outside:#x}"):
        run(with_buffer(plan, "value:y", address_bytes=outside))


def test_overlapping_buffers(plan: ModulePlan) -> None:
    shift = next(b for b in plan.buffers if b.name == "shift")
    with pytest.raises(SimTrap, match="overlaps live buffer"):
        run(with_buffer(plan, "value:y", address_bytes=shift.address_bytes))


def test_a_buffer_too_small_for_what_lies_there(plan: ModulePlan) -> None:
    with pytest.raises(SimTrap, match="buffer value:y holds 4 bytes, 8 are accessed"):
        run(with_buffer(plan, "value:y", size_bytes=4))


def test_a_buffer_that_dies_before_its_last_reader(plan: ModulePlan) -> None:
    with pytest.raises(SimTrap, match="operator 'second': access to buffer value:y, which is not live"):
        run(with_buffer(plan, "value:y", last=0))


def test_an_operator_before_its_producer(plan: ModulePlan) -> None:
    buffers = tuple(replace(b, first=0, last=1) for b in spread(plan.buffers))
    early = replace(plan, operators=tuple(reversed(plan.operators)), buffers=buffers)
    with pytest.raises(SimTrap, match=r"operator .second.: .*y"):
        run(early)


def spread(buffers: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
    """Return the buffers at addresses of their own, so that all can live at once."""
    result: list[Buffer] = []
    address = CHIP.reserved_bytes
    for buffer in buffers:
        result.append(replace(buffer, address_bytes=address))
        address += aligned_size(buffer.size_bytes)
    return tuple(result)


def test_an_operand_claimed_to_lie_where_it_does_not(plan: ModulePlan) -> None:
    first = plan.operators[0]
    claim = replace(first.arrivals[1], kind="in_place", buffer="idle:w0")
    wrong = replace(first, arrivals=(first.arrivals[0], claim))
    with pytest.raises(SimTrap, match="w0 does not lie in idle:w0 as the operand needs it"):
        run(replace(plan, operators=(wrong, *plan.operators[1:])))


def test_an_operand_that_never_arrives(plan: ModulePlan) -> None:
    first = plan.operators[0]
    wrong = replace(first, arrivals=first.arrivals[:1])
    with pytest.raises(SimTrap, match="operand w0 never arrives"):
        run(replace(plan, operators=(wrong, *plan.operators[1:])))


def test_a_rotated_activation_is_lost_for_later_readers() -> None:
    add = specs.elementwise((6, 12), name="add", a="x", b="x", o="y")
    product = specs.matmul(6, 6, 12, name="product", a="y", b="w", c="p")
    late = specs.elementwise((6, 12), name="late", a="y", b="y", o="q")
    graph = specs.chain_graph("lost", (add, product, late))
    # The sum lies as the product needs it: core (i, j) holds rows of i and the columns its window begins at.
    product_plan = plan_of(product, (1, 3, 1), ((1, 1, 3), (1, 1, 1), (1, 1, 1)))
    plan = scheduled(graph, (plan_of(add, (1, 3)), product_plan, plan_of(late, (1, 3))), chip_of(3))
    claim = replace(plan.operators[1].arrivals[0], kind="in_place", buffer="value:y")
    old = plan.operators[1]
    moved = scheduled_operator(product, old.active, (claim, *old.arrivals[1:]), old.output_layout)
    plan = replace(plan, operators=(plan.operators[0], moved, plan.operators[2]))
    given = random_values((*graph.inputs, *graph.weights))
    with pytest.raises(SimTrap, match=r"operator .late.: .*y"):
        executed(plan, chip_of(3), given)


def test_inputs_are_checked(plan: ModulePlan) -> None:
    given = random_values((*GRAPH.inputs, *GRAPH.weights))
    with pytest.raises(InputError, match="input 'x' is missing"):
        executed(plan, CHIP, {k: v for k, v in given.items() if k != "x"})
    with pytest.raises(InputError, match=r"input 'x' is float32 of shape \(4, 6\), expected float16"):
        executed(plan, CHIP, given | {"x": given["x"].astype(np.float32)})
    with pytest.raises(InputError, match="no operator 'third'"):
        executed(plan, CHIP, given, until="third")
