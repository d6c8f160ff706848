"""What arrivals move, counted natively run by run, is what `core.movement` counts slot by slot; bounds stay below."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from support import random_moves, specs
from support.random_moves import Arriving

from t10.chip import load_chip
from t10.core.arriving import arriving_elements
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph, GraphOutput, TensorValue
from t10.core.movement import Traffic, operand_elements
from t10.core.plan import OperatorPlan
from t10.core.schedule import ValueLayout
from t10.cost import IpuCostModel
from t10.plan.movement import _moves, arrivals, known
from t10.plan.movement.arrivals import Mover
from t10.plan.movement.partition_cells import linear_cells, operand_cells
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import place

COST = IpuCostModel(load_chip("test-64"))
N_CASES = 400
PER_TEST = 50
SMALL = 8
"""Points of operators of which many lie alike."""


def mover_of(case: Arriving) -> Mover:
    return Mover(case.graph, COST, 64)


def native(case: Arriving) -> Traffic:
    known.forget()
    return mover_of(case).traffic(case.spec, case.plan, case.number, case.layouts)


@pytest.mark.parametrize("first", range(0, N_CASES, PER_TEST))
def test_traffic_is_that_of_the_route(first: int) -> None:
    n_counted = 0
    for seed in range(first, first + PER_TEST):
        case = random_moves.random_arriving(seed)
        expected = random_moves.reference_traffic(case, COST.move_rates)
        if expected is not None:
            n_counted += 1
            assert native(case) == expected, f"seed {seed}"
    assert n_counted > PER_TEST * 0.7


@pytest.mark.parametrize(
    ("f_op", "n_chunks"),
    [
        ([1, 6, 2, 2, 1, 1, 1], 2),
        ([1, 6, 2, 2, 1, 1, 1], 6),
        ([1, 6, 1, 3, 2, 1, 1], 3),
        ([1, 3, 3, 1, 1, 1, 1], 3),
    ],
)
def test_of_windows_in_chunks_the_first_core_sends_what_several_have(f_op: list[int], n_chunks: int) -> None:
    spec = specs.conv2d(1, 6, 6, 6, 4, 3, 3, stride=1, pad=1)
    image = spec.inputs[0]
    graph = specs.chain_graph("windows", (spec,))
    layout = ValueLayout(
        "operand",
        image.name,
        prod(f_op),
        image.dtype,
        operator=spec.name,
        operand=0,
        plan=_placed(spec, f_op),
        scatter=n_chunks,
    )
    for reader in ([1, 6, 2, 2, 1, 1, 1], [1, 2, 6, 1, 2, 1, 1], [1, 1, 2, 3, 1, 3, 1]):
        case = Arriving(graph, spec, _placed(spec, reader), 0, {image.name: layout})
        assert native(case) == random_moves.reference_traffic(case, COST.move_rates)


def test_inputs_of_an_epilogue_arrive_in_chunks() -> None:
    """Each core receives of a residual what belongs to its chunk of the sum, whatever order the two are stored in."""
    n_cut = 0
    for seed in range(PER_TEST):
        case = random_moves.random_arriving_beside(seed)
        expected = random_moves.arriving_point_by_point(case.spec, case.plan, case.number)
        assert (arriving_elements(case.spec, case.plan, case.number) == expected).all(), f"seed {seed}"
        whole = operand_elements(case.spec, case.plan, case.number).reshape(expected.shape)
        n_cut += bool((expected != whole).any())
        moved = random_moves.reference_traffic(case, COST.move_rates)
        assert moved is None or native(case) == moved, f"seed {seed}"
        mover, arguments = mover_of(case), (case.spec, case.plan, case.number, case.layouts)
        assert moved is None or sum(mover.bound(*arguments)) <= mover.arrival(*arguments, "").cycles
    assert n_cut > PER_TEST / 2


def test_relayouts_of_an_operator_share_a_phase_and_set_ups_do_not() -> None:
    chip = COST.chip
    begin = chip.sync_cycles + chip.setup_cycles + chip.latency_any_cycles - chip.fragment_cycles
    saved: dict[str, set[int]] = {"relayout": set(), "setup": set()}
    for seed in range(PER_TEST):
        case = random_moves.random_arriving(seed)
        mover, arguments = mover_of(case), (case.spec, case.plan, case.number, case.layouts)
        alone = mover.arrival(*arguments, "")
        behind = mover.arrival(*arguments, "", before=(replace(alone, received_bytes=4),))
        still = mover.arrival(*arguments, "", before=(replace(alone, received_bytes=0),))
        other = {"relayout": "setup", "setup": "relayout"}[alone.kind]
        apart = mover.arrival(*arguments, "", before=(replace(alone, kind=other, received_bytes=4),))
        assert still == apart == alone
        joins = alone.kind == "relayout" and alone.received_bytes > 0
        assert alone.cycles - behind.cycles == (begin if joins else 0)
        assert mover.exact(*arguments) == (
            (alone.cycles - begin, begin) if alone.received_bytes else (alone.cycles, 0)
        )
        saved[alone.kind].add(alone.cycles - behind.cycles)
    assert saved == {"relayout": {0, begin}, "setup": {0}}


@pytest.mark.parametrize("first", range(0, N_CASES, PER_TEST))
def test_bounds_are_not_above_what_an_arrival_takes(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "BOUND_PIECES", 0)
    for seed in range(first, first + PER_TEST):
        case = random_moves.random_arriving(seed)
        mover, arguments = mover_of(case), (case.spec, case.plan, case.number, case.layouts)
        bound = sum(mover.bound(*arguments))
        cycles = mover.arrival(*arguments, "").cycles
        assert bound <= cycles, f"seed {seed}"
        assert sum(mover.bound(*arguments)) == cycles


@pytest.mark.parametrize("first", range(0, N_CASES, PER_TEST))
def test_bounds_by_some_of_what_a_core_takes_are_not_above_it(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "BOUND_PIECES", 0)
    n_less = 0
    for seed in range(first, first + PER_TEST):
        case = random_moves.random_arriving(seed)
        arguments = (case.spec, case.plan, case.number, case.layouts)
        cycles = mover_of(case).arrival(*arguments, "").cycles
        bounds: list[int] = []
        for most in (1, 3, 9, arrivals.CORE_PIECES):
            monkeypatch.setattr(arrivals, "CORE_PIECES", most)
            bounds.append(sum(mover_of(case).bound(*arguments)))
        assert max(bounds) <= cycles, f"seed {seed}: {bounds}"
        n_less += bounds[0] < bounds[-1]
        monkeypatch.setattr(arrivals, "CORE_PIECES", 1 << 14)
    assert n_less > PER_TEST / 5


def test_bounds_of_many_pairs_are_those_of_each() -> None:
    """Some pairs are known exactly already."""
    rng = np.random.default_rng(5)
    for seed in range(60):
        case = random_moves.random_arriving(seed)
        plans = [case.plan, replace(case.plan, core_order=case.plan.core_order[::-1])]
        even = {
            value: ValueLayout("linear", value, 7, layout.dtype) for value, layout in case.layouts.items()
        }
        layouts = [case.layouts, even]
        pairs = rng.integers(0, 2, (5, 2))
        mover = mover_of(case)
        if seed % 2:
            mover.traffic(case.spec, case.plan, case.number, even)
        cycles, begins = mover.bounds(case.spec, plans, case.number, layouts, pairs)
        found = list(zip(cycles.tolist(), begins.tolist(), strict=True))
        chosen: list[tuple[int, int]] = [(int(plan), int(place)) for plan, place in pairs]
        expected = [mover.bound(case.spec, plans[p], case.number, layouts[place]) for p, place in chosen]
        assert found == expected, f"seed {seed}"


def test_what_lies_in_place_is_what_has_equal_slots() -> None:
    found = set[bool]()
    for seed in range(N_CASES):
        case = random_moves.random_arriving(seed)
        operand = case.spec.operands[case.number]
        sources = case.graph.sources_of(operand.name)
        if operand.pad_value or sources != (operand.name,):
            continue
        wanted, [(home, _)] = random_moves.element_maps(case)
        expected = np.array_equal(wanted.elements, home.elements)
        layout = case.layouts[operand.name]
        assert mover_of(case).lies_in_place(case.spec, case.plan, case.number, layout) == expected, (
            f"seed {seed}"
        )
        found.add(expected)
    assert found == {True, False}


def test_threads_count_alike() -> None:
    cases = [random_moves.random_arriving(seed) for seed in range(20)]
    movers = [mover_of(case) for case in cases]

    def counted(number: int) -> Traffic:
        case = cases[number % len(cases)]
        return movers[number % len(cases)].traffic(case.spec, case.plan, case.number, case.layouts)

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(counted, range(80)))
    assert together == [native(cases[i % len(cases)]) for i in range(80)]


def large(n_cores: int) -> tuple[Arriving, OperatorPlan]:
    """Return the weight of a matmul, 4096 x 32768 elements on a grid of 32 x 32 cores, spread evenly."""
    spec = specs.matmul(32, 32768, 4096, "f16")
    plan = OperatorPlan(
        f_op=(32, 32, 1),
        lengths=(1, 1024, 4096),
        ft=((1, 1, 1),) * 3,
        rp=(0, 0, 0),
        steps=(1, 1, 1),
        loop_order=(),
        phases=((), (), ()),
        core_order=(0, 1, 2),
    )
    a, b = spec.inputs
    graph = Graph(
        "large",
        (TensorValue(a.name, a.shape, a.dtype),),
        (TensorValue(b.name, b.shape, b.dtype),),
        (spec,),
        (),
        (GraphOutput("c", spec.output.name),),
    )
    layout = ValueLayout("linear", b.name, n_cores, b.dtype)
    return Arriving(graph, spec, plan, 1, {b.name: layout}), plan


@pytest.mark.slow
def test_weights_of_any_size_are_counted() -> None:
    # 2^27 elements, four rows of 32768 on each home core; every core of the grid wants 1024 of every row.
    case, plan = large(1024)
    shape = case.spec.inputs[1].shape
    counted = native(case)
    n_slots = prod(shape) // 32
    kept = 4 * 1024
    assert counted.received_elements == n_slots - kept
    assert counted.sent_elements == prod(shape) // 1024
    assert counted.fragments == 4096 - 4
    assert counted.copied_elements == kept
    assert counted.total_elements == plan.n_cores * (n_slots - kept)


def test_a_bound_of_much_is_quick_and_close() -> None:
    case, _ = large(1000)
    mover, arguments = mover_of(case), (case.spec, case.plan, case.number, case.layouts)
    bound = sum(mover.bound(*arguments))
    cycles = mover.arrival(*arguments, "").cycles
    assert 0.9 * cycles < bound <= cycles


def test_equal_situations_under_other_names_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_moves.random_arriving(3)
    mover = mover_of(case)
    first = mover.traffic(case.spec, case.plan, case.number, case.layouts)

    def refuse(*_: Any) -> None:
        raise AssertionError("counted again")

    monkeypatch.setattr(_moves, "count", refuse)
    again = {name: replace(layout) for name, layout in case.layouts.items()}
    assert mover.traffic(case.spec, replace(case.plan), case.number, again) is first


@pytest.mark.slow
def test_what_lies_alike_moves_alike() -> None:
    """Counts are shared between operators: what each moves is what it moves where nothing else is known."""
    cases = [random_moves.random_arriving(seed, largest=SMALL) for seed in range(2 * N_CASES)]
    turned = [replace(case.plan, core_order=case.plan.core_order[::-1]) for case in cases]
    cases += [replace(case, plan=plan) for case, plan in zip(cases, turned, strict=True)]
    alone = [native(case) for case in cases]
    known.forget()
    movers = [mover_of(case) for case in cases]
    together = [
        mover.traffic(case.spec, case.plan, case.number, case.layouts)
        for mover, case in zip(movers, cases, strict=True)
    ]
    assert together == alone
    (counted,) = known.known_by_rates.values()
    assert len(counted.counts) < len(counted.traffic)


def test_later_movers_know_what_was_counted_but_bound_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "BOUND_PIECES", 0)
    n_above = 0
    for seed in range(PER_TEST):
        case = random_moves.random_arriving(seed)
        arguments = (case.spec, case.plan, case.number, case.layouts)
        known.forget()
        first, later = mover_of(case), mover_of(case)
        bound, counted = first.bound(*arguments), first.traffic(*arguments)
        n_above += first.bound(*arguments) > bound
        assert later.bound(*arguments) == bound
        assert later.traffic(*arguments) is counted
    assert n_above


def cells_of(rows: dict[str, Any]) -> _moves.PartitionCells:
    return _moves.PartitionCells(**rows)


def test_rows_that_disagree_are_refused() -> None:
    good: dict[str, Any] = {
        "dims": [(4, 0, [(0, 1)])],
        "f_op": (2,),
        "lengths": (2,),
        "windows": (2,),
        "core_order": (0,),
        "phases": [[]],
        "shift": (0,),
        "rotates": (False,),
    }
    assert cells_of(good).n_slots == 2
    changes: dict[str, Any] = {
        "lengths": (2, 2),
        "core_order": (1,),
        "windows": (0,),
        "dims": [(4, 0, [(1, 1)])],
        "phases": [[((0,), 0, 1, 1)]],
    }
    for name, bad in changes.items():
        with pytest.raises(ValueError, match="PartitionCells"):
            cells_of(good | {"rotates": (True,), name: bad})
    twice: dict[str, Any] = {name: row * 2 for name, row in good.items() if name != "dims"}
    with pytest.raises(ValueError, match="axis once"):
        cells_of(twice | {"dims": []})


def test_elements_that_no_home_has_are_refused() -> None:
    home = _moves.make_locator(linear_cells(10, 4), 1)
    with pytest.raises(ValueError, match="no home has"):
        _moves.count(linear_cells(11, 2), [home], None, (), 2, False)
    with pytest.raises(ValueError, match="none of any source"):
        _moves.make_view(np.arange(3, dtype=np.int64), [2])
    with pytest.raises(ValueError, match="scatter"):
        _moves.make_locator(linear_cells(10, 4), 0)


def test_cuts_have_the_slots_of_partitions() -> None:
    for seed in range(40):
        case = random_moves.random_arriving(seed)
        cut = operand_cells(case.spec, case.plan, case.number)
        wanted, _ = random_moves.element_maps(case)
        assert (cut.n_cores, cut.n_slots) == wanted.elements.shape


def _multicast(rng: np.random.Generator) -> Arriving:
    """Rows of one value that a product reads: every core takes what others of its row take, in pairs or not."""
    m, n, k = (int(rng.integers(4, 40)) * 8 for _ in range(3))
    if rng.random() < 0.5:
        m, k = int(rng.integers(9, 40)), 16 * int(rng.integers(20, 40))
    f_op = rng.choice([1, 2, 3, 4, 6, 8], 3)
    while f_op.prod() > 64:
        f_op = rng.choice([1, 2, 3, 4, 6, 8], 3)
    rows = min(int(rng.choice([4, 8, 10, 13, 16, 32])), m)
    return _read_rows((m, n, k), f_op.tolist(), rng.permutation(3).tolist(), [rows, int(rng.integers(1, 5))])


def _read_rows(
    extents: tuple[int, int, int], f_op: list[int], order: list[int], parts: list[int]
) -> Arriving:
    """Return what a product reads of a value that lies in so many parts of rows and columns."""
    m, n, k = extents
    maker = specs.elementwise((m, k), a="p", b="q", o="x")
    product = specs.matmul(m, n, k, a="x")
    plan, made = _placed(product, f_op), _placed(maker, parts)
    plan = replace(plan, core_order=tuple(order))
    operands = (*maker.inputs, *product.inputs[1:])
    graph = Graph(
        "rows",
        tuple(TensorValue(each.name, each.shape, each.dtype) for each in operands),
        (),
        (maker, product),
        (),
        (GraphOutput("result", product.output.name),),
    )
    number = len(maker.operands)
    layout = ValueLayout("operand", maker.output.name, made.n_cores, "f16", maker.name, number, made, 1)
    return Arriving(graph, product, plan, 0, {maker.output.name: layout})


def _placed(spec: OperatorSpec, f_op: list[int]) -> OperatorPlan:
    ft = tuple((1,) * len(f_op) for _ in spec.rotatable)
    plan = place(spec, tuple(f_op), ft, align_pace(spec, tuple(f_op), ft))
    assert plan is not None
    return plan


def test_bounds_know_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What pairs take together takes no less than bounds say, and those are no lower where there are no pairs."""
    monkeypatch.setattr(arrivals, "BOUND_PIECES", 0)
    rng, single = (
        np.random.default_rng(3),
        IpuCostModel(COST.chip.model_copy(update={"paired_bytes_per_cycle": 0})),
    )
    n_faster, n_close = 0, 0
    for _ in range(400):
        case = _multicast(rng)
        arguments = (case.spec, case.plan, case.number, case.layouts)
        cycles: list[int] = []
        bounds: list[int] = []
        for cost in (COST, single):
            cycles.append(Mover(case.graph, cost, 64).arrival(*arguments, "").cycles)
            for most in (2, 9, arrivals.CORE_PIECES):
                monkeypatch.setattr(arrivals, "CORE_PIECES", most)
                bounds.append(sum(Mover(case.graph, cost, 64).bound(*arguments)))
                assert bounds[-1] <= cycles[-1]
            monkeypatch.setattr(arrivals, "CORE_PIECES", 1 << 14)
        assert cycles[0] <= cycles[1]
        if cycles[0] < cycles[1]:
            n_faster += 1
            n_close += bounds[2] >= 0.9 * cycles[0]
    assert n_faster > 10
    assert n_close >= 0.5 * n_faster


@pytest.mark.parametrize("m", [21, 27])
def test_a_core_without_a_partner_that_has_a_part_itself_is_bounded(
    m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three cores that take the same, the third is alone, but a part is its own already."""
    monkeypatch.setattr(arrivals, "BOUND_PIECES", 0)
    case = _read_rows((m, 12, 464), [3, 3, 2], [0, 2, 1], [13, 2])
    arguments = (case.spec, case.plan, case.number, case.layouts)
    mover = mover_of(case)
    bound = sum(mover.bound(*arguments))
    assert bound <= mover.arrival(*arguments, "").cycles
