"""Chips that shift while they compute: what steps hide is priced, bounded, planned for, executed and proved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from types import MappingProxyType

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support import specs
from support.engines import by_runtime
from support.random_specs import random_operator
from support.whole_space import whole_front

from t10.chip import ChipSpec, load_chip
from t10.core.arrays import Bools, Ints
from t10.core.costs import rotates_output, shift_cycles, step_part_cycles
from t10.core.expression import OperatorSpec
from t10.core.operator_body import loop_statements, rotating_operands
from t10.core.overlap import second_windows
from t10.core.plan import OperatorPlan
from t10.core.program import Shift, SubTask
from t10.cost import IpuCostModel, operator_cycles, register_cost
from t10.cost.model import least_costs
from t10.cost.registry import cost_model, registering
from t10.driver import Executable, compile
from t10.errors import InputError, SimTrap
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.search.evaluate import evaluate, placed_plan
from t10.plan.search.operator import search_operator
from t10.plan.search.temporal import TemporalSpace
from t10.plan.verify.module import verify_module
from t10.random_inputs import random_inputs

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
CHANGES: dict[str, dict[str, int]] = {
    "counted": {},
    "closed forms": {"n_workers": 4},
    "slow": {"exchange_bytes_per_cycle": 1, "sync_cycles": 2000},
    "fast": {"sync_cycles": 0, "setup_cycles": 0, "latency_neighbour_cycles": 1, "launch_cycles": 0},
}


def overlapped(name: str = "test-16", fields: Mapping[str, int] = MappingProxyType({})) -> ChipSpec:
    return load_chip(name).model_copy(update={"execution": "overlapped", **fields})


def in_turn(chip: ChipSpec) -> ChipSpec:
    return chip.model_copy(update={"execution": "bulk-synchronous"})


def random_plans(rng: Random, n: int) -> list[tuple[OperatorSpec, OperatorPlan]]:
    """Return plans in which something rotates."""
    found: list[tuple[OperatorSpec, OperatorPlan]] = []
    while len(found) < n:
        spec = random_operator(rng)
        f_op = tuple(rng.choice([1, 2, 3, 4]) if axis.is_splittable else 1 for axis in spec.axes)
        if np.prod(f_op) > 16 or any(f > e for f, e in zip(f_op, spec.extents, strict=True)):
            continue
        rows = TemporalSpace.of(spec).partitions(f_op, 0.0)
        rows = rows[(rows > 1).any(axis=(1, 2))]
        if len(rows):
            ft = tuple(tuple(row) for row in rng.choice(rows.tolist()))
            plan = placed_plan(spec, f_op, ft)
            found += [] if plan is None else [(spec, plan)]
    return found


@dataclass(frozen=True, slots=True)
class SlowSums(IpuCostModel):
    """A model in which steps that add to sums take longer than those that begin them."""

    def step_cycles_many(self, spec: OperatorSpec, boxes: Ints, windows: Ints, adds: Bools) -> Ints:
        return IpuCostModel.step_cycles_many(self, spec, boxes, windows, adds) + 100 * adds


def walked(cost: IpuCostModel, spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return what steps do not hide of shifts, statement by statement."""
    total, step, touched = 0, 0, set[object]()
    for statement in loop_statements(plan.loop_order, plan.steps, rotating_operands(plan)):
        if isinstance(statement, SubTask):
            outputs = tuple(p for axis, p in enumerate(statement.positions) if axis in spec.output.axes)
            adds = spec.combine != "none" and (rotates_output(spec, plan) or outputs in touched)
            touched.add(outputs)
            step = sum(step_part_cycles(cost, spec, plan, statement.positions, adds=adds))
        elif isinstance(statement, Shift):
            cycles = shift_cycles(cost, spec, plan, statement)
            total += cycles if len(spec.inputs) in statement.operands else max(0, cycles - step)
    return total


@pytest.mark.parametrize("name", CHANGES)
def test_a_step_takes_as_long_as_the_longer_of_compute_and_shift(name: str) -> None:
    chip = overlapped(fields=CHANGES[name])
    hidden = waiting = 0
    for spec, plan in random_plans(Random(7), 60):
        price, other = (operator_cycles(IpuCostModel(each), spec, plan) for each in (chip, in_turn(chip)))
        assert price.shift == walked(IpuCostModel(chip), spec, plan)
        assert (price.compute, price.reduce) == (other.compute, other.reduce)
        assert price.shift <= other.shift
        hidden += price.shift < other.shift
        waiting += price.shift > 0
    assert hidden > 10
    assert waiting > 3


def test_steps_that_begin_sums_hide_less() -> None:
    chip = overlapped(fields={**CHANGES["slow"], "n_workers": 4})
    longer = 0
    for spec, plan in random_plans(Random(5), 30):
        found = operator_cycles(SlowSums(chip), spec, plan).shift
        assert found == walked(SlowSums(chip), spec, plan)
        longer += found < operator_cycles(IpuCostModel(chip), spec, plan).shift
    assert longer


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CHANGES)
def test_no_bound_exceeds_the_price(name: str) -> None:
    cost = IpuCostModel(overlapped(fields=CHANGES[name]))
    for spec, plan in random_plans(Random(3), 20 if name == "counted" else 60):
        rows = np.array([plan.f_op], np.int64), np.array([plan.ft], np.int64)
        least, exact = evaluate(spec, least_costs(cost), *rows), evaluate(spec, cost, *rows)
        assert least.cycles[0] <= exact.cycles[0]
        assert exact.shift[0] == operator_cycles(cost, spec, plan).shift


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("chip", ["test-4", "test-2x4", "test-ring"])
def test_search_finds_the_front_of_the_whole_space(name: str, chip: str) -> None:
    spec_chip = overlapped(chip, CHANGES[name])
    cost, options = IpuCostModel(spec_chip), PlanOptions(max_front=10_000)
    for spec in (specs.matmul(4, 6, 8), specs.matmul(1, 16, 8), specs.linear_relu(12, 8, 24)):
        front = search_operator(spec, spec_chip, cost, options).front
        found = [((p.plan.f_op, p.plan.ft), p.cycles.total, p.active_bytes) for p in front]
        assert sorted(found) == sorted(whole_front(spec, spec_chip, cost, options))


def product(m: int, k: int, n: int) -> onnx.ModelProto:
    weight = np.random.default_rng(0).standard_normal((k, n)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [m, k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [m, n])],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def made_of(
    model: onnx.ModelProto, chip: ChipSpec, tmp_path: Path, options: PlanOptions | None = None
) -> Executable:
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    return compile(tmp_path / "model.onnx", chip=chip, options=options, program=False)


def check_executed(made: Executable, model: onnx.ModelProto) -> None:
    """Check numbers against ONNX Runtime, the clock against prices, and the plan."""
    assert verify_module(made.plan, made.chip) == []
    inputs = random_inputs(made.plan.graph, 0)
    result = made.execute(inputs)
    for output, expected in by_runtime(model, inputs).items():
        np.testing.assert_allclose(result.outputs[output], expected, rtol=2e-2, atol=2e-3)
    for scheduled, executed in zip(made.plan.operators, result.operators, strict=True):
        assert executed.cycles == scheduled.active.cycles


@pytest.mark.parametrize("extents", [(96, 96, 96), (40, 128, 70), (64, 256, 64), (130, 70, 90)])
def test_a_product_that_rotates_is_executed_as_priced(extents: tuple[int, int, int], tmp_path: Path) -> None:
    model, chip = product(*extents), overlapped(fields={"sram_bytes": 40 * 1024})
    made = made_of(model, chip, tmp_path)
    check_executed(made, model)
    (operator,) = made.plan.operators
    spec, plan = made.plan.graph.operators[0], operator.active.plan
    assert any(t > 1 for row in plan.ft for t in row)
    buffers = {b.name: b.size_bytes for b in made.plan.buffers}
    assert buffers.get(f"second:{spec.name}", 0) == sum(second_windows(spec, plan).values())


def test_two_inputs_that_rotate_together_have_second_windows_apart(tmp_path: Path) -> None:
    model, chip = product(64, 64, 64), overlapped()
    forced = ForcedPartition("y", (4, 4, 1), ((1, 1, 4), (1, 1, 4), (1, 1, 1)))
    made = made_of(model, chip, tmp_path, PlanOptions(forced=(forced,)))
    check_executed(made, model)
    spec, plan = made.plan.graph.operators[0], made.plan.operators[0].active.plan
    assert len(second_windows(spec, plan)) == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["mlp", "conv", "softmax", "gather"])
@pytest.mark.parametrize("chip", ["test-16", "test-mesh"])
def test_models_are_executed_as_priced(name: str, chip: str, tmp_path: Path) -> None:
    model = onnx.ModelProto.FromString((MODELS / f"{name}.onnx").read_bytes())
    check_executed(made_of(model, overlapped(chip), tmp_path), model)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("chip", ["test-overlapped", "wormhole-n150", "spyre", "h800-cluster", "wse-2"])
def test_bundled_chips_that_overlap_execute_a_model(chip: str, tmp_path: Path) -> None:
    spec, model = load_chip(chip), onnx.ModelProto.FromString((MODELS / "conv.onnx").read_bytes())
    assert spec.overlaps
    check_executed(made_of(model, spec, tmp_path), model)


def test_a_model_takes_less_time_where_there_is_room(tmp_path: Path) -> None:
    cycles: list[int] = []
    chip = overlapped(fields={"sram_bytes": 64 * 1024})
    for each in (chip, in_turn(chip)):
        made = made_of(product(64, 256, 64), each, tmp_path)
        check_executed(made, product(64, 256, 64))
        cycles.append(sum(operator.active.cycles.total for operator in made.plan.operators))
    assert cycles[0] < cycles[1]


def test_the_same_plan_takes_more_memory_and_no_more_time() -> None:
    spec, chip = specs.matmul(64, 64, 64), overlapped()
    rows = ((1, 1, 4), (1, 1, 1), (1, 1, 1))
    asked = np.array([(4, 4, 1)], np.int64), np.array([rows], np.int64)
    one = evaluate(spec, IpuCostModel(in_turn(chip)), *asked)
    both = evaluate(spec, IpuCostModel(chip), *asked)
    assert both.cycles[0] < one.cycles[0]
    window = 16 * 16 * 2
    assert both.active_bytes[0] == one.active_bytes[0] + window


@pytest.mark.parametrize("n_steps", [2, 3, 4])
def test_weights_return_to_where_they_rest(n_steps: int, tmp_path: Path) -> None:
    model = product(2 * n_steps, 12, 12)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    forced = ForcedPartition("y", (n_steps, 4, 1), ((1, 1, 1), (1, 1, n_steps), (1, 1, 1)), idle_level=1)
    made = compile(tmp_path / "model.onnx", chip=overlapped(), options=PlanOptions(forced=(forced,)))
    (operator,) = made.plan.operators
    shifts = [each for each in operator.body if isinstance(each, Shift)]
    assert [each.stop for each in shifts] == [*range(1, n_steps), 0]
    check_executed(made, model)


def test_second_windows_are_proved_and_needed(tmp_path: Path) -> None:
    model = product(96, 96, 96)
    made = made_of(model, overlapped(fields={"sram_bytes": 44 * 1024}), tmp_path)
    name = f"second:{made.plan.graph.operators[0].name}"
    without = replace(made.plan, buffers=tuple(b for b in made.plan.buffers if b.name != name))
    assert any(name in str(each) for each in verify_module(without, made.chip))
    small = tuple(
        replace(b, size_bytes=b.size_bytes - 16) if b.name == name else b for b in made.plan.buffers
    )
    assert any(name in str(each) for each in verify_module(replace(made.plan, buffers=small), made.chip))
    with pytest.raises(SimTrap, match=name):
        replace(made, plan=without).execute(random_inputs(made.plan.graph, 0))


def test_the_backend_and_other_cost_models_refuse_it(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(product(8, 8, 8).SerializeToString())
    with pytest.raises(InputError, match="execution: found overlapped, expected bulk-synchronous"):
        compile(tmp_path / "model.onnx", chip=overlapped(), program=True)
    with pytest.raises(InputError, match="'t10-paper' does not price chips that shift while they compute"):
        cost_model("t10-paper", overlapped())


def test_shifts_hide_behind_steps_of_a_users_cost() -> None:
    chip = overlapped()
    with registering():
        register_cost("contraction", lambda _, boxes: 1_000_000 + 0 * boxes[:, 0], name="long")
        slow = cost_model("ipu", chip)
        spec = specs.matmul(64, 64, 64)
        plan = placed_plan(spec, (4, 4, 1), ((1, 1, 4), (1, 1, 1), (1, 1, 1)))
        assert plan is not None
        assert operator_cycles(slow, spec, plan).shift == 0
