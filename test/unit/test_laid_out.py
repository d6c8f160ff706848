"""Inputs that operators read through views or with halos lie where they are read, else near the cores that do."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support import random_moves
from support.models import save, weights
from support.random_moves import Arriving

import t10
from t10.backend import run_on_tiles
from t10.chip import load_chip
from t10.chip.levels import Level
from t10.core import movement
from t10.core.graph import Graph, GraphOutput, TensorValue, View
from t10.core.laid_out import LayoutOperators, reads_all, seen_operand
from t10.core.schedule import ModulePlan, ValueLayout
from t10.cost import IpuCostModel
from t10.plan import schedule
from t10.plan.assemble import read_layouts
from t10.plan.context import context_of
from t10.plan.memory.levels import replica_count
from t10.plan.movement.arrivals import Mover
from t10.plan.options import PlanOptions
from t10.plan.schedule import sum_of_cycles
from t10.plan.verify.module import verify_module
from t10.reference import run_onnx_runtime

COST = IpuCostModel(load_chip("test-64"))
HALF, FLOAT = TensorProto.FLOAT16, TensorProto.FLOAT
N_CASES = 600


def laid_out_cases() -> list[tuple[int, Arriving, str]]:
    """Return random arrivals, and inputs that they read through views, whole, as one box."""
    found: list[tuple[int, Arriving, str]] = []
    for seed in range(N_CASES):
        case = random_moves.random_arriving(seed)
        operand = case.spec.operands[case.number]
        for value in case.graph.inputs:
            if value.name == operand.name or value.name not in case.layouts:
                continue
            seen = seen_operand(case.graph, operand, value.name)
            if seen is not None and reads_all(case.spec, seen) and prod(case.plan.ft[case.number]) == 1:
                found.append((seed, case, value.name))
    return found


@pytest.fixture(scope="module")
def cases() -> list[tuple[int, Arriving, str]]:
    found = laid_out_cases()
    assert len(found) > 25
    return found


def as_read(case: Arriving, value: str, scatter: int = 1) -> ValueLayout:
    """Return the layout of a value as an arrival reads it."""
    dtype = case.spec.operands[case.number].dtype
    plan = case.plan
    return ValueLayout("operand", value, plan.n_cores, dtype, case.spec.name, case.number, plan, scatter)


def test_cores_hold_what_they_read(cases: list[tuple[int, Arriving, str]]) -> None:
    """What a core reads of a value, by the numbers of elements that views show, lies on it; no element is left out."""
    for seed, case, value in cases:
        through = movement.view_elements(case.graph, case.spec.operands[case.number].name)
        shapes = case.graph.shape_by_value
        before = through.sources[: through.sources.index(value)]
        first = sum(prod(shapes[each]) for each in before)
        wanted = movement.operand_elements(case.spec, case.plan, case.number).reshape(case.plan.n_cores, -1)
        read = np.where(wanted < 0, -1, through.ids.reshape(-1)[np.maximum(wanted, 0)]) - first
        layout, n_elements = as_read(case, value), prod(shapes[value])
        home = movement.layout_map(LayoutOperators(case.graph).of(layout), layout, n_elements)
        for core, held in enumerate(home.elements):
            own = read[core][(read[core] >= 0) & (read[core] < n_elements)]
            assert set(own.tolist()) <= set(held[held >= 0].tolist()), f"seed {seed}"
        assert set(home.elements[home.elements >= 0].tolist()) == set(range(n_elements)), f"seed {seed}"


@pytest.mark.parametrize("is_cut", [False, True])
def test_what_moves_from_there_is_counted_alike(cases: list[tuple[int, Arriving, str]], is_cut: bool) -> None:
    for seed, case, value in cases:
        seen = LayoutOperators(case.graph).of(as_read(case, value))
        assert seen is not None
        scatter = replica_count(seen, case.plan, case.number) if is_cut else 1
        moved = replace(case, layouts=case.layouts | {value: as_read(case, value, scatter)})
        expected = random_moves.reference_traffic(moved, COST.move_rates)
        arguments = case.spec, case.plan, case.number, moved.layouts
        assert Mover(case.graph, COST, 64).traffic(*arguments) == expected, f"seed {seed}"


def test_a_layout_of_what_is_no_box_is_refused() -> None:
    case = next(each for _, each, _ in laid_out_cases())
    operand = case.spec.operands[case.number]
    views = (
        View("turned", "slice", ("x",), operand.shape, "f32", tuple(n - 1 for n in operand.shape),
             (-1,) * len(operand.shape)),
    )  # fmt: skip
    graph = Graph("g", (TensorValue("x", operand.shape, "f32"),), (), (), views, (GraphOutput("y", "x"),))
    assert seen_operand(graph, replace(operand, name="turned"), "x") is None


def decoding(path: Path, cached: int = 15) -> Path:
    """Return a model that appends keys and values of a token to caches and attends to them."""
    nodes = [
        helper.make_node("Concat", ["kc", "k"], ["kk"], axis=2),
        helper.make_node("Concat", ["vc", "v"], ["vv"], axis=2),
        helper.make_node("Transpose", ["kk"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "vv"], ["o"]),
    ]
    token, cache = (HALF, [2, 3, 1, 13]), (HALF, [2, 3, cached, 13])
    shapes = {"q": token, "k": token, "v": token, "kc": cache, "vc": cache}
    whole = (HALF, [2, 3, cached + 1, 13])
    return save(path / "m.onnx", nodes, shapes, {"o": token, "kk": whole, "vv": whole})


def test_a_cache_lies_where_the_attention_reads_it(tmp_path: Path) -> None:
    path = decoding(tmp_path)
    executable = t10.compile(path, chip="test-16:n_cores=11")
    plan = executable.plan
    layouts = {layout.value: layout for layout in plan.input_layouts}
    assert (layouts["kc"].kind, layouts["kc"].operator) == ("operand", "s")
    # 6 heads of 13 keys arrive; their caches of 195 elements each do not.
    arrival = next(a for a in plan.operators[0].arrivals if a.operand == 1)
    assert arrival.received_bytes <= 2 * 13
    ran = run_on_tiles(
        executable,
        inputs := {
            value.name: weights(n, *value.shape, dtype="float16") for n, value in enumerate(executable.inputs)
        },
    )
    assert ran.cycles == executable.report().total_cycles
    for name, expected in run_onnx_runtime(path, inputs).items():
        np.testing.assert_allclose(ran.outputs[name], expected, rtol=5e-3, atol=5e-3)


def test_the_checker_refuses_a_layout_as_what_reads_only_another_value(tmp_path: Path) -> None:
    chip = load_chip("test-16:n_cores=11")
    plan = t10.compile(decoding(tmp_path), chip=chip).plan
    assert not verify_module(plan, chip)

    def rules(**changes: str | int) -> set[str]:
        layouts = tuple(
            replace(each, **changes) if each.value == "kc" else each for each in plan.input_layouts
        )
        return {each.rule for each in verify_module(replace(plan, input_layouts=layouts), chip)}

    assert rules(operand=0) == {"layouts"}
    assert rules(scatter=2) == {"layouts"}


def convolving(path: Path) -> Path:
    """Return two convolutions, the first padded."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["y"], strides=[2, 2]),
    ]
    arrays = {"w": weights(0, 7, 3, 3, 3, dtype="float32"), "v": weights(1, 9, 7, 3, 3, dtype="float32")}
    return save(
        path / "c.onnx", nodes, {"x": (FLOAT, [1, 3, 19, 17])}, {"y": (FLOAT, [1, 9, 9, 8])}, **arrays
    )


def linked(n_groups: int) -> dict[str, object]:
    """Return changes of a chip to groups of five cores on a ring of slow links."""
    level = Level.model_validate
    ring = {"name": "chip", "count": n_groups, "topology": "ring",
            "link_bytes_per_second": 50_000_000, "latency_cycles": 5000}  # fmt: skip
    return {"levels": (level({"name": "core", "count": 5}), level(ring)), "n_cores": 5 * n_groups}


def planned(path: Path, n_groups: int) -> ModulePlan:
    chip = load_chip("ipu-mk2")
    changes = linked(n_groups) if n_groups > 1 else {"n_cores": 5}
    return t10.compile(path, chip=chip.model_copy(update={"name": f"slow{n_groups}", **changes})).plan


@pytest.mark.slow
def test_a_second_chip_behind_a_slow_link_makes_a_padded_convolution_no_slower(tmp_path: Path) -> None:
    path = convolving(tmp_path)
    alone, both = planned(path, 1), planned(path, 2)
    assert sum_of_cycles(both) <= sum_of_cycles(alone)
    assert {layout.n_cores for layout in both.input_layouts} == {5}


def test_windows_are_stored_where_a_core_has_room_for_their_halos(tmp_path: Path) -> None:
    chip = load_chip("test-64")
    plan = t10.compile(convolving(tmp_path), chip="test-64").plan
    value, active = plan.graph.inputs[0], plan.operators[0].active.plan

    def kind(sram_bytes: int) -> str:
        small = chip.model_copy(update={"sram_bytes": sram_bytes})
        context = context_of(plan.graph, small, COST)
        return read_layouts(context, 0, active, is_compared=False)[value.name].kind

    assert [kind(chip.reserved_bytes + kib * 1024) for kib in (9, 64)] == ["linear", "operand"]


def test_what_is_read_in_parts_lies_near_its_reader(tmp_path: Path) -> None:
    """Half of the columns are read, by every core all of them: they lie on the chip whose cores read them."""
    nodes = [
        helper.make_node("Slice", ["x", "from", "to", "axes"], ["h"]),
        helper.make_node("Transpose", ["h"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["t", "w"], ["y"]),
    ]
    numbers = {"from": np.array([0]), "to": np.array([8]), "axes": np.array([1])}
    w = weights(0, 40, 32, dtype="float32")
    shapes = {"x": (FLOAT, [40, 16])}
    plan = planned(save(tmp_path / "s.onnx", nodes, shapes, {"y": (FLOAT, [8, 32])}, w=w, **numbers), 2)
    (layout,) = plan.input_layouts
    assert (layout.kind, layout.n_cores) == ("linear", 5)
    assert plan.operators[0].active.plan.n_cores <= 5


THREE_LEVELS = """\
based_on: test-16
name: three
levels:
  - {name: core, count: 6}
  - {name: chip, count: 3, topology: ring, link_bytes_per_second: 5.3 GB/s, latency_cycles: 100}
  - {name: pair, count: 4, topology: switch, link_bytes_per_cycle: 0.5, latency_cycles: 300, multicast: false}
"""


def test_other_parts_in_different_groups_of_cores_move_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbered as each product alone is fastest, a chain sends its results over slow links."""
    sizes = (120, 200, 72)
    arrays = {f"w{n}": weights(n, *sizes[n : n + 2], dtype="float32") for n in range(2)}
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"]), helper.make_node("MatMul", ["a", "w1"], ["y"])]
    path = save(tmp_path / "m.onnx", nodes, {"x": (FLOAT, [24, 120])}, {"y": (FLOAT, [24, 72])}, **arrays)
    chip = tmp_path / "three.yaml"
    chip.write_text(THREE_LEVELS)
    made: list[object] = []

    class Watched(schedule.JointPlanner):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            made.append(self)

    monkeypatch.setattr(schedule, "JointPlanner", Watched)
    found = t10.compile(path, chip=chip)
    monkeypatch.setattr(schedule, "NUMBERED", 0)
    before = t10.compile(path, chip=chip).plan
    assert sum_of_cycles(found.plan) * 1.1 < sum_of_cycles(before)
    assert len(made) >= 4
    # Where the time is over, there is no second choice.
    made.clear()
    t10.compile(path, chip=chip, options=PlanOptions(time_limit_seconds=1e-6))
    assert len(made) == 1
    x = np.random.default_rng(3).standard_normal((24, 120)).astype(np.float32)
    np.testing.assert_allclose(
        found.run({"x": x})["y"], x @ arrays["w0"] @ arrays["w1"], rtol=1e-4, atol=1e-4
    )
