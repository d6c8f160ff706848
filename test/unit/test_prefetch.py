"""Weights from off-chip memory: runs against every schedule, the bound, models executed, tampered plans refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.engines import by_runtime
from support.folders import take_as_it_is

import t10
from t10.chip import load_chip
from t10.cli.arguments import parse
from t10.cli.options import chip_of
from t10.compare import SYSTEMS, compared, graph_for
from t10.core.partials import Partials
from t10.core.schedule import Fetch, ModulePlan
from t10.cost.registry import DEFAULT_COST_MODEL, cost_model
from t10.dialect.mlir import ir
from t10.emit.target import check_target
from t10.errors import InputError, SimTrap
from t10.explain.choice import explain_choice
from t10.frontend.importer import import_model
from t10.passes.pipeline import module_text
from t10.passes.registry import make
from t10.passes.registry import run as apply
from t10.plan.options import PlanOptions
from t10.plan.prefetch import choose
from t10.plan.prefetch.bound import Weight, bound_cycles
from t10.plan.prefetch.paper import Group, double_buffered
from t10.plan.prefetch.run import Step, best_kept, run
from t10.plan.verify.module import verify_module
from t10.sweep import plan_point

WIDTH, LAYERS = 256, 5
CHIP = "test-4:sram_bytes=147456,hbm_bandwidth="
"""A weight takes 32 KiB of each of the four cores, of which 116 KiB are for data: three rest there, not five."""


def network(layers: int = LAYERS, width: int = WIDTH, rows: int = 4) -> onnx.ModelProto:
    """Return products of some rows by weights, one after the other."""
    random = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array((random.standard_normal((width, width)) / 16).astype(np.float16), f"w{i}")
        for i in range(layers)
    ]
    nodes = [
        helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"], name=f"p{i}") for i in range(layers)
    ]
    first, last = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT16, [rows, width])
        for name in ("x0", f"x{layers}")
    )
    model = helper.make_model(
        helper.make_graph(nodes, "chain", [first], [last], weights),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    model.ir_version = 8
    return model


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the network as a file."""
    file = tmp_path_factory.mktemp("prefetch") / "chain.onnx"
    file.write_bytes(network().SerializeToString())
    return file


RATES = ("4 GB/s", "20 GB/s", "200 GB/s")
"""Far slower than the cores, about as fast, far faster."""


@pytest.fixture(scope="module")
def by_rate(path: Path) -> dict[str, t10.Executable]:
    """Return the network on chips of different off-chip memory."""
    return {rate: t10.compile(path, CHIP + rate) for rate in RATES}


@pytest.fixture(scope="module")
def compiled(by_rate: dict[str, t10.Executable]) -> t10.Executable:
    """Return the network on a chip whose memory is about as fast as its cores."""
    return by_rate["20 GB/s"]


def inputs() -> dict[str, np.ndarray]:
    return {"x0": np.random.default_rng(1).standard_normal((4, WIDTH)).astype(np.float16)}


def every_schedule(steps: Sequence[Step], kept: frozenset[int], room: int, latency: int) -> Iterator[int]:
    """Yield what every order of beginnings takes, by going through time event by event."""
    loads = [n for n, step in enumerate(steps) if step.load_cycles and n not in kept]
    stays = sum(steps[n].rest_bytes for n in kept)
    for firsts in product(*(range(n + 1) for n in loads)):
        if list(firsts) != sorted(firsts):
            continue
        begins = dict(zip(loads, firsts, strict=True))
        used = [
            stays
            + (step.held_bytes if n in kept else step.used_bytes)
            + sum(steps[k].rest_bytes for k, first in begins.items() if first <= n < k)
            for n, step in enumerate(steps)
        ]
        if max(used) > room:
            continue
        now, channel = 0, 0
        there: dict[int, int] = {}
        for n, step in enumerate(steps):
            for k in [k for k in loads if begins[k] == n]:
                channel = (channel if channel > now else now) + steps[k].load_cycles
                there[k] = channel + latency
            now = max(now, there.get(n, now)) + step.cycles
        yield now


def random_steps(random: Random, n: int) -> list[Step]:
    steps: list[Step] = []
    for _ in range(n):
        held, rest = random.randint(1, 6), random.choice((0, random.randint(1, 5)))
        load = random.randint(1, 12) if rest else 0
        steps.append(Step(random.randint(1, 10), held + rest, held, rest, load))
    return steps


@pytest.mark.parametrize("seed", range(60))
def test_a_run_is_the_fastest_of_all_schedules_that_fetch_in_order(seed: int) -> None:
    random = Random(seed)
    steps, latency = random_steps(random, random.randint(1, 6)), random.choice((0, 3))
    room = random.randint(6, 20)
    weighted = [n for n, step in enumerate(steps) if step.load_cycles]
    everything: list[int] = []
    for kept in (frozenset(c) for k in range(len(weighted) + 1) for c in combinations(weighted, k)):
        found = run(steps, room, latency, kept)
        every = list(every_schedule(steps, kept, room, latency))
        assert (found is None) == (not every)
        if found is not None:
            assert found.cycles == min(every)
            assert found.cycles == sum(found.waits) + sum(step.cycles for step in steps)
            everything += every
    best = best_kept(steps, room, latency)
    assert (best is None) == (not everything)
    if best is not None:
        weights = [Weight(s.rest_bytes, s.used_bytes, s.load_cycles) for s in steps if s.load_cycles]
        bound = bound_cycles(sum(step.cycles for step in steps), weights, room, latency)
        assert bound <= min(everything) <= best[1].cycles


def test_fetches_go_on_while_operators_run_as_far_as_there_is_space() -> None:
    steps = [Step(10, 4, 2, 2, 6), Step(10, 4, 2, 2, 6), Step(10, 4, 2, 2, 6)]
    # Room for one weight beside an operator: only the first waits.
    roomy = run(steps, 6)
    assert roomy is not None
    assert roomy.waits == (6, 0, 0)
    assert roomy.first == (0, 0, 1)
    tight = run(steps, 5)
    assert tight is not None
    assert tight.waits == (6, 6, 6)
    assert run(steps, 3) is None


def test_the_paper_s_buffers_hide_the_longer_of_both() -> None:
    memory = load_chip("ipu-mk2:hbm_bandwidth=1.33e9").off_chip
    assert memory is not None
    assert memory.cycles(100) == 100, "a byte per cycle"
    groups = [Group(50, 100), Group(300, 200), Group(10, 40)]
    assert double_buffered(groups, memory) == 100 + max(50, 200) + max(300, 40) + 10


@pytest.mark.parametrize("rate", RATES)
def test_what_does_not_fit_is_fetched_executed_and_proved(
    by_rate: dict[str, t10.Executable], rate: str
) -> None:
    executable = by_rate[rate]
    plan = executable.plan
    assert plan.fetches
    assert plan.optimality is not None
    assert plan.optimality.method == "fetched"
    assert 0 < plan.optimality.bound_cycles <= plan.optimality.cycles
    ran = executable.execute(inputs())
    assert [each.cycles for each in ran.operators] == [each.active.cycles for each in plan.operators]
    assert ran.peak_bytes == plan.peak_bytes <= executable.chip.sram_bytes
    assert verify_module(plan, executable.chip) == []
    expected = by_runtime(network(), inputs())
    np.testing.assert_allclose(ran.outputs[f"x{LAYERS}"], expected[f"x{LAYERS}"], rtol=2e-2, atol=2e-2)


def test_more_bandwidth_is_never_slower(by_rate: dict[str, t10.Executable]) -> None:
    cycles = [sum(each.active.cycles.total for each in by_rate[rate].plan.operators) for rate in RATES]
    assert cycles == sorted(cycles, reverse=True)


def test_without_off_chip_memory_it_does_not_fit(path: Path) -> None:
    with pytest.raises(t10.errors.InfeasiblePlanError, match="needs about"):
        t10.compile(path, CHIP.rpartition(",")[0])


def test_where_all_fits_nothing_is_fetched(path: Path) -> None:
    plan, other = (t10.compile(path, chip).plan for chip in ("test-4:hbm_bandwidth=20 GB/s", "test-4"))
    assert not plan.fetches
    assert replace(plan, chip=other.chip) == other


def test_weights_that_fit_are_fetched_where_that_takes_less(tmp_path: Path) -> None:
    """Beside all weights there is no room for a product, then only for a slow one."""
    file = tmp_path / "chain.onnx"
    file.write_bytes(network(6, 128, 8).SerializeToString())
    chip = "test-16:n_cores=7,reserved_bytes=8192,shift_buffer_bytes=1024,hbm_bandwidth=64GB/s,sram_bytes="
    plans = [t10.compile(file, f"{chip}{size} KiB", program=False).plan for size in (36, 38, 40)]
    cycles = [sum(each.active.cycles.total for each in plan.operators) for plan in plans]
    assert cycles == sorted(cycles, reverse=True)
    assert plans[1].fetches
    assert plans[2].fetches
    assert all(plan.optimality and plan.optimality.bound_cycles <= cycles[-1] for plan in plans)
    # Algorithm 1 keeps what fits.
    greedy = t10.compile(file, f"{chip}48 KiB", options=PlanOptions(reconcile="greedy"), program=False).plan
    assert not greedy.fetches
    assert greedy.optimality
    assert greedy.optimality.method == "greedy"


def test_choices_that_fetch_are_compared_where_their_buffers_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best choice of 28 and 32 KiB lay so badly that less memory was faster."""
    file = tmp_path / "chain.onnx"
    file.write_bytes(network(6, 128, 8).SerializeToString())
    chip = "test-16:reserved_bytes=8192,shift_buffer_bytes=1024,hbm_bandwidth=64GB/s,sram_bytes="

    def cycles(size: int) -> int:
        return t10.compile(file, f"{chip}{size} KiB", program=False).report().total_cycles

    found = [cycles(size) for size in (24, 28, 32, 36)]
    assert found == sorted(found, reverse=True)
    monkeypatch.setattr(choose, "PARTS", (1.0,))
    less = cycles(32)
    monkeypatch.setattr(choose, "MOST_PLACED", 1)
    assert found[2] < less <= cycles(32)
    assert cycles(28) > found[1]


def test_off_chip_memory_is_never_slower(tmp_path: Path) -> None:
    """A plan that fetches fills the memory: where its buffers then lie, it takes longer than one that keeps all."""
    random, file = np.random.default_rng(0), tmp_path / "two.onnx"
    arrays = [
        numpy_helper.from_array(random.standard_normal(shape).astype(np.float16), name)
        for name, shape in (("w", (158, 132)), ("v", (132, 156)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "v"], ["b"]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    first, last = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT16, [14, n])
        for name, n in (("x", 158), ("y", 156))
    )
    model = helper.make_model(
        helper.make_graph(nodes, "two", [first], [last], arrays), opset_imports=[helper.make_opsetid("", 17)]
    )
    file.write_bytes(model.SerializeToString())
    chip = "test-16:reserved_bytes=8192,shift_buffer_bytes=1024,sram_bytes=26624"
    kept, free = (
        t10.compile(file, each, program=False).report().total_cycles
        for each in (chip, f"{chip},hbm_bandwidth=64GB/s")
    )
    assert free <= kept


def test_a_saved_plan_fetches_as_before(compiled: t10.Executable, path: Path, tmp_path: Path) -> None:
    compiled.save(tmp_path / "out")
    assert "rtensor.fetch" in (tmp_path / "out" / "module.mlir").read_text()
    assert t10.Executable.load(tmp_path / "out").plan == compiled.plan
    again = t10.compile(path, compiled.chip, plan=tmp_path / "out" / "plan.json")
    assert again.plan == compiled.plan


def tampered(compiled: t10.Executable, plan: ModulePlan) -> None:
    replace(compiled, plan=plan).execute(inputs())


def test_a_weight_that_nobody_fetches_is_poison(compiled: t10.Executable) -> None:
    plan = replace(compiled.plan, fetches=compiled.plan.fetches[:-1])
    assert any(found.rule == "lifetime" for found in verify_module(plan, compiled.chip))
    with pytest.raises(SimTrap):
        tampered(compiled, plan)


def test_a_fetch_before_its_memory_is_there_is_a_trap(compiled: t10.Executable) -> None:
    last = compiled.plan.fetches[-1]
    assert last.first > 0
    plan = replace(compiled.plan, fetches=(*compiled.plan.fetches[:-1], Fetch(last.operator, 0)))
    assert verify_module(plan, compiled.chip)
    with pytest.raises(SimTrap, match="not live"):
        tampered(compiled, plan)


def test_a_fetch_behind_its_operator_is_found(compiled: t10.Executable) -> None:
    first, *others = compiled.plan.fetches
    late = Fetch(first.operator, len(compiled.plan.operators) - 1)
    plan = replace(compiled.plan, fetches=(late, *others))
    assert any(found.rule == "fetches" for found in verify_module(plan, compiled.chip))
    with pytest.raises(SimTrap):
        tampered(compiled, plan)


@pytest.fixture(scope="module")
def saved(compiled: t10.Executable, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the network as a folder."""
    folder = tmp_path_factory.mktemp("prefetch") / "out"
    compiled.save(folder)
    return folder


def edited(folder: Path, into: Path, name: str, edit: Callable[[str], str]) -> Path:
    """Return a copy of a folder with another file, of which the manifest was made again."""
    copy = Path(shutil.copytree(folder, into / "edited"))
    text = (copy / name).read_text()
    assert edit(text) != text
    (copy / name).write_text(edit(text))
    take_as_it_is(copy)
    return copy


def other_fetches(text: str) -> str:
    document = json.loads(text)
    document["fetches"].pop()
    return json.dumps(document)


def other_waits(text: str) -> str:
    document = json.loads(text)
    active = next(each["active"] for each in document["operators"] if "wait" in each["active"]["cycles"])
    wait = active["cycles"].pop("wait")
    active["cycles"]["total"] -= wait
    document["cycles"]["wait"] -= wait
    document["cycles"]["total"] -= wait
    return json.dumps(document)


def another_fetch(text: str) -> str:
    """Return a module of which an operator that has no fetch is given one."""
    return text.replace('op_name = "p0"', 'op_name = "p0", rtensor.fetch = 0 : i64', 1)


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        ("plan.json", other_fetches, "differ in fetches from off-chip memory"),
        ("plan.json", other_waits, "waits for off-chip memory"),
        ("module.mlir", another_fetch, "fetch"),
    ],
    ids=["fetches", "waits", "module"],
)
def test_a_folder_of_which_files_say_different_fetches_is_refused(
    saved: Path, tmp_path: Path, name: str, edit: Callable[[str], str], message: str
) -> None:
    t10.Executable.load(saved)
    with pytest.raises(t10.errors.VerifyError, match=message):
        t10.Executable.load(edited(saved, tmp_path, name, edit))


def test_fetches_of_a_plan_that_is_given_are_those_that_run(
    compiled: t10.Executable, saved: Path, path: Path, tmp_path: Path
) -> None:
    late = edited(saved, tmp_path, "plan.json", late_fetches)
    again = t10.compile(path, CHIP + "20 GB/s", plan=late / "plan.json")
    assert [fetch.first for fetch in again.plan.fetches] == [
        [s.name for s in again.plan.operators].index(fetch.operator) for fetch in again.plan.fetches
    ]
    assert sum(op.active.cycles.total for op in again.plan.operators) > sum(
        op.active.cycles.total for op in compiled.plan.operators
    )
    wrong = json.loads((saved / "plan.json").read_text())
    wrong["fetches"][0]["first"] = len(wrong["operators"]) - 1
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    with pytest.raises(t10.errors.VerifyError, match="weights are fetched from step"):
        t10.compile(path, CHIP + "20 GB/s", plan=tmp_path / "wrong.json")


def late_fetches(text: str) -> str:
    document = json.loads(text)
    names = [operator["name"] for operator in document["operators"]]
    for fetch in document["fetches"]:
        fetch["first"] = names.index(fetch["operator"])
    return json.dumps(document)


def test_a_chip_without_off_chip_memory_fetches_nothing(compiled: t10.Executable) -> None:
    chip = compiled.chip.model_copy(update={"memory": None})
    assert any(found.rule == "fetches" for found in verify_module(compiled.plan, chip))
    with pytest.raises(SimTrap, match="without off-chip memory"):
        replace(compiled, chip=chip).execute(inputs())


def test_chip_files_have_memory() -> None:
    chip = load_chip("ipu-mk2+hbm")
    assert chip.memory is not None
    assert chip.memory.channels * chip.memory.bytes_per_second == 2e12
    other = load_chip("ipu-mk2+hbm:hbm_bandwidth=8 TB/s")
    assert other.memory is not None
    assert other.memory.bytes_per_second == 8e12
    assert other.memory.latency_cycles == chip.memory.latency_cycles
    assert load_chip("ipu-mk2").off_chip is None
    with pytest.raises(InputError, match="did you mean 2 GB/s or 2 TB/s"):
        load_chip("ipu-mk2:hbm_bandwidth=2")


def test_passes_leave_what_compile_leaves(compiled: t10.Executable, path: Path) -> None:
    module = import_model(path).module
    with module.context, ir.Location.unknown():
        for name in ("t10-fuse", "t10-partition", "t10-pareto", "t10-reconcile", "t10-expand", "t10-place"):
            chip = f'chip="{compiled.chip.name}"' if name in ("t10-fuse", "t10-partition") else ""
            apply(make(name, chip), module)
        assert module_text(module).replace(" ", "") == compiled.module.replace(" ", "")


def test_the_command_line_takes_a_bandwidth() -> None:
    given = parse(["compile", "m.onnx", "-o", "out", "--chip", "test-4", "--hbm-bandwidth", "2 TB/s"])
    memory = chip_of(given).memory
    assert memory is not None
    assert memory.bytes_per_second == 2e12


def test_no_code_is_emitted_that_fetches() -> None:
    with pytest.raises(t10.errors.T10Error, match="off-chip memory"):
        check_target(load_chip("ipu-mk2+hbm"))


def test_the_bound_keeps_what_fits_beside_an_operator() -> None:
    steps = [Step(1, 4, 1, 3, 10)] * 4
    weights = [Weight(step.rest_bytes, step.used_bytes, step.load_cycles) for step in steps]
    # Two of four stay beside one that runs, and no more: two are fetched, one behind the other.
    best = best_kept(steps, 10)
    assert best is not None
    assert len(best[0]) == 2
    assert bound_cycles(4, weights, 10, 0) == 20 <= best[1].cycles


def test_waiting_for_off_chip_memory_is_named_where_it_takes_most(by_rate: dict[str, t10.Executable]) -> None:
    slow = by_rate["4 GB/s"].plan
    step = max(range(len(slow.operators)), key=lambda n: slow.operators[n].active.cycles.wait)
    choice = explain_choice(slow, step)
    assert choice.limit == "wait"
    assert sum(choice.shares.values()) == pytest.approx(1)
    assert any(
        "waiting for weights from off-chip memory: more bandwidth" in reason for reason in choice.reasons
    )


def test_waiting_for_off_chip_memory_is_no_exchange(path: Path, by_rate: dict[str, t10.Executable]) -> None:
    chip = load_chip(f"{CHIP}4 GB/s")
    report = by_rate["4 GB/s"].report()
    cycles = report.cycles
    assert cycles.wait > 0
    moved = cycles.total - cycles.compute - cycles.wait
    point = plan_point(str(path), chip, {}, ())
    assert point.moved_share == round(moved / cycles.total, 4)
    received = sum(report.traffic_bytes.model_dump().values())
    assert point.mean_gbytes_per_second_in == round(received / (cycles.total / chip.clock_hz) / 1e9, 3)
    graph = graph_for(import_model(path), chip, joins=True, partials=Partials())
    found = compared(graph, SYSTEMS["ours"], chip, cost_model(DEFAULT_COST_MODEL, chip))
    assert (found.cycles, found.compute_cycles, found.wait_cycles) == (
        cycles.total,
        cycles.compute,
        cycles.wait,
    )
    assert found.transfer_cycles == moved
