"""What must hold of whole models' plans, whatever the model: a better chip is no slower, and a pin is no faster.

Proved of no model: states are limited. These models once broke it.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from onnx import TensorProto, helper
from support.draw import commit, drawn
from support.models import save, weights
from support.random_models import random_model
from support.random_pins import RandomPins
from support.specs import layer_norm_graph

from t10.chip import ChipSpec, load_chip
from t10.core.document import write_document
from t10.core.schedule import ModulePlan
from t10.core.tile import OVERREAD_BYTES
from t10.cost import IpuCostModel
from t10.driver import compile
from t10.plan import PlanOptions, schedule
from t10.plan.fronts import front_cache
from t10.plan.fronts.pinned import idle_levels
from t10.plan.schedule import plan_module, restore_module, sum_of_cycles

CLOSED = load_chip("test-16").model_copy(update={"n_workers": 4})
"""A core that closed forms price, which is quick."""
COUNTED = load_chip("test-16")
MODELS = Path(__file__).parents[2] / "examples" / "models"
BUNDLED = ("mlp", "conv", "depthwise", "softmax", "gather")
SMALL_SEEDS = (71, 73, 75, 76, 77, 78)
SPARES = (64, 512, 1536, 2048)
CORES = (4, 7, 16, 23, 64)
SEEDS = (4, 24, 28, 33, 39, 46, 61, 64)
SOME_SEEDS = drawn((4, 24, 33), 2)
LINKS = ({"exchange_bytes_per_cycle": 8}, {"latency_any_cycles": 10}, {"sync_cycles": 20})
PARTS = (0.6, 0.8, 1.0, 2.0)
N_DRAWN, N_PINNED, PINNED_PART = 4, 40, 0.3


def model_of(seed: int, folder: Path) -> Path:
    """Return the file of a random model."""
    path = folder / "model.onnx"
    path.write_bytes(random_model(seed)[0].SerializeToString())
    return path


def cores(n_cores: int) -> ChipSpec:
    return CLOSED.model_copy(update={"name": f"test-{n_cores}", "n_cores": n_cores})


def planned(model: Path, chip: ChipSpec) -> ModulePlan:
    return compile(model, chip, options=PlanOptions(gap=0.0)).plan


def pinned_cycles(plan: ModulePlan, chip: ChipSpec) -> int:
    """Return what a plan made for another chip takes on this one."""
    levels = idle_levels(plan)
    return sum_of_cycles(
        restore_module(
            plan.graph,
            chip,
            IpuCostModel(chip),
            tuple(operator.active for operator in plan.operators),
            tuple(levels[operator.name] for operator in plan.operators),
        )
    )


@pytest.mark.parametrize("seed", drawn(SEEDS, 3, f"{commit()} cores"))
def test_more_cores_never_plan_slower_and_no_smaller_chip_has_a_better_plan(
    seed: int, tmp_path: Path
) -> None:
    model = model_of(seed, tmp_path)
    plans = [planned(model, cores(n)) for n in CORES]
    cycles = [sum_of_cycles(plan) for plan in plans]
    assert cycles == sorted(cycles, reverse=True)
    for number, n_cores in enumerate(CORES):
        assert all(pinned_cycles(plan, cores(n_cores)) >= cycles[number] for plan in plans[:number])


def test_states_are_ranked_as_relayouts_share_a_phase(tmp_path: Path) -> None:
    """The best plan of this model on 16 cores was none of the states on 23: two relayouts counted as two phases."""
    model = model_of(64, tmp_path)
    fewer, more = (sum_of_cycles(planned(model, cores(n))) for n in (16, 23))
    assert more <= fewer


@pytest.mark.parametrize("seed", [28, 39])
def test_a_chain_changes_as_a_whole(seed: int, tmp_path: Path) -> None:
    """The best plans of these models on 16 cores ran a chain on grids that no operator alone would have on 23."""
    model = model_of(seed, tmp_path)
    fewer, more = (sum_of_cycles(planned(model, cores(n))) for n in (16, 23))
    assert more <= fewer


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SOME_SEEDS)
def test_faster_links_never_plan_slower(seed: int, tmp_path: Path) -> None:
    model = model_of(seed, tmp_path)
    cycles = sum_of_cycles(planned(model, CLOSED))
    for numbers in LINKS:
        faster = CLOSED.model_copy(update={"name": "faster", **numbers})
        assert sum_of_cycles(planned(model, faster)) <= cycles


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SOME_SEEDS)
def test_more_memory_never_plans_slower(seed: int, tmp_path: Path) -> None:
    model = model_of(seed, tmp_path)
    plan = planned(model, CLOSED)
    fixed = CLOSED.reserved_bytes + CLOSED.shift_buffer_bytes
    cycles: list[int] = []
    for part in PARTS:
        data = int((plan.peak_bytes - fixed) * part) // 16 * 16
        chip = CLOSED.model_copy(update={"name": f"part-{part}", "sram_bytes": fixed + data + 512})
        cycles.append(sum_of_cycles(planned(model, chip)))
    assert cycles == sorted(cycles, reverse=True)


@pytest.mark.slow
def test_memory_that_lies_badly_is_left_unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of choices that fit, one that takes less memory may be the faster where its buffers lie."""
    graph, few = layer_norm_graph(92, 391), COUNTED.model_copy(update={"name": "test-4", "n_cores": 4})
    peak = plan_module(graph, few).peak_bytes
    chips = [few.model_copy(update={"sram_bytes": peak + spare}) for spare in SPARES]
    cycles = [sum_of_cycles(plan_module(graph, chip)) for chip in chips]
    assert cycles == sorted(cycles, reverse=True)
    monkeypatch.setattr(schedule, "LESS", ())
    assert sum_of_cycles(plan_module(graph, chips[0])) > cycles[0]


@pytest.mark.sampled(1)
def test_more_memory_beside_programs_never_plans_slower(tmp_path: Path) -> None:
    """Also where a choice ends a little too high in one of the memories: it is not chosen again."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["y"])]
    inputs, outputs = {"x": (TensorProto.FLOAT16, [128, 210])}, {"y": (TensorProto.FLOAT16, [128, 350])}
    arrays = {"w": weights(1, 210, 350, dtype="float16"), "b": weights(2, 350, dtype="float16")}
    model = save(tmp_path / "product.onnx", nodes, inputs, outputs, **arrays)
    chips = [COUNTED.model_copy(update={"sram_bytes": size}) for size in (98_000, 99_520, 110_000)]
    cycles = [sum_of_cycles(compile(model, chip, program=True).plan) for chip in chips]
    assert cycles == sorted(cycles, reverse=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*BUNDLED, *map(str, drawn(SMALL_SEEDS, 3))])
def test_no_plan_takes_fewer_cycles_than_its_bound(name: str, tmp_path: Path) -> None:
    """Also as it is placed, in memory that it leaves and in memory that it fills."""
    model = MODELS / f"{name}.onnx" if name in BUNDLED else model_of(int(name), tmp_path)
    plan = planned(model, COUNTED)
    full = COUNTED.model_copy(update={"sram_bytes": plan.peak_bytes + OVERREAD_BYTES})
    for each in (plan, planned(model, full)):
        assert each.optimality is not None
        assert each.optimality.cycles == sum_of_cycles(each)
        assert 0 < each.optimality.bound_cycles <= each.optimality.cycles


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", SOME_SEEDS)
def test_no_legal_pins_are_faster_than_what_is_called_optimal(seed: int, tmp_path: Path) -> None:
    plan = planned(model_of(seed, tmp_path), CLOSED)
    assert plan.optimality is not None
    assert plan.optimality.bound_cycles == sum_of_cycles(plan)
    cost, rng = IpuCostModel(CLOSED), Random(seed)
    pins = [
        RandomPins(spec, CLOSED, cost, rng).near_the_best(N_DRAWN, [operator.active])
        for spec, operator in zip(plan.graph.operators, plan.operators, strict=True)
    ]
    levels = idle_levels(plan)
    for _ in range(N_PINNED):
        active = tuple(
            rng.choice(others) if rng.random() < PINNED_PART and others else operator.active
            for operator, others in zip(plan.operators, pins, strict=True)
        )
        chosen = tuple(rng.choice((levels[operator.name], 0)) for operator in plan.operators)
        pinned = restore_module(plan.graph, CLOSED, cost, active, chosen)
        assert sum_of_cycles(pinned) >= sum_of_cycles(plan)


@pytest.mark.sampled(1)
def test_a_model_planned_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    model = model_of(36, tmp_path)
    for name in ("first.json", "second.json"):
        front_cache.forget()
        write_document(tmp_path / name, planned(model, cores(64)))
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()
