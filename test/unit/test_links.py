"""Chips whose cores lie in groups: what passes links is counted, priced, planned for, executed and proved."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from support import specs
from support.engines import by_runtime
from support.link_simulator import Sent, simulated, way
from support.whole_space import whole_front

from t10.chip import ChipSpec, load_chip
from t10.chip.levels import Level
from t10.core.expression import OperatorSpec
from t10.core.geometry import shift_sources
from t10.core.links import RATE_CYCLES, LinkLevel, Links, Topology
from t10.core.loads import phase_loads
from t10.core.plan import OperatorPlan
from t10.cost import IpuCostModel, operator_cycles
from t10.cost.exchange import exchange_rates
from t10.driver import compile
from t10.errors import InputError
from t10.plan.options import PlanOptions
from t10.plan.schedule import plan_module, sum_of_cycles
from t10.plan.search.alignment import align_pace
from t10.plan.search.laid_out import laid_out, link_cycles
from t10.plan.search.operator import search_operator
from t10.plan.search.placement import is_tiling, place
from t10.plan.verify.module import verify_module
from t10.plan.verify.operator import verify_operator
from t10.random_inputs import random_inputs

NO_FILLS = np.zeros((0, 4), np.int32)
MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
PORT_BYTES = 4
TOPOLOGIES: tuple[tuple[Topology, int, int], ...] = (
    ("all-to-all", 4, 4),
    ("switch", 4, 4),
    ("mesh", 12, 4),
    ("mesh", 9, 9),
    ("torus", 12, 4),
    ("torus", 7, 7),
    ("tree", 12, 2),
    ("tree", 9, 3),
    ("tree", 10, 4),
)
MISSING = {("mesh", 13, 5): (4, 6), ("torus", 9, 4): (0, 5, 11), ("torus", 6, 8): (2, 7)}
"""Grids with positions that are missing."""
GRIDS = (*TOPOLOGIES, *MISSING)


def level(topology: Topology, count: int, width: int, stride: int = 4, **changes: int) -> LinkLevel:
    missing = MISSING.get((topology, count, width), ())
    known = LinkLevel(stride, count, topology, width, 3 * RATE_CYCLES // 2, 20, True, missing)
    return replace(known, **changes)


def nested(topology: Topology, count: int, width: int) -> Links:
    """Return groups of four cores, so many of them, and two of these."""
    outer = level("switch", 2, 2, stride=4 * count, rate=4 * RATE_CYCLES, latency_cycles=70)
    return Links((level("exchange", 4, 4, stride=1), level(topology, count, width), outer))


def random_phase(rng: Random, n_cores: int, n: int, n_words: int) -> list[Sent]:
    found: list[Sent] = []
    for _ in range(n):
        source = rng.randrange(n_cores)
        others = [core for core in range(n_cores) if core != source]
        found.append(Sent(source, tuple(sorted(rng.sample(others, rng.choice([1, 1, 2, 5])))), 4 * n_words))
    return found


def rows_of(sent: list[Sent]) -> np.ndarray:
    return np.array([(n, s.source, t, s.n_bytes) for n, s in enumerate(sent) for t in s.targets], np.int64)


@pytest.mark.parametrize(("topology", "count", "width"), GRIDS)
@pytest.mark.parametrize("is_multicast", [True, False])
def test_what_passes_a_link_is_what_is_walked_hop_by_hop(
    topology: Topology, count: int, width: int, is_multicast: bool
) -> None:
    links = nested(topology, count, width)
    links = Links(tuple(replace(each, is_multicast=is_multicast) for each in links.levels))
    rng, n_cores = Random(3), 8 * count
    for _ in range(20):
        sent = random_phase(rng, n_cores, 30, 1 + rng.randrange(50))
        walked: dict[tuple[object, ...], tuple[int, float]] = {}
        longest = 0
        for each in sent:
            ways = [way(links, each.source, target) for target in each.targets]
            passed = [(link, rate) for one in ways for link, rate, _ in one]
            for link, rate in set(passed) if is_multicast else passed:
                walked[link] = (walked.get(link, (0, rate))[0] + each.n_bytes, rate)
            longest = max([longest, *(sum(latency for _, _, latency in one) for one in ways)])
        n_bytes, latency = links.loads(n_cores, rows_of(sent))
        assert sorted(n_bytes[n_bytes > 0].tolist()) == sorted(n for n, _ in walked.values())
        assert latency == longest
        assert links.cycles(n_cores, n_bytes) == max(-(-n // rate) for n, rate in walked.values())


@pytest.mark.parametrize(("topology", "count", "width"), GRIDS)
def test_packets_arrive_when_phases_are_priced_to_end(topology: Topology, count: int, width: int) -> None:
    """Packets wait for each other at every link; prices add up what passes the busiest."""
    links, chip = nested(topology, count, width), load_chip("test-64")
    rates = replace(exchange_rates(chip), links=links, fragment_cycles=0)
    rng, n_cores = Random(5), 8 * count
    errors: list[float] = []
    for _ in range(6):
        sent = random_phase(rng, n_cores, 2 * n_cores, 512)
        priced = phase_loads(runs_of(sent, n_cores), NO_FILLS, n_cores, 4, rates).port_cycles
        errors.append(simulated(sent, links, PORT_BYTES, 64) / priced - 1)
    assert np.median(np.abs(errors)) <= 0.01
    assert max(map(abs, errors)) <= 0.05


def runs_of(sent: list[Sent], n_cores: int) -> np.ndarray:
    """Return the moves of a phase: every transfer has slots of its own on both sides."""
    here, there = [0] * n_cores, [0] * n_cores
    rows: list[tuple[int, ...]] = []
    for each in sent:
        n_words = each.n_bytes // 4
        for target in each.targets:
            rows.append((0, each.source, there[each.source], target, here[target], n_words))
            here[target] += n_words
        there[each.source] += n_words
    rows.sort(key=lambda row: (row[3], row[4]))
    return np.array(rows, np.int32)


def test_no_link_is_passed_within_a_group() -> None:
    links = nested("mesh", 12, 4)
    n_bytes, latency = links.loads(96, rows_of([Sent(8, (9, 11), 400)]))
    assert (n_bytes.sum(), latency) == (0, 0)


def test_a_tree_of_one_switch_is_a_switch_and_a_higher_one_is_passed_from_switch_to_switch() -> None:
    sent = random_phase(Random(7), 32, 40, 9)
    tree, switch = (Links((level(kind, 8, 8),)) for kind in ("tree", "switch"))
    (of_tree, latency), (of_switch, expected) = (each.loads(32, rows_of(sent)) for each in (tree, switch))
    assert (of_tree.tolist(), latency) == (of_switch.tolist(), expected)
    binary = Links((level("tree", 8, 2),))
    assert binary.levels[0].n_links == 2 * (8 + 4 + 2)
    for target, n_switches in ((5, 1), (9, 3), (17, 5)):
        n_bytes, latency = binary.loads(32, rows_of([Sent(0, (target,), 12)]))
        assert (n_bytes.sum(), latency) == (12 * (n_switches + 1), 20 * n_switches)


TOO_WIDE = "levels:\n  - {name: core, count: 16}\n"
MISTAKES = [
    ("levels: [{name: core, count: 16}, {name: chip, count: 2}]", "only the first may be an exchange"),
    ("n_cores: 5\nlevels: [{name: core, count: 16}]", "n_cores = 5, but the counts of levels make 16"),
    ("levels: [{name: core, count: 16, topology: mesh, link_bytes_per_cycle: 1}]", "columns = 0, expected a divisor"),
    ("levels: [{name: core, count: 16, topology: ring}]", "expected one of link_bytes_per_cycle"),
    ("levels: [{name: core, count: 16, latency_cycles: 3}]", "an exchange has no links"),
    ("levels: [{name: core, count: 16, topology: star}]", "topology"),
    ("levels: [{name: core, count: 16, topology: tree, link_bytes_per_cycle: 1}]", "children = 0, expected 2 or more"),
    (
        "levels: [{name: core, count: 16, topology: ring, children: 2, link_bytes_per_cycle: 1}]",
        "children = 2, expected 2 or more for a tree, none otherwise",
    ),
    ("levels: [{name: core, count: 4, topology: ring, link_bytes_per_second: 9 Gb/s}]", "did you mean GB/s"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes_in_levels_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(f"based_on: test-16\nname: wrong\n{text}\n")
    with pytest.raises(InputError, match=message) as caught:
        load_chip(path)
    assert "chip.yaml" in str(caught.value)


def test_a_link_keeps_its_bytes_per_second_where_the_clock_differs() -> None:
    links = [load_chip(f"v-ipu-2{change}").links for change in ("", ":clock_hz=2.66 GHz")]
    rates = [each.levels[1].rate for each in links if each is not None]
    assert rates == [
        pytest.approx(160 / 1.33 * RATE_CYCLES, abs=1),
        pytest.approx(80 / 1.33 * RATE_CYCLES, abs=1),
    ]


def test_counts_of_levels_make_the_cores() -> None:
    assert [load_chip(name).n_cores for name in ("v-ipu-2", "v-ipu-4", "pod16")] == [2944, 5888, 23552]


def chip_of(name: str, **fields: object) -> ChipSpec:
    return load_chip(name).model_copy(update=fields)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["test-2x4", "test-2x16"])
@pytest.mark.parametrize("is_counted", [True, False])
def test_search_finds_the_front_of_the_whole_space(name: str, is_counted: bool) -> None:
    chip = chip_of(name) if is_counted else chip_of(name, n_workers=4)
    cost, options = IpuCostModel(chip), PlanOptions(max_front=10_000)
    small = (specs.matmul(4, 6, 8), specs.matmul(1, 16, 8))
    for spec in (*small, specs.linear_relu(12, 8, 24)) if name == "test-2x4" else small:
        front = search_operator(spec, chip, cost, options).front
        found = [((p.plan.f_op, p.plan.ft), p.cycles.total, p.active_bytes) for p in front]
        assert sorted(found) == sorted(whole_front(spec, chip, cost, options))


def test_no_plan_is_cheaper_for_a_link_and_some_are_dearer() -> None:
    """A chip of one exchange bounds one with links."""
    split = load_chip("test-2x16")
    whole = chip_of("test-2x16", levels=())
    dearer = 0
    for spec in (specs.matmul(64, 64, 64), specs.linear_relu(48, 64, 32)):
        front = search_operator(spec, split, IpuCostModel(split), PlanOptions(exhaustive=True)).front
        for each in front:
            with_links, without = (operator_cycles(IpuCostModel(c), spec, each.plan) for c in (split, whole))
            assert with_links.compute == without.compute
            assert with_links.shift >= without.shift
            assert with_links.reduce >= without.reduce
            dearer += with_links.run > without.run
    assert dearer


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "name", ["test-2x4", "test-2x16", "test-line", "test-ring", "test-mesh", "test-torus", "test-tree"]
)
@pytest.mark.parametrize("model", ["mlp", "conv"])
def test_models_are_executed_as_priced(name: str, model: str) -> None:
    path = MODELS / f"{model}.onnx"
    made = compile(path, chip=name)
    assert verify_module(made.plan, made.chip) == []
    inputs = random_inputs(made.plan.graph, 0)
    result = made.execute(inputs)
    for output, expected in by_runtime(onnx.ModelProto.FromString(path.read_bytes()), inputs).items():
        np.testing.assert_allclose(result.outputs[output], expected, rtol=2e-2, atol=2e-3)
    for scheduled, executed in zip(made.plan.operators, result.operators, strict=True):
        assert executed.cycles.total == scheduled.active.cycles.total


def ring_of(n: int) -> tuple[OperatorSpec, OperatorPlan]:
    """Return a product in which one operand passes all cores of a ring."""
    spec = specs.matmul(1, n, n)
    rows = ((1, 1, n), (1, 1, 1), (1, 1, 1))
    plan = place(spec, (1, n, 1), rows, align_pace(spec, (1, n, 1), rows))
    assert plan is not None
    return spec, plan


def line_of(n: int) -> Links:
    return Links((level("mesh", n, n, stride=1),))


def hops(spec: OperatorSpec, plan: OperatorPlan, links: Links) -> list[int]:
    (axis,) = plan.loop_order
    sources = shift_sources(spec, plan, 0, axis, 1).tolist()
    return [len(way(links, source, core)) for core, source in enumerate(sources)]


@pytest.mark.parametrize("n", [4, 5, 32, 720])
def test_no_way_of_a_ring_on_a_line_is_longer_than_two_hops(n: int) -> None:
    spec, plan = ring_of(n)
    links = line_of(n)
    assert max(hops(spec, plan, links)) == n - 1
    folded = laid_out(links, spec, plan)
    assert max(hops(spec, folded, links)) == 2
    assert verify_operator(spec, folded) == []
    assert is_tiling(spec, folded)


def test_rings_of_a_torus_are_not_folded() -> None:
    spec, plan = ring_of(32)
    assert laid_out(Links((level("torus", 32, 32, stride=1),)), spec, plan) == plan


def test_rings_are_folded_only_where_all_that_share_their_phases_still_tile() -> None:
    """The matrix has rings of 2 along k, the vector beside it one of 4: folded, windows 0 and 3 would be a ring."""
    product = specs.matmul(4, 4, 4)
    vector = specs.operand("b", "weight", "f16", (4,), specs.dims(2))
    spec = replace(product, inputs=(product.inputs[0], vector))
    rows = ((1, 1, 2), (1, 1, 4), (1, 1, 1))
    plan = place(spec, (2, 2, 1), rows, align_pace(spec, (2, 2, 1), rows))
    assert plan is not None
    folded = tuple(tuple(replace(term, is_folded=True) for term in terms) for terms in plan.phases)
    assert is_tiling(spec, plan)
    assert not is_tiling(spec, replace(plan, phases=folded))
    assert is_tiling(spec, laid_out(line_of(4), spec, plan))


def test_rings_lie_within_chips_where_they_can() -> None:
    """In natural order the rings of one operand lie across both chips."""
    links, spec = load_chip("test-2x16").links, specs.matmul(64, 64, 64)
    rows = ((1, 1, 2), (1, 1, 2), (1, 1, 1))
    plan = place(spec, (2, 16, 1), rows, align_pace(spec, (2, 16, 1), rows))
    assert plan is not None
    assert links is not None
    assert link_cycles(links, spec, plan) > 0
    assert link_cycles(links, spec, laid_out(links, spec, plan)) == 0


def test_a_level_without_links_changes_no_plan() -> None:
    path = MODELS / "mlp.onnx"
    whole = chip_of("test-16", levels=(Level(name="core", count=16),))
    assert compile(path, chip=whole).plan == compile(path, chip="test-16").plan


@pytest.mark.parametrize(("name", "part"), [("test-2x16", "test-16"), ("test-2x4", "test-4")])
def test_a_chain_is_no_slower_on_more_chips(name: str, part: str) -> None:
    """Sums over links may take longer than those of fewer cores: such plans must look as slow as they are."""
    chain = specs.mlp_graph(16, (128, 128, 128, 128, 128))
    cycles = {
        chip.name: sum_of_cycles(plan_module(chain, chip, None, None, IpuCostModel(chip)))
        for chip in map(load_chip, (name, part))
    }
    assert cycles[name] <= cycles[part]


@pytest.mark.parametrize("seed", range(8))
def test_transfers_take_turns_however_long_they_are(seed: int) -> None:
    """In what order transfers begin, no more bits of their cycles decide than of a few: all take one unit here."""
    rng, n_cores = Random(seed), 12
    pairs = rng.sample([(a, b) for a in range(n_cores) for b in range(n_cores) if a != b], 60)
    rows = [
        [0, sender, 4 * taker, taker, 4 * sender, 1] for sender, taker in sorted(pairs, key=lambda p: p[::-1])
    ]
    turns: list[float] = []
    for fragment_cycles in (3, 1 << 30):
        rates = replace(exchange_rates(load_chip("test-16")), fragment_cycles=fragment_cycles)
        priced = phase_loads(np.array(rows, np.int32), NO_FILLS, n_cores, 4, rates).port_cycles
        turns.append(priced / (fragment_cycles + 1))
    busiest = max(max(sum(pair[end] == core for pair in pairs) for core in range(n_cores)) for end in (0, 1))
    assert turns[0] == turns[1] >= busiest


def holed(missing: tuple[int, ...], **changes: object) -> ChipSpec:
    """Return a chip of 14 cores on a mesh of 4 columns, but for positions that are missing."""
    fields = {"name": "core", "count": 14, "topology": "mesh", "columns": 4, "missing": missing}
    grid = Level.model_validate({**fields, "link_bytes_per_cycle": 1, "latency_cycles": 5, **changes})
    return load_chip("test-mesh").model_copy(update={"name": "holed", "n_cores": 14, "levels": (grid,)})


def test_ways_pass_through_missing_cores() -> None:
    links = holed((1, 2)).links
    assert links is not None
    # Core 1 is at position 3 of the first row, core 2 at the first of the second.
    for target, n_hops in ((1, 3), (2, 1), (13, 6)):
        n_bytes, latency = links.loads(14, np.array([[0, 0, target, 7]], np.int64))
        assert latency == 5 * n_hops
        assert int((n_bytes > 0).sum()) == n_hops


def test_a_model_on_a_mesh_with_missing_cores_is_planned_executed_and_proved(tmp_path: Path) -> None:
    path = tmp_path / "holed.yaml"
    path.write_text(
        "based_on: test-mesh\nname: holed\nlevels:\n"
        "  - {name: core, count: 14, topology: mesh, columns: 4, missing: [5, 10], link_bytes_per_cycle: 1}\n"
    )
    executable = compile(MODELS / "mlp.onnx", path)
    chip = load_chip(path)
    assert executable.chip.n_cores == 14
    assert max(each.active.plan.n_cores for each in executable.plan.operators) <= 14
    assert not verify_module(executable.plan, chip)
    inputs = random_inputs(executable.plan.graph, 0)
    expected = by_runtime(onnx.ModelProto.FromString((MODELS / "mlp.onnx").read_bytes()), inputs)
    for name, found in executable.run(inputs).items():
        np.testing.assert_allclose(found, expected[name], rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"missing": (1, 1)},
            "missing = [1, 1], expected positions from 0 to 15 (count + missing = 16), each once",
        ),
        ({"missing": (1, 16)}, "missing = [1, 16], expected positions from 0 to 15"),
        ({"missing": (3,)}, "columns = 4, expected a divisor of count + missing = 15"),
        ({"missing": (3,), "topology": "switch", "columns": 0}, "missing = [3], expected none for switch"),
    ],
)
def test_missing_positions_that_are_none_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        holed(**{"missing": (1, 2), **changes})
