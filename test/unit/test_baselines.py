"""Baselines compute what the models do, and what is priced is what moves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.specs import matmul, one_operator_graph

from t10.arrays import Arrays, read_arrays
from t10.baselines.ansor import Ansor
from t10.baselines.checked import check_tiles
from t10.baselines.execute import run_model, run_operator, shared_memory
from t10.baselines.load_compute_store import Shared, timed
from t10.baselines.poplin import plan_poplin
from t10.baselines.roller import Roller
from t10.baselines.shares import segments_of, share_elements
from t10.baselines.tiles import Tiling
from t10.baselines.traffic import Exchange
from t10.baselines.vgm import TileSearch, plan_vgm, regions_of
from t10.chip import load_chip
from t10.core.graph import Graph
from t10.core.stored import as_stored
from t10.cost.registry import cost_model, given
from t10.dialect.mlir import ir
from t10.errors import InfeasiblePlanError, T10Error
from t10.frontend.importer import import_model
from t10.passes.pipeline import fused
from t10.reference import compare, default_tolerance, run_onnx_runtime, split_reference
from t10.sim.plan_level import simulate

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
CHIP = load_chip("test-16")
PRICES = cost_model(given("t10-paper"), CHIP)


def _read(name: str, *, joins: bool) -> tuple[Graph, Arrays, Arrays, Arrays]:
    imported = import_model(MODELS / f"{name}.onnx")
    with imported.module.context, ir.Location.unknown():
        read = fused(imported.module, CHIP, joins=joins)
    inputs, _ = split_reference(read_arrays(MODELS / f"{name}.npz"))
    weights = {**as_stored(imported.weights, read.graph.weights), **read.constants}
    return read.graph, weights, inputs, run_onnx_runtime(MODELS / f"{name}.onnx", inputs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "system", "joins"),
    [
        *((name, Roller(), False) for name in ("bert_fp16", "resnet18_fp16", "gather")),
        *((name, Roller(splits_sums=True), True) for name in ("bert_fp16", "resnet18_fp16", "gather")),
        *((name, Ansor(16), False) for name in ("bert_fp16", "gather")),
    ],
    ids=str,
)
def test_models_over_a_virtual_global_memory_compute_what_onnx_runtime_does(
    name: str, system: TileSearch, *, joins: bool
) -> None:
    graph, weights, inputs, expected = _read(name, joins=joins)
    plan = plan_vgm(graph, CHIP, PRICES, system)
    tilings = {each.name: each.timed.tiling for each in plan.operators}
    found = run_model(graph, tilings, {**weights, **as_stored(inputs, graph.inputs)}, CHIP.n_cores)
    compared = compare(found, expected, default_tolerance(graph))
    assert compared
    assert all(each.is_within for each in compared)


@pytest.mark.parametrize("tiling", [Tiling((3, 4, 5)), Tiling((2, 2, 2), splits=3), Tiling((7, 6, 8))])
def test_tiles_in_waves_and_steps_make_the_whole_product(tiling: Tiling) -> None:
    spec = matmul(7, 6, 16, "f32")
    graph = one_operator_graph(spec)
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(operand.shape).astype(np.float32) for operand in spec.inputs)
    memory = shared_memory({"a": a, "b": b}, {"a": "f32", "b": "f32"}, 4)
    run_operator(Shared.of(graph, spec, 4), tiling, memory, 4)
    found = memory[spec.output.name].reshape(-1)[: 7 * 6].reshape(7, 6)
    np.testing.assert_allclose(found, a @ b, rtol=1e-5, atol=1e-5)


def test_a_tile_that_loads_from_elsewhere_is_found() -> None:
    spec = matmul(7, 6, 16, "f32")
    graph = one_operator_graph(spec)
    shared = Shared.of(graph, spec, 4)
    assert check_tiles(graph, shared, Tiling((2, 4, 5)), 4)
    shifted = replace(shared.operands[0], slots=shared.operands[0].slots[::-1].copy() + 1)
    wrong = replace(shared, operands=(shifted, *shared.operands[1:]))
    with pytest.raises((T10Error, IndexError)):
        check_tiles(graph, wrong, Tiling((2, 4, 5)), 4)


@pytest.mark.parametrize("exchange", ["multicast", "unicast", "no fragments"])
def test_sending_to_each_by_itself_is_never_faster_and_fragments_cost(exchange: Exchange) -> None:
    chip = load_chip("test-16")
    cost = cost_model(given("ipu"), chip)
    spec = matmul(64, 64, 64)
    shared = Shared.of(one_operator_graph(spec), spec, chip.n_cores)
    found = timed(shared, Tiling((16, 16, 64)), chip, cost, exchange).load
    usual = timed(shared, Tiling((16, 16, 64)), chip, cost, "multicast").load
    assert found >= usual if exchange != "no fragments" else found < usual


def test_regions_are_equal_shares() -> None:
    """Input and output of NeRF's frame are 352.2 KiB of every core, as the paper measured (352.3)."""
    rows = 2_073_600
    assert 2 * 2 * share_elements(rows * 64, "f16", 1472) / 1024 == pytest.approx(352.2, abs=0.1)
    graph, *_ = _read("bert_fp16", joins=True)
    assert all(each.active_bytes > 0 for each in regions_of(graph, 16))


def test_what_is_read_through_a_reshape_lies_as_its_source() -> None:
    graph, *_ = _read("bert_fp16", joins=True)
    sources = {view.name: view.sources[0] for view in graph.views if view.kind == "reshape"}
    read = {o.name: o.dtype for spec in graph.operators for o in spec.operands if o.name in sources}
    plain = [name for name in read if graph.sources_of(name) == (sources[name],)]
    assert plain
    for name in plain:
        shared = segments_of(graph, name, read[name], 16)
        assert shared.names == (sources[name],)
        assert len(shared.starts) <= 16


@pytest.mark.parametrize("name", ["bert_fp16", "gather"])
def test_plans_with_one_mapping_per_tensor_run_on_our_simulator(name: str) -> None:
    graph, weights, inputs, expected = _read(name, joins=False)
    plan = plan_poplin(graph, CHIP, PRICES)
    found = simulate(plan, CHIP, PRICES, weights, as_stored(inputs, graph.inputs)).outputs
    compared = compare(found, expected, default_tolerance(graph))
    assert compared
    assert all(each.is_within for each in compared)


def test_a_model_whose_tensors_have_no_room_is_refused() -> None:
    with pytest.raises(InfeasiblePlanError, match="no aligned tile fits"):
        plan_vgm(one_operator_graph(matmul(4096, 4096, 4096)), CHIP, PRICES, Roller())
