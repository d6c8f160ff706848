"""The space of partitions: complete on tiny operators, within the paper's constraints on others."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import ceil, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import specs

from t10.chip import load_chip
from t10.core.arrays import Ints
from t10.core.expression import Axis, OperatorSpec
from t10.cost import IpuCostModel
from t10.errors import InfeasiblePlanError
from t10.plan.options import PlanOptions
from t10.plan.search.alignment import align_pace
from t10.plan.search.operator import plan_operator, search_operator
from t10.plan.search.space import (
    axis_factors,
    candidate_partitions,
    operator_partitions,
    relaxed_partitions,
    searched_partitions,
    unrotated_space,
)
from t10.plan.search.temporal import TemporalSpace, divisor_rows

SMALL = load_chip("test-64").model_copy(update={"n_workers": 4})
"""A core that closed forms price, so that every plan can be priced."""


@given(st.integers(1, 200), st.integers(1, 64))
def test_every_part_length_appears_once_with_its_smallest_factor(extent: int, most: int) -> None:
    factors = axis_factors(extent, most, 0.0)
    by_length = {ceil(extent / f): f for f in range(min(most, extent), 0, -1)}
    assert sorted(factors) == sorted(by_length.values())


def test_padding_constraint_is_per_axis() -> None:
    # 10 in 4 parts of 3 is 10/12 = 0.83 useful; in 5 parts of 2 everything is.
    assert 4 not in axis_factors(10, 10, 0.9)
    assert {1, 2, 5, 10} <= set(axis_factors(10, 10, 0.9))


def test_tiny_matmul_partitions_equal_brute_force() -> None:
    spec = specs.matmul(4, 6, 2)
    found = {tuple(row) for row in operator_partitions(spec, 12, parallelism=0.9, padding=0.9).tolist()}
    every = itertools.product(axis_factors(4, 12, 0.9), axis_factors(6, 12, 0.9), axis_factors(2, 12, 0.9))
    assert found == {f for f in every if 0.9 * 12 <= prod(f) <= 12}


def test_axes_that_may_not_be_split_stay_whole() -> None:
    spec = specs.row_reduce(8, 16, "sum")
    whole = Axis("c", 16, "reduction", is_splittable=False)
    fixed = replace(spec, axes=(spec.axes[0], whole))
    rows = operator_partitions(fixed, 64, parallelism=0.9, padding=0.9)
    assert rows[:, 1].tolist() == [1] * len(rows)
    # Only 8 rows can be spread, so 8 cores satisfy the parallelism constraint.
    assert rows.tolist() == [[8, 1]]


def test_constraints_are_relaxed_until_something_remains() -> None:
    # 197 rows (a prime) of one column on 64 cores: 50 parts of 4 use 0.78 of the cores; 0.9 leaves nothing.
    spec = specs.elementwise((197, 1))
    assert len(operator_partitions(spec, 64, parallelism=0.9, padding=0.9)) == 0
    rows, padding = relaxed_partitions(spec, 64, parallelism=0.9, padding=0.9)
    assert [50, 1] in rows.tolist()
    assert padding == 0.9


@given(st.integers(1, 60), st.integers(0, 3))
def test_divisor_rows_are_all_rows_whose_product_divides(number: int, n_axes: int) -> None:
    divisors = [d for d in range(1, number + 1) if number % d == 0]
    every = {row for row in itertools.product(divisors, repeat=n_axes) if number % prod(row) == 0}
    assert set(divisor_rows(number, n_axes)) == every
    assert len(divisor_rows(number, n_axes)) == len(every)


@pytest.mark.parametrize(
    ("spec", "f_op"),
    [
        (specs.matmul(12, 12, 12), (3, 2, 2)),
        (specs.conv2d(2, 8, 6, 6, 4, 3, 3), (2, 2, 2, 1, 2, 1, 1)),
        (specs.gather(8, 4, 12), (2, 2, 3)),
        (specs.matmul(13, 13, 13), (5, 3, 1)),  # more padding than that in space alone
        (specs.conv2d(1, 4, 8, 8, 4, 3, 3), (1, 2, 1, 1, 4, 1, 1)),  # blocks of 2 and of 4 along h
    ],
    ids=["matmul", "conv", "gather", "ragged", "blocks"],
)
def test_every_temporal_partition_can_be_aligned_and_pads_little(
    spec: OperatorSpec, f_op: tuple[int, ...]
) -> None:
    found = TemporalSpace.of(spec).partitions(f_op, 0.9)
    assert found[0].max() == 1
    for rows in found.tolist():
        pace = align_pace(spec, f_op, tuple(tuple(row) for row in rows))
        for extent, f, length in zip(spec.extents, f_op, pace.lengths, strict=True):
            assert length == ceil(extent / f) or extent >= 0.9 * f * length


def test_temporal_partitions_of_a_tiny_matmul_are_complete() -> None:
    spec, f_op = specs.matmul(4, 4, 4), (2, 2, 1)
    found = {
        tuple(tuple(row) for row in rows) for rows in TemporalSpace.of(spec).partitions(f_op, 0.0).tolist()
    }
    choices = [1, 2]
    complete: set[tuple[tuple[int, ...], ...]] = set()
    for a_m, a_k, b_n, b_k in itertools.product(choices, repeat=4):
        ft = ((a_m, 1, a_k), (1, b_n, b_k), (1, 1, 1))
        try:
            align_pace(spec, f_op, ft)
        except InfeasiblePlanError:
            continue
        complete.add(ft)
    assert found == complete
    # The paper's three against two is in the space too.
    wide = TemporalSpace.of(specs.matmul(2, 3, 6)).partitions((2, 3, 1), 0.9).tolist()
    assert [[1, 1, 3], [1, 1, 2], [1, 1, 1]] in wide


def test_parts_are_cut_in_no_more_pieces_than_they_have_elements() -> None:
    # A lies on four cores, but has two rows of two.
    spec = specs.matmul(2, 4, 2)
    found = TemporalSpace.of(spec).partitions((1, 4, 1), 0.0)
    assert sorted({(a, b, c) for a, b, c in found[:, 0].tolist()}) == [
        (1, 1, 1),
        (1, 1, 2),
        (2, 1, 1),
        (2, 1, 2),
    ]


def test_a_model_also_chooses_from_partitions_that_pad_a_short_axis_by_one() -> None:
    spec, options = specs.conv2d(1, 64, 112, 112, 3, 7, 7, stride=2, pad=3), PlanOptions()
    assert axis_factors(7, 7, 0.9) == (1, 7)
    assert axis_factors(7, 7, 0.9, waste=1) == (1, 2, 4, 7)
    kernel = [axis.name for axis in spec.axes].index("kh")
    searched: set[tuple[int, ...]] = {
        tuple(row) for row in searched_partitions(spec, 1472, options)[0].tolist()
    }
    candidates: set[tuple[int, ...]] = {
        tuple(row) for row in candidate_partitions(spec, 1472, options).tolist()
    }
    assert searched < candidates
    assert {row[kernel] for row in searched} == {1, 7}
    assert 2 in {row[kernel] for row in candidates}
    assert min(map(prod, candidates)) >= min(map(prod, searched))


def rows_of(rows: Ints) -> set[tuple[int, ...]]:
    """Return F_op as a set."""
    return {tuple(row) for row in rows.tolist()}


@pytest.mark.parametrize(
    "spec",
    [
        specs.conv2d(3, 8, 13, 13, 3, 5, 1),
        specs.conv2d(1, 16, 7, 7, 3, 7, 7, stride=2, pad=3),
        specs.max_pool2d(1, 11, 13, 13, 5, pad=2),
        specs.bmm(11, 13, 17, 5),
    ],
    ids=["convolution", "strided", "pooling", "heads"],
)
def test_no_plan_of_a_small_operator_is_faster_than_the_front_by_a_hundredth(spec: OperatorSpec) -> None:
    cost = IpuCostModel(SMALL)
    every = search_operator(spec, SMALL, cost, PlanOptions(exhaustive=True), is_pruning=False)
    assert every.statistics.n_priced > 2000
    least = every.front[-1].cycles.total
    assert plan_operator(spec, SMALL, cost, PlanOptions())[-1].cycles.total <= 1.01 * least


def test_the_best_plan_of_a_small_convolution_lies_outside_the_constraints() -> None:
    """Three parts of 3 x 7 parts of 13 rows and columns: 63 cores, 13 of 14 and 13 of 15 are useful."""
    spec, cost, options = specs.conv2d(3, 8, 13, 13, 3, 5, 1), IpuCostModel(SMALL), PlanOptions()
    best = plan_operator(spec, SMALL, cost, options)[-1]
    published = plan_operator(spec, SMALL, cost, PlanOptions(as_published=True))[-1]
    assert best.plan.f_op not in rows_of(searched_partitions(spec, SMALL.n_cores, options)[0])
    assert set(best.plan.steps) == {1}
    assert published.cycles.total > 1.02 * best.cycles.total


def test_more_partitions_are_looked_at_where_nothing_rotates() -> None:
    """Of a few partitions all; of many those on three quarters of the cores, short axes padded by an element."""
    options = PlanOptions()
    spec = specs.conv2d(3, 8, 13, 13, 3, 5, 1)
    within, further = unrotated_space(spec, SMALL.n_cores, options)
    every = rows_of(operator_partitions(spec, SMALL.n_cores, parallelism=0.0, padding=0.0))
    searched = rows_of(searched_partitions(spec, SMALL.n_cores, options)[0])
    assert within is not None
    assert rows_of(further) == every - searched
    assert (within.n_f_op, within.padding, within.least_cores) == (len(every), 0.0, 1)
    # The first convolution of ResNet-18: 7 rows of the kernel in two parts of 4 are useful by 7/8.
    spec = specs.conv2d(1, 64, 112, 112, 3, 7, 7, stride=2, pad=3)
    within, further = unrotated_space(spec, 1472, options)
    rows, padding = searched_partitions(spec, 1472, options)
    assert within is not None
    assert within.padding == padding
    assert (1, 2, 3, 112, 1, 2, 1) in rows_of(further)
    assert not rows_of(further) & rows_of(rows)
    fewest = min(map(prod, rows_of(further)))
    assert 0.75 * min(map(prod, rows_of(rows))) <= fewest < min(map(prod, rows_of(rows)))


@pytest.mark.parametrize("options", [PlanOptions(exhaustive=True), PlanOptions(as_published=True)])
def test_what_is_exhaustive_or_as_published_has_no_further_partitions(options: PlanOptions) -> None:
    within, further = unrotated_space(specs.conv2d(3, 8, 13, 13, 3, 5, 1), SMALL.n_cores, options)
    assert within is None
    assert not len(further)
