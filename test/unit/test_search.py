"""Native search finds the front of the whole space, bit for bit, whatever the cost model; it can be ended."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray
from support import specs
from support.draw import drawn, one_of_each
from support.random_specs import random_operator
from support.run_costs import RowByRow
from support.whole_space import PricedPartition, every_plan, whole_front

from t10.chip import ChipSpec, load_chip
from t10.core.expression import OperatorSpec
from t10.cost import CostModel, IpuCostModel
from t10.cost.program import cost_program
from t10.errors import InfeasiblePlanError
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.search.operator import search_operator
from t10.plan.search.space import searched_partitions
from t10.plan.search.task import compute_bound, search_task

Ints = NDArray[np.int64]
CHIP = load_chip("test-16")
COST = IpuCostModel(CHIP)
OTHER_CORE = {"n_workers": 4}
"""What makes a chip's core one that nothing is counted of: closed forms are quick enough to price whole spaces."""
N_RANDOM, PER_SHARE, N_SHARES = 300, 20, 8
"""Random operators, so many in a test, and how many of these are drawn."""
N_COUNTED = 24
N_ROW_BY_ROW = 60


def found_front(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions, *, is_pruning: bool = True
) -> list[PricedPartition]:
    """Return the front that search finds, in the form of `whole_front`."""
    result = search_operator(spec, chip, cost, options, is_pruning=is_pruning)
    return [((p.plan.f_op, p.plan.ft), p.cycles.total, p.active_bytes) for p in result.front]


def random_case(seed: int, largest: int = 400) -> tuple[OperatorSpec, ChipSpec, PlanOptions]:
    """Return a random operator, a small chip (with little memory at times), and options."""
    rng = Random(seed)
    spec = random_operator(rng, largest=largest)
    chip = load_chip(rng.choice(["test-4", "test-16"])).model_copy(update=OTHER_CORE)
    if rng.random() < 0.3:
        chip = chip.model_copy(update={"n_cores": rng.choice([6, 9, 12])})
    options = rng.choice(
        [PlanOptions(), PlanOptions(), PlanOptions(padding=0.5), PlanOptions(exhaustive=True)]
    )
    return spec, chip, replace(options, max_front=10_000)


@pytest.mark.slow
@pytest.mark.parametrize("first", drawn(range(0, N_RANDOM, PER_SHARE), N_SHARES))
def test_fronts_of_random_operators_equal_brute_force(first: int) -> None:
    for seed in range(first, first + PER_SHARE):
        spec, chip, options = random_case(seed)
        cost = IpuCostModel(chip)
        expected = whole_front(spec, chip, cost, options)
        assert found_front(spec, chip, cost, options) == expected, f"seed {seed}"
        assert found_front(spec, chip, cost, options, is_pruning=False) == expected, f"seed {seed}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", range(0, N_COUNTED, 6))
def test_so_they_do_where_steps_are_counted_and_bounds_prune(first: int) -> None:
    for seed in range(first, first + 6):
        spec, other, options = random_case(seed, largest=120)
        chip = other.model_copy(update={"n_workers": CHIP.n_workers})
        cost = IpuCostModel(chip)
        assert cost.least is not cost
        assert found_front(spec, chip, cost, options) == whole_front(spec, chip, cost, options), (
            f"seed {seed}"
        )


def test_a_look_up_along_an_axis_of_one_point_is_not_bounded_too_high() -> None:
    """Its last axis would need a look at its bounds if it had more points, and plans were left out for that."""
    spec, other, _ = random_case(5, largest=120)
    assert spec.kind == "gather"
    assert spec.axes[-1].extent == 1
    cost = IpuCostModel(other.model_copy(update={"n_workers": CHIP.n_workers}))
    boxes = np.array([[3, 6, 6, 1], [3, 6, 2, 1], [1, 6, 6, 1], [3, 3, 6, 1]])
    least, counted = (each.sub_task_cycles_many(spec, boxes) for each in (cost.least, cost))
    assert (least <= counted).all()


@pytest.mark.slow
def test_so_they_do_where_epilogues_are_priced_by_their_runs() -> None:
    n_searched = n_others = 0
    for seed in range(N_RANDOM, 10 * N_RANDOM):
        spec, chip, options = random_case(seed)
        if not spec.epilogue_inputs:
            continue
        expected = whole_front(spec, chip, RowByRow(chip), options)
        assert found_front(spec, chip, RowByRow(chip), options) == expected, f"seed {seed}"
        n_searched += 1
        n_others += expected != whole_front(spec, chip, IpuCostModel(chip), options)
        if n_searched == N_ROW_BY_ROW:
            break
    assert n_searched == N_ROW_BY_ROW
    assert n_others > N_ROW_BY_ROW // 2


SPECS = {
    "product": specs.matmul(48, 40, 36),
    "product and epilogue": specs.linear_relu(24, 40, 36, "f32"),
    "products of a batch": specs.bmm(4, 12, 12, 8),
    "convolution": specs.conv2d(1, 8, 12, 12, 8, 3, 3, pad=1),
    "pool": specs.max_pool2d(1, 8, 7, 7, 3, pad=1),
    "sums": specs.row_reduce(24, 36, "sum"),
    "look-up": specs.gather(12, 8, 20),
    "map": specs.elementwise((24, 36), b_axes=(1,)),
}
KINDS = (
    ("product", "product and epilogue", "products of a batch"),
    *((name,) for name in ("convolution", "pool", "sums", "look-up", "map")),
)
"""Products have the largest spaces, and the same closed forms and codelets: one of them is drawn."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [SPECS[name] for name in one_of_each(KINDS)],
    ids=lambda spec: spec.name,
)
def test_fronts_of_every_kind_on_many_cores_equal_brute_force(spec: OperatorSpec) -> None:
    chip = load_chip("test-64")
    options = PlanOptions(max_front=10_000)
    assert found_front(spec, chip, IpuCostModel(chip), options) == whole_front(
        spec, chip, IpuCostModel(chip), options
    )


def test_little_memory_leaves_the_part_of_the_front_that_fits() -> None:
    spec = specs.matmul(96, 96, 96)
    roomy = found_front(spec, CHIP, COST, PlanOptions())
    middle = roomy[len(roomy) // 2][2]
    reserve = CHIP.capacity_bytes - CHIP.shift_buffer_bytes - middle
    tight = CHIP.model_copy(update={"sram_bytes": CHIP.sram_bytes - reserve})
    assert found_front(spec, tight, COST, PlanOptions()) == [plan for plan in roomy if plan[2] <= middle]


@dataclass(frozen=True, slots=True)
class CalledBack(IpuCostModel):
    """The prices of an IPU, decided on in a way that cannot be traced."""

    def sub_task_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of one compute step for every row of `boxes`."""
        assert (np.asarray(boxes) > 0).all()
        return IpuCostModel(self.chip).sub_task_cycles_many(spec, boxes)


def test_a_cost_function_called_back_gives_the_front_of_the_traced_one() -> None:
    spec = specs.linear_relu(24, 40, 36, "f32")
    assert not hasattr(cost_program(CalledBack(CHIP), spec).sub_task, "instructions")
    assert found_front(spec, CHIP, CalledBack(CHIP), PlanOptions()) == found_front(
        spec, CHIP, COST, PlanOptions()
    )


def test_a_cost_function_below_zero_is_refused() -> None:
    class Negative(IpuCostModel):
        def sub_task_cycles_many(self, spec: OperatorSpec, boxes: Ints) -> Ints:
            return -boxes.prod(axis=1)

    with pytest.raises(ValueError, match=r"cycles for a sub-task \(expected a whole number, 0 or more\)"):
        search_operator(specs.matmul(8, 8, 8), CHIP, Negative(CHIP), PlanOptions())


def front_on_16_cores(spec: OperatorSpec) -> list[PricedPartition]:
    """Return the front under default options."""
    return found_front(spec, CHIP, COST, PlanOptions())


@pytest.mark.slow
def test_threads_find_the_same_fronts() -> None:
    kinds = [
        specs.matmul(64, 96, 80),
        specs.conv2d(1, 8, 12, 12, 8, 3, 3, pad=1),
        specs.gather(24, 16, 40),
    ] * 3
    one_by_one = [front_on_16_cores(spec) for spec in kinds]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(front_on_16_cores, kinds))
    assert together == one_by_one


def test_operators_that_differ_behind_their_loop_nests_share_its_bound() -> None:
    rows, padding = searched_partitions(specs.matmul(64, 48, 80), CHIP.n_cores, PlanOptions())
    bounds = [
        compute_bound(search_task(spec, CHIP, COST, padding), rows, cost_program(COST.least, spec).sub_task)
        for spec in (specs.matmul(64, 48, 80), specs.linear_relu(64, 48, 80), specs.matmul(64, 48, 96))
    ]
    assert bounds[0] is not None
    assert bounds[0] is bounds[1]
    assert bounds[0] is not bounds[2]
    called_back = cost_program(CalledBack(CHIP), specs.matmul(64, 48, 80)).sub_task
    assert (
        compute_bound(search_task(specs.matmul(64, 48, 80), CHIP, COST, padding), rows, called_back) is None
    )


def test_progress_is_told_and_may_end_the_search() -> None:
    chip = load_chip("ipu-mk2")
    shares: list[float] = []

    def end_at_third(done: float) -> None:
        shares.append(done)
        if len(shares) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        search_operator(
            specs.bmm(64, 128, 128, 64), chip, IpuCostModel(chip), PlanOptions(exhaustive=True), progress=end_at_third,
            is_pruning=False,
        )  # fmt: skip
    assert len(shares) == 3
    assert all(0 <= share <= 1 for share in shares)


@pytest.mark.slow
def test_statistics_count_the_space() -> None:
    options = PlanOptions()
    spec = specs.matmul(64, 96, 80)
    pruned, whole = (
        search_operator(spec, CHIP, COST, options, is_pruning=p).statistics for p in (True, False)
    )
    n_valid = len(every_plan(spec, CHIP, options)[0])
    assert whole.n_priced == n_valid
    assert pruned.n_plans == whole.n_plans >= n_valid
    assert pruned.n_priced < whole.n_priced


def test_small_operators_are_constrained_less() -> None:
    small, _ = searched_partitions(specs.matmul(16, 16, 512), 1472, PlanOptions())
    # 256 results on 1472 cores: parallelism 0.9 * 256 / 3200 = 0.072 of 256, so 19 of them may do.
    assert np.prod(small[:, :2], axis=1).max() == 256
    assert small.prod(axis=1).min() == 19
    _, padding = searched_partitions(specs.matmul(4096, 4096, 64), 1472, PlanOptions())
    assert 0.899 < padding < 0.9


def test_operators_of_few_partitions_are_searched_without_constraints() -> None:
    for spec, n_cores in ((specs.matmul(4, 4, 64), 16), (specs.elementwise((2048,)), 1472)):
        rows, padding = searched_partitions(spec, n_cores, PlanOptions())
        whole, none = searched_partitions(spec, n_cores, PlanOptions(exhaustive=True))
        assert padding == none == 0.0
        assert np.array_equal(rows, whole)


def test_a_forced_ft_that_cannot_be_placed_is_refused() -> None:
    spec = specs.elementwise((4, 6), b_axes=(1,))
    forced = ForcedPartition(spec.name, (4, 6), ((1, 1), (1, 1), (1, 1)))
    front = search_operator(spec, CHIP, COST, PlanOptions(forced=(replace(forced, f_op=(4, 4)),))).front
    assert [plan.plan.f_op for plan in front] == [(4, 4)]
    with pytest.raises(InfeasiblePlanError, match="needs 24 cores"):
        search_operator(spec, CHIP, COST, PlanOptions(forced=(forced,)))
