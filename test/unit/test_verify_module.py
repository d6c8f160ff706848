"""The independent checker on whole models: layouts, arrivals, buffers, one broken rule at a time."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from support import mutations, random_plans, specs
from support.paper_plans import cannon, three_against_two
from support.random_cases import small_chip

from t10.core.graph import Graph, GraphOutput, View
from t10.core.plan import OperatorPlan
from t10.core.schedule import Arrival, Buffer, ModulePlan, ValueLayout, most_bytes
from t10.errors import VerifyError
from t10.plan.verify import require_valid, verify_module

CHIP = small_chip(6)
SPREAD = OperatorPlan((2, 3), (2, 2), ((1, 1),) * 2, (0, 0), (1, 1), (), ((), ()), (0, 1))
"""The relu after the matmul, on the same cores with the same parts."""


def model(views: tuple[View, ...] = (), relu_reads: str = "c") -> ModulePlan:
    """Return matmul (a rotates 3x, b 2x along k) and relu, which takes the result from where it lies."""
    matmul, plan = three_against_two()
    relu = specs.map_unary((4, 6), "math.absi", "i32", name="relu", x=relu_reads, o="y")
    graph = specs.chain_graph("model", (matmul, relu), views)
    laid_out = random_plans.lay_out(Random(0), graph, (plan, SPREAD), CHIP)
    return laid_out if views else with_arrival(laid_out, 1, Arrival(0, "in_place", "value:c"))


def rules(plan: ModulePlan) -> set[str]:
    return {violation.rule for violation in verify_module(plan, CHIP)}


def with_buffer(plan: ModulePlan, name: str, **changes: int) -> ModulePlan:
    """Return the model with one buffer changed, and the peak that follows."""
    assert name in {buffer.name for buffer in plan.buffers}
    buffers = tuple(replace(b, **changes) if b.name == name else b for b in plan.buffers)
    return replace(plan, buffers=buffers, peak_bytes=most_bytes(buffers, plan.reserved_bytes))


def with_arrival(plan: ModulePlan, step: int, *arrivals: Arrival) -> ModulePlan:
    operators = [*plan.operators]
    operators[step] = mutations.with_body(
        plan.graph.operators[step], replace(operators[step], arrivals=arrivals)
    )
    return replace(plan, operators=tuple(operators))


def buffer_of(plan: ModulePlan, name: str) -> Buffer:
    return next(buffer for buffer in plan.buffers if buffer.name == name)


def test_the_model_is_right_and_reads_its_values_in_place() -> None:
    plan = model()
    assert plan.operators[1].arrivals == (Arrival(0, "in_place", "value:c"),)
    assert verify_module(plan, CHIP) == []
    require_valid(plan, CHIP)


def test_an_error_names_the_first_findings() -> None:
    broken = with_buffer(model(), "value:y", address_bytes=0)
    with pytest.raises(VerifyError, match=r"value:y: capacity: found bytes \[0, 16\)"):
        require_valid(broken, CHIP)


def test_operators_that_are_not_planned() -> None:
    plan = model()
    assert rules(replace(plan, operators=plan.operators[:1])) == {"operators"}
    assert rules(replace(plan, operators=plan.operators[::-1])) == {"operators"}


def test_a_wrong_operator_is_reported_by_its_name() -> None:
    plan = model()
    active = plan.operators[0].active
    wrong = replace(plan.operators[0], active=replace(active, plan=replace(active.plan, rp=(0, 0, 3))))
    found = verify_module(replace(plan, operators=(wrong, plan.operators[1])), CHIP)
    assert {(v.operator, v.rule) for v in found} == {("matmul", "pace")}


@pytest.mark.parametrize(
    ("name", "changes", "rule"),
    [
        ("value:c", {"last": 0}, "lifetime"),
        ("value:y", {"first": 2, "last": 2}, "lifetime"),
        ("value:y", {"size_bytes": 15}, "size"),
        ("shift", {"size_bytes": 64}, "size"),
        ("value:y", {"address_bytes": CHIP.reserved_bytes - 16}, "capacity"),
        ("value:y", {"address_bytes": CHIP.data_end_bytes}, "capacity"),
        ("value:y", {"address_bytes": CHIP.reserved_bytes + (1 << 17) + 8}, "alignment"),
    ],
)
def test_buffers(name: str, changes: dict[str, int], rule: str) -> None:
    assert rule in rules(with_buffer(model(), name, **changes))


def test_buffers_that_live_together_share_no_byte() -> None:
    plan = model()
    there = buffer_of(plan, "value:c").address_bytes
    # Bytes that two share are in use once, so a peak that counts both is wrong as well.
    assert rules(with_buffer(plan, "value:y", address_bytes=there)) - {"peak"} == {"overlap"}
    # The accumulator of the matmul is dead when the relu runs, if there is one; the shift buffer never is.
    shift = buffer_of(plan, "shift").address_bytes
    assert rules(with_buffer(plan, "value:y", address_bytes=shift)) - {"peak"} == {"overlap"}


def test_data_begins_where_the_program_ends() -> None:
    plan = model()
    more = replace(plan, reserved_bytes=plan.reserved_bytes + 16, peak_bytes=plan.peak_bytes + 16)
    assert rules(more) == {"capacity"}
    less = replace(plan, reserved_bytes=plan.reserved_bytes - 16, peak_bytes=plan.peak_bytes - 16)
    assert rules(less) == {"reserved"}


def test_a_peak_that_is_not_the_most_in_use() -> None:
    plan = model()
    for wrong in (plan.peak_bytes - 1, plan.peak_bytes + 1, plan.end_bytes + 16):
        assert rules(replace(plan, peak_bytes=wrong)) == {"peak"}


def test_a_missing_buffer() -> None:
    plan = model()
    fewer = tuple(b for b in plan.buffers if b.name != "shift")
    assert "buffers" in rules(replace(plan, buffers=fewer))


def test_operands_that_do_not_arrive_once() -> None:
    plan = model()
    a, b = plan.operators[0].arrivals
    assert rules(with_arrival(plan, 0, a)) == {"arrivals"}
    assert rules(with_arrival(plan, 0, a, a)) == {"arrivals"}
    assert rules(with_arrival(plan, 0, a, replace(b, kind="setup", buffer=a.buffer))) == {"arrivals"}


def test_in_place_means_element_by_element() -> None:
    plan = model()
    a, b = plan.operators[0].arrivals
    # The model's inputs lie linear over the cores, not as rotating windows.
    assert rules(with_arrival(plan, 0, Arrival(0, "in_place", "input:a"), b)) == {"in place"}
    assert rules(with_arrival(plan, 0, a, Arrival(1, "in_place", "value:c"))) == {"in place"}


def test_in_place_through_a_reshape_but_not_a_transposition() -> None:
    reshaped = View("v", "reshape", ("c",), (4, 6), "i32")
    plan = with_arrival(model((reshaped,), "v"), 1, Arrival(0, "in_place", "value:c"))
    assert verify_module(plan, CHIP) == []
    turned = View("v", "slice", ("c",), (4, 6), "i32", offsets=(0, 0), strides=(1, 1))
    plan = with_arrival(model((turned,), "v"), 1, Arrival(0, "in_place", "value:c"))
    assert rules(plan) == {"in place"}


def cannon_twice(n_readers: int) -> ModulePlan:
    """Return Cannon's algorithm on weights; the second reader of b takes it linear from the first one's idle layout."""
    spec, plan = cannon()
    second = replace(spec, name="second", output=replace(spec.output, name="d"))
    graph = specs.chain_graph("twice", (spec, second)[:n_readers])
    return random_plans.lay_out(Random(0), graph, (plan, plan)[:n_readers], small_chip(9))


def weight_layout(plan: ModulePlan, scatter: int = 1) -> ValueLayout:
    spec = plan.graph.operators[0]
    return ValueLayout("operand", "b", 9, "i32", spec.name, 1, plan.operators[0].active.plan, scatter)


def test_a_weight_may_lie_idle_as_it_is_rotated() -> None:
    plan = cannon_twice(1)
    idle = replace(plan, weight_layouts=(weight_layout(plan),))
    a = plan.operators[0].arrivals[0]
    idle = with_arrival(idle, 0, a, Arrival(1, "in_place", "idle:b"))
    size = 4 * 2 * 2
    idle = with_buffer(idle, "idle:b", size_bytes=size)
    assert verify_module(idle, small_chip(9)) == []


def test_an_idle_layout_holds_every_element() -> None:
    plan = cannon_twice(1)
    # A ring of three shares b's part once: there is one replica, so nothing to cut it over.
    cut = replace(plan, weight_layouts=(weight_layout(plan, scatter=2),))
    assert {v.rule for v in verify_module(cut, small_chip(9))} == {"layouts"}


def test_a_value_is_not_rotated_away_before_its_last_reader() -> None:
    matmul, plan = cannon()
    copy = specs.map_unary((6, 6), "math.absi", "i32", name="copy", x="x", o="a")
    parts = OperatorPlan((3, 3), (2, 2), ((1, 1),) * 2, (0, 0), (1, 1), (), ((), ()), (0, 1))
    graph = specs.chain_graph("chain", (copy, matmul))
    made = random_plans.lay_out(Random(0), graph, (parts, plan), small_chip(9))
    # Without skew the first windows of a are the parts of `copy`; with it they are elsewhere.
    in_place = with_arrival(made, 1, Arrival(0, "in_place", "value:a"), made.operators[1].arrivals[1])
    assert {v.rule for v in verify_module(in_place, small_chip(9))} == {"in place"}


def rotated_reader(kept: bool) -> ModulePlan:
    """Return a sum over the rows of a value that rotates around the cores that made it, in its own buffer."""
    make = specs.map_unary((2, 4), "math.absi", "i32", name="make", x="x", o="v")
    made = OperatorPlan((1, 2), (2, 2), ((1, 1),) * 2, (0, 0), (1, 1), (), ((), ()), (0, 1))
    product = replace(specs.matmul(2, 2, 4, "i32", a="v", b="w"), name="product")
    ring = OperatorPlan(
        f_op=(1, 2, 1), lengths=(2, 1, 4), ft=((1, 1, 2), (1, 1, 1), (1, 1, 1)), rp=(0, 0, 2), steps=(1, 1, 2),
        loop_order=(2,), phases=((), (), (random_plans.PhaseTerm((1,), 1, 2, 2),)), core_order=(0, 1, 2),
    )  # fmt: skip
    graph = specs.chain_graph("rotated", (make, product))
    if kept:
        graph = replace(graph, outputs=(*graph.outputs, GraphOutput("v", "v")))
    return random_plans.lay_out(Random(0), graph, (made, ring), CHIP)


def test_the_last_reader_may_rotate_a_value_where_it_lies() -> None:
    plan = rotated_reader(kept=False)
    here = with_arrival(plan, 1, Arrival(0, "in_place", "value:v"), plan.operators[1].arrivals[1])
    assert verify_module(here, CHIP) == []
    kept = rotated_reader(kept=True)
    there = with_arrival(kept, 1, Arrival(0, "in_place", "value:v"), kept.operators[1].arrivals[1])
    (found,) = verify_module(there, CHIP)
    assert "rotated away before the model's result reads it" in found.found


def test_layouts_of_results_follow_their_plans() -> None:
    plan = model()
    wrong = replace(plan.operators[0], output_layout=replace(plan.operators[0].output_layout, scatter=2))
    assert rules(replace(plan, operators=(wrong, plan.operators[1]))) == {"output layout"}


def test_every_weight_and_input_has_one_layout() -> None:
    plan = model()
    assert rules(replace(plan, weight_layouts=())) == {"layouts"}
    assert rules(replace(plan, input_layouts=plan.input_layouts * 2)) == {"layouts"}
    more = tuple(replace(layout, n_cores=7) for layout in plan.input_layouts)
    assert rules(replace(plan, input_layouts=more)) == {"layouts"}


def test_a_value_is_made_before_it_is_read() -> None:
    plan = model()
    matmul, relu = plan.graph.operators
    early = Graph("early", plan.graph.inputs, plan.graph.weights, (relu, matmul), (), plan.graph.outputs)
    assert "order" in rules(replace(plan, graph=early, operators=plan.operators[::-1]))
