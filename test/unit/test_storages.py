"""Storage orders on chips with links: the way with the fastest plan is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper
from support.models import save, weights

from t10.chip import ChipSpec, load_chip
from t10.chip.levels import Level
from t10.cost import IpuCostModel
from t10.dialect.mlir import ir
from t10.driver import compile
from t10.frontend.importer import import_model
from t10.passes.fuse import Fuse
from t10.passes.fusion import storages
from t10.passes.fusion.storages import AS_STORED, Storage, best_storage
from t10.passes.pipeline import fused
from t10.plan.quick_choice import quick_cycles
from t10.plan.schedule import sum_of_cycles


def slow_ring(n_groups: int = 3) -> ChipSpec:
    """Return groups of 18 cores whose links pass a byte in four cycles."""
    core = Level(name="core", count=18)
    ring = Level(name="chip", count=n_groups, topology="ring", link_bytes_per_cycle=0.25, latency_cycles=170)
    changes = {"name": f"slow-ring-{n_groups}", "n_cores": 18 * n_groups, "levels": (core, ring)}
    return load_chip("test-64").model_copy(update=changes)


def few_rows(path: Path) -> Path:
    """Return a product of three rows: links pass much of it in the orders that its cores alone are fastest with."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    w = weights(0, 32, 640, dtype="float32")
    return save(
        path / "m.onnx", nodes, {"x": (TensorProto.FLOAT, [3, 32])}, {"y": (TensorProto.FLOAT, [3, 640])}, w=w
    )


def test_orders_are_those_of_the_fastest_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, chip = few_rows(tmp_path), slow_ring()
    chosen = sum_of_cycles(compile(path, chip).plan)
    monkeypatch.setattr(storages, "MOST_OPERATORS", 0)
    by_products = sum_of_cycles(compile(path, chip).plan)
    assert chosen * 1.05 < by_products
    alone = load_chip("test-64").model_copy(update={"name": "alone", "n_cores": 18})
    assert chosen <= sum_of_cycles(compile(path, alone).plan)


def test_what_is_fused_keeps_its_orders(tmp_path: Path) -> None:
    chip, module = slow_ring(), import_model(few_rows(tmp_path)).module
    with module.context, ir.Location.unknown():
        Fuse().fuse(module, chip)
        once = str(module)
        Fuse().fuse(module, chip)
        assert str(module) == once


def made(module: Any, chip: ChipSpec) -> list[Storage]:
    """Return the ways that are compared, with what comes of them."""
    tried: list[Storage] = []

    def fuse(copy: Any, storage: Storage) -> None:
        tried.append(storage)
        fused(copy, chip)

    with module.context, ir.Location.unknown():
        assert best_storage(module, chip, fuse) == Storage(chip.n_cores)
    return tried


def test_ways_are_compared_only_where_there_are_links(tmp_path: Path) -> None:
    module = import_model(few_rows(tmp_path)).module
    assert not made(module, load_chip("test-64"))
    n_cores = [54, 216, 13, 3, 0]
    assert made(module, slow_ring()) == [*map(Storage, n_cores), Storage(54, has_blocks=False)]
    assert Storage(0, has_blocks=False) == AS_STORED


def test_a_choice_in_brief_is_near_that_of_all_states(tmp_path: Path) -> None:
    chip, module = slow_ring(), import_model(few_rows(tmp_path)).module
    with module.context, ir.Location.unknown():
        graph = fused(module, chip).graph
    brief, whole = (
        quick_cycles(graph, chip, IpuCostModel(chip)),
        sum_of_cycles(compile(few_rows(tmp_path), chip).plan),
    )
    assert brief is not None
    assert whole <= brief <= 1.1 * whole
    tiny = chip.model_copy(update={"sram_bytes": chip.reserved_bytes + chip.shift_buffer_bytes + 1024})
    assert quick_cycles(graph, tiny, IpuCostModel(tiny)) is None
