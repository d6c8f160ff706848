"""Bundled models under every way to reconcile: checked, executed and compared; the exact way is never slower.

Each model is imported once; its graph is then planned for several chips, by Algorithm 1 in its readings and exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from support.compiled import MODELS, compiled
from support.draw import drawn

from t10.arrays import read_arrays
from t10.chip import load_chip
from t10.core.schedule import ModulePlan
from t10.core.stored import as_stored
from t10.cost import IpuCostModel, counts
from t10.driver import Executable, compile
from t10.plan import PlanOptions, plan_module
from t10.plan.fronts import operator_fronts, parallel_map
from t10.plan.fronts.cache import PlanCache
from t10.plan.fronts.front_cache import forget
from t10.plan.joint import choose, costs
from t10.plan.joint.selection import Selection
from t10.plan.joint.solve import Solution
from t10.plan.options import Reading
from t10.plan.schedule import sum_of_cycles
from t10.plan.verify import verify_module
from t10.reference import compare, default_tolerance, run_onnx_runtime, split_reference
from t10.sim.plan_level import simulate

CHIPS = ("test-16", "test-64", "ipu-mk2")
QUICK = ("mlp", *drawn(("nerf_fp16", "opt_fp16"), 1))
SLOW = ("bert_fp16", "vit_fp32", "resnet18_fp16", "llama2_fp32", "retnet_fp16")
NAMES = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in drawn(SLOW, 1))]
READINGS: tuple[Reading, ...] = ("literal", "aware", "best")


@cache
def imported(name: str) -> Executable:
    return compiled(name, "test-16")


@cache
def planned(name: str, chip: str, reading: Reading | None) -> ModulePlan:
    """Return the plan of Algorithm 1 in a reading, of the exact method without one."""
    exact = PlanOptions() if reading is None else PlanOptions(reconcile="greedy", reading=reading)
    return plan_module(imported(name).plan.graph, load_chip(chip), exact)


def ways(name: str, chip: str) -> Iterator[ModulePlan]:
    """Yield the plans of all ways to reconcile, equal ones once."""
    seen: list[ModulePlan] = []
    for reading in (None, *READINGS):
        plan = planned(name, chip, reading)
        if not any(plan.operators == other.operators for other in seen):
            yield plan
        seen.append(plan)


@pytest.mark.slow
@pytest.mark.parametrize("chip_name", CHIPS)
@pytest.mark.parametrize("name", NAMES)
def test_every_plan_is_legal_and_runs_right_as_fast_as_predicted(name: str, chip_name: str) -> None:
    chip = load_chip(chip_name)
    executable = imported(name)
    path = MODELS / f"{name}.onnx"
    inputs, _ = split_reference(read_arrays(path.with_suffix(".npz")))
    stored = as_stored(inputs, executable.plan.graph.inputs)
    references, tolerance = run_onnx_runtime(path, inputs), default_tolerance(executable.plan.graph)
    for plan in ways(name, chip_name):
        assert verify_module(plan, chip) == []
        result = simulate(plan, chip, IpuCostModel(chip), executable.weights, stored)
        comparisons = compare(result.outputs, references, tolerance)
        assert comparisons
        assert [each for each in comparisons if not each.is_within] == []
        assert result.cycles == sum_of_cycles(plan)
        assert result.peak_bytes == plan.peak_bytes <= chip.sram_bytes


@pytest.mark.slow
@pytest.mark.parametrize("chip_name", CHIPS)
@pytest.mark.parametrize("name", NAMES)
def test_the_exact_way_is_never_slower(name: str, chip_name: str) -> None:
    exact = planned(name, chip_name, None)
    assert exact.optimality is not None
    assert exact.optimality.method == "exact"
    for reading in READINGS:
        assert sum_of_cycles(exact) <= sum_of_cycles(planned(name, chip_name, reading))
    known = exact.optimality
    assert all(
        cycles == 0 or known.priced_cycles <= cycles for cycles in (known.literal_cycles, known.aware_cycles)
    )


LEFT_OVER = {"retnet_fp16": 0.001}
"""What a result that takes an operand's place takes more than is known while choosing, as a part of the model."""


@pytest.mark.slow
@pytest.mark.parametrize("chip_name", CHIPS)
@pytest.mark.parametrize("name", NAMES)
def test_the_gap_is_proved(name: str, chip_name: str) -> None:
    optimality = planned(name, chip_name, None).optimality
    assert optimality is not None
    assert optimality.gap is not None
    assert 0 < optimality.bound_cycles <= optimality.cycles == sum_of_cycles(planned(name, chip_name, None))
    assert optimality.gap <= PlanOptions().gap + LEFT_OVER.get(name, 0)


@pytest.mark.slow
@pytest.mark.parametrize("gap", [0.0, 0.05, 1.0])
def test_another_gap_keeps_its_promise(gap: float) -> None:
    graph = imported("opt_fp16").plan.graph
    plan = plan_module(graph, load_chip("test-64"), PlanOptions(gap=gap))
    best = planned("opt_fp16", "test-64", None)
    assert plan.optimality is not None
    assert best.optimality is not None
    assert plan.optimality.gap is not None
    assert plan.optimality.gap <= gap
    assert plan.optimality.bound_cycles <= best.optimality.cycles
    assert best.optimality.bound_cycles <= plan.optimality.cycles


def written(folder: Path, name: str, **keywords: Any) -> bytes:
    """Return the plan.json of a model compiled anew for 64 cores, with nothing remembered."""
    forget()
    compile(MODELS / f"{name}.onnx", "test-64", **keywords).save(folder)
    return (folder / "plan.json").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", drawn(["nerf_fp16", "opt_fp16", "bert_fp16"], 1))
def test_neither_threads_nor_runs_nor_caches_change_a_byte(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = written(tmp_path / "first", name)
    assert written(tmp_path / "again", name) == first
    for n_threads in (1, 4):
        monkeypatch.setattr(parallel_map, "usable_cores", lambda n=n_threads: n)
        monkeypatch.setattr(costs, "COSTING_THREADS", n_threads)
        assert written(tmp_path / f"threads{n_threads}", name) == first
    kept = PlanCache(tmp_path / "cache")
    assert written(tmp_path / "cold", name, cache=kept) == first
    monkeypatch.setattr(operator_fronts, "solve", None)
    assert written(tmp_path / "warm", name, cache=kept) == first


def test_a_large_model_is_solved_to_the_gap_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little of it is closed before the choice is exact."""
    graph, chip = imported("mlp").plan.graph, load_chip("test-16")
    monkeypatch.setattr(choose, "FEW_OPERATORS", 1)
    monkeypatch.setattr(choose, "EARLY_GAP", 0.9)
    planner, solved = choose.solve, list[float]()

    def solve(selection: Selection, gap: float, *rest: Any) -> Solution | None:
        solved.append(gap)
        found = planner(selection, gap, *rest)
        return replace(found, bound_cycles=found.bound_cycles // 2) if found and gap == 0.9 else found

    monkeypatch.setattr(choose, "solve", solve)
    plan_module(graph, chip)
    assert solved[0] == 0.9
    assert solved[-1] == PlanOptions().gap


@pytest.mark.slow
def test_helpers_do_not_change_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, chip = imported("mlp").plan.graph, load_chip("test-64")
    found: list[ModulePlan] = []
    for n_threads in (1, 3):
        forget()
        counts.forget()
        monkeypatch.setattr(parallel_map, "usable_cores", lambda n=n_threads: n)
        monkeypatch.setattr(parallel_map, "SHORT_SECONDS", 0.0)
        found.append(plan_module(graph, chip))
    assert found[0] == found[1]


@pytest.mark.slow
def test_processes_do_not_change_a_byte(tmp_path: Path) -> None:
    first = written(tmp_path / "threads", "llama2_fp32")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        assert written(tmp_path / "processes", "llama2_fp32", executor=processes) == first
