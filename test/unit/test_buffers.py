"""Buffers: which there are, from phase to phase, and results in place of operands where that is safe, nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support import reference, specs
from support.simulation import chip_of, executed, plan_of, random_values, scheduled

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph, GraphOutput
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.schedule import Buffer, ModulePlan, most_bytes
from t10.errors import SimTrap
from t10.plan.memory.buffers import requests_of
from t10.plan.memory.room import placed_behind
from t10.plan.verify import verify_module

CHIP = chip_of(4)
SHAPE = (4, 8)


def buffer_of(plan: ModulePlan, name: str) -> Buffer:
    return next(buffer for buffer in plan.buffers if buffer.name == name)


def lifetime(plan: ModulePlan, name: str) -> tuple[int, str, int, str]:
    buffer = buffer_of(plan, name)
    return buffer.first, buffer.first_phase, buffer.last, buffer.last_phase


def taken_over(plan: ModulePlan) -> dict[str, str]:
    """Return what every buffer takes over that begins on the bytes of another that ends in the same phase."""
    return {
        new.name: old.name
        for new in plan.buffers
        for old in plan.buffers
        if new is not old
        and old.last_moment == new.first_moment
        and (old.address_bytes, old.size_bytes) == (new.address_bytes, new.size_bytes)
    }


def planned(graph: Graph, *f_ops: tuple[int, ...], chip: ChipSpec = CHIP) -> ModulePlan:
    """Return a schedule of chosen partitions, right by the checker and by its results; no wishes keep buffers apart."""
    plans = tuple(plan_of(spec, f_op) for spec, f_op in zip(graph.operators, f_ops, strict=True))
    plan = scheduled(graph, plans, chip)
    plan = placed_behind(plan, chip, requests_of(plan, chip), (), plan.reserved_bytes)
    assert verify_module(plan, chip) == []
    assert runs_right(plan, chip)
    return plan


def runs_right(plan: ModulePlan, chip: ChipSpec = CHIP) -> bool:
    given = random_values((*plan.graph.inputs, *plan.graph.weights))
    result = executed(plan, chip, given)
    assert result.peak_bytes == plan.peak_bytes
    due = reference.run(plan.graph, given)
    return all(np.array_equal(result.outputs[name], due[name]) for name in due)


def double(name: str, x: str, o: str, dtype: str = "i32", shape: tuple[int, ...] = SHAPE) -> OperatorSpec:
    """Return o = x + x, read once."""
    opcode = "arith.addi" if dtype == "i32" else "arith.addf"
    body = ScalarFunction(1, (ScalarOp(opcode, (0, 0), dtype),), 1)
    return replace(specs.map_unary(shape, dtype=dtype, name=name, x=x, o=o), body=body)


def add(name: str, a: str, b: str, o: str) -> OperatorSpec:
    return specs.elementwise(SHAPE, "arith.addi", "i32", name=name, a=a, b=b, o=o)


def test_elementwise_operators_of_a_chain_share_one_buffer() -> None:
    graph = specs.chain_graph("chain", (double("f", "x", "a"), double("g", "a", "b"), double("h", "b", "c")))
    plan = planned(graph, (4, 1), (4, 1), (4, 1))
    assert taken_over(plan)["value:b"] == "value:a"
    assert taken_over(plan)["value:c"] == "value:b"
    assert lifetime(plan, "value:b") == (1, "nest", 2, "nest")


def test_a_value_read_again_later_is_not_taken_over() -> None:
    graph = specs.chain_graph(
        "again", (double("f", "x", "a"), double("g", "a", "b"), add("h", "a", "b", "c"))
    )
    plan = planned(graph, (4, 1), (4, 1), (4, 1))
    assert "value:b" not in taken_over(plan)
    assert taken_over(plan)["value:c"] in ("value:a", "value:b")


def test_what_the_model_returns_is_not_taken_over() -> None:
    graph = specs.chain_graph("kept", (double("f", "x", "a"), double("g", "a", "b")))
    kept = replace(graph, outputs=(*graph.outputs, GraphOutput("middle", "a")))
    assert "value:b" in taken_over(planned(graph, (4, 1), (4, 1)))
    assert "value:b" not in taken_over(planned(kept, (4, 1), (4, 1)))


def test_a_value_read_twice_by_one_operator_is_taken_over() -> None:
    graph = specs.chain_graph("twice", (double("f", "x", "a"), add("g", "a", "a", "b")))
    assert taken_over(planned(graph, (4, 1), (4, 1)))["value:b"] == "value:a"


def test_a_reduction_takes_nothing_over() -> None:
    summed = specs.row_reduce(4, 8, "sum", "i32", name="sum", x="a", o="s")
    graph = specs.chain_graph("reduced", (double("f", "x", "a"), summed))
    assert "value:s" not in taken_over(planned(graph, (4, 1), (4, 1)))


def test_an_operand_dies_before_the_epilogue_writes_beside_the_accumulator() -> None:
    graph = specs.chain_graph("linear", (specs.matmul(4, 8, 16),))
    plan = planned(graph, (4, 1, 1))
    assert lifetime(plan, "accumulator:matmul") == (0, "nest", 0, "finish")
    assert lifetime(plan, "value:c") == (0, "finish", 0, "finish")
    weight = buffer_of(plan, "operand:matmul:1")
    assert weight.last_phase == "nest"
    value = buffer_of(plan, "value:c")
    assert value.address_bytes < weight.address_bytes + weight.size_bytes


def test_an_epilogue_of_the_accumulators_type_needs_no_second_buffer() -> None:
    linear = specs.linear_relu(4, 8, 16, "f32")
    plan = planned(specs.one_operator_graph(linear), (4, 1, 1))
    assert "accumulator:linear" not in {buffer.name for buffer in plan.buffers}
    assert lifetime(plan, "value:c")[:2] == (0, "nest")


def test_partial_sums_keep_their_accumulator() -> None:
    linear = specs.linear_relu(4, 8, 16, "f32")
    plan = planned(specs.one_operator_graph(linear), (1, 1, 4))
    assert buffer_of(plan, "accumulator:linear").size_bytes == 4 * 8 * 4
    assert buffer_of(plan, "value:c").size_bytes == 4 * 8


def test_an_epilogue_input_is_taken_over_where_the_result_is_written_after_the_nest() -> None:
    product = specs.matmul(4, 8, 16, "f16", name="product", c="c")
    residual = replace(
        product,
        epilogue=specs.linear_relu(4, 8, 16).epilogue,
        epilogue_inputs=(specs.operand("r", "activation", "f16", SHAPE, product.output.dims),),
    )
    make = double("make", "x", "r", "f16")
    graph = specs.chain_graph("residual", (make, residual))
    plan = planned(graph, (4, 1), (4, 1, 1))
    assert taken_over(plan)["value:c"] == "value:r"
    assert lifetime(plan, "value:c")[:2] == (1, "finish")
    kept = planned(replace(graph, outputs=(*graph.outputs, GraphOutput("middle", "r"))), (4, 1), (4, 1, 1))
    assert "value:c" not in taken_over(kept)
    assert "overlap" in {v.rule for v in verify_module(forced(kept, "value:c", "value:r"), CHIP)}


def forced(plan: ModulePlan, new: str, old: str) -> ModulePlan:
    """Return the plan with one buffer where another lies, meeting it in the phase in which the first begins."""
    there, here = buffer_of(plan, old), buffer_of(plan, new)
    changed = {
        old: replace(there, last=here.first, last_phase=here.first_phase),
        new: replace(here, address_bytes=there.address_bytes, size_bytes=there.size_bytes),
    }
    buffers = tuple(changed.get(b.name, b) for b in plan.buffers)
    return replace(plan, buffers=buffers, peak_bytes=most_bytes(buffers, plan.reserved_bytes))


def test_a_reduction_cannot_write_where_it_reads() -> None:
    square = specs.matmul(4, 4, 4, "i32", name="square", a="a", b="w", c="c")
    make = double("make", "x", "a", shape=(4, 4))
    plan = planned(specs.chain_graph("square", (make, square)), (4, 1), (4, 1, 1))
    assert plan.operators[1].arrivals[0].kind == "in_place"
    wrong = forced(plan, "value:c", "value:a")
    assert {violation.rule for violation in verify_module(wrong, CHIP)} == {"overlap"}
    with pytest.raises(
        SimTrap, match="value:c takes over value:a, but operand a is read there for other slots"
    ):
        runs_right(wrong)


def test_only_the_result_takes_over() -> None:
    graph = specs.chain_graph("two", (double("f", "x", "a"), add("g", "a", "z", "b")))
    plan = planned(graph, (4, 1), (4, 1))
    wrong = forced(plan, "value:a", "input:z")
    assert "overlap" in {violation.rule for violation in verify_module(wrong, CHIP)}
    with pytest.raises(SimTrap, match="value:a takes over input:z, whose slots it does not replace"):
        runs_right(wrong)
