"""Placement: the theorems' closed forms and the search put every element on each ring exactly once."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import specs
from support.paper_plans import block_convolution

from t10.core import geometry
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan, PhaseTerm
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import fastest_axes, is_tiling, natural_core_order, place
from t10.plan.search.space import operator_partitions
from t10.plan.search.temporal import TemporalSpace

KINDS = (
    specs.matmul(6, 6, 6),
    specs.bmm(2, 4, 4, 6),
    specs.conv2d(1, 4, 6, 4, 4, 3, 3),
    specs.gather(8, 4, 6),
    specs.row_reduce(8, 6, "sum"),
    specs.elementwise((6, 8), b_axes=(1,)),
)


def placed(spec: OperatorSpec, f_op: tuple[int, ...], ft: tuple[tuple[int, ...], ...]) -> OperatorPlan:
    plan = place(spec, f_op, ft, align_pace(spec, f_op, ft))
    assert plan is not None
    return plan


def holds_each_element_once_per_ring(spec: OperatorSpec, plan: OperatorPlan, slot: int) -> bool:
    """Count, over all cores, how often each element lies on the chip: as often as there are replicas."""
    operand = spec.rotatable[slot]
    starts = geometry.window_starts(plan, slot, (0,) * len(plan.f_op))
    held = geometry.flat_elements(operand, geometry.window_lengths(plan, slot), plan, starts)
    if any(not dim.is_simple for dim in operand.dims):
        return True
    counts = np.bincount(held[held >= 0].ravel(), minlength=prod(operand.shape))
    return set(counts.tolist()) == {geometry.n_replicas(spec, plan, slot)}


def test_paper_example_starts_where_the_paper_says() -> None:
    plan = placed(specs.matmul(2, 3, 6), (2, 3, 1), ((1, 1, 3), (1, 1, 2), (1, 1, 1)))
    # Core (s_m, s_n) starts at 2 s_n + 3 s_m mod 6 (T10 figure "cannon", compute-shift model theorem 1).
    assert geometry.phases(plan)[:, 2].tolist() == [0, 2, 4, 3, 5, 1]


def test_cannon_three_by_three_is_the_skewed_torus() -> None:
    plan = placed(specs.matmul(3, 3, 3), (3, 3, 1), ((1, 1, 3), (1, 1, 3), (1, 1, 1)))
    assert geometry.phases(plan)[:, 2].tolist() == [(i + j) % 3 for i in range(3) for j in range(3)]


def test_tensors_that_miss_the_same_axis_share_their_phases() -> None:
    # ids and the output of a gather both rotate along i and both miss v: the naive sum of skews would double it.
    spec = specs.gather(8, 4, 6)
    plan = placed(spec, (1, 1, 2), ((2, 1, 1), (1, 1, 1), (2, 1, 1)))
    assert geometry.phases(plan)[:, 0].tolist() == [0, 4]


def test_mixed_case_is_found_by_search() -> None:
    spec = specs.gather(8, 6, 10)
    plan = placed(spec, (2, 2, 4), ((4, 1, 1), (1, 1, 1), (2, 1, 1)))
    assert is_tiling(spec, plan)


def test_no_skew_is_no_tiling() -> None:
    spec = specs.matmul(3, 3, 3)
    plan = placed(spec, (3, 3, 1), ((1, 1, 3), (1, 1, 3), (1, 1, 1)))
    assert not is_tiling(spec, replace(plan, phases=((), (), ())))
    one_sided = ((), (), (PhaseTerm((1,), 1, 3, 1),))
    assert not is_tiling(spec, replace(plan, phases=one_sided))


def test_of_an_operand_that_turns_along_two_axes_the_last_one_starts_apart_first() -> None:
    # A lies on four cores; along m and k it turns in two parts each (compute-shift model theorem 1).
    plan = placed(specs.matmul(4, 4, 4), (1, 4, 1), ((2, 1, 2), (1, 1, 1), (1, 1, 1)))
    assert geometry.phases(plan)[:, [0, 2]].tolist() == [[0, 0], [0, 2], [2, 0], [2, 2]]


def test_cores_that_share_a_sum_are_numbered_one_after_the_other() -> None:
    plan = placed(specs.matmul(4, 6, 4), (2, 3, 2), ((1, 1, 1),) * 3)
    assert plan.core_order == (0, 2, 1)
    assert plan.reduce == "scatter"
    assert placed(specs.matmul(4, 6, 4), (2, 3, 1), ((1, 1, 1),) * 3).reduce == "none"


def test_replicas_of_an_output_lie_in_one_place() -> None:
    # Four cores hold sums of C, in two windows of m: two cores each, not four that start anywhere.
    spec = specs.matmul(8, 4, 4)
    plan = placed(spec, (1, 1, 4), ((1, 1, 1), (1, 1, 1), (2, 1, 1)))
    assert is_tiling(spec, plan)
    assert not is_tiling(spec, replace(plan, phases=((PhaseTerm((2,), 1, 4, 2),), (), ())))


def test_windows_that_unequal_numbers_of_cores_hold_are_no_tiling() -> None:
    spec = specs.matmul(4, 4, 4)
    plan = placed(spec, (1, 4, 1), ((1, 1, 2), (1, 1, 1), (1, 1, 1)))
    assert not is_tiling(spec, replace(plan, phases=((), (), (PhaseTerm((1,), 3, 2, 2),))))


def test_blocks_with_a_halo_begin_at_blocks() -> None:
    # The cores of the right half of the image start one row into a block of two.
    spec, plan = block_convolution()
    halves = replace(plan, f_op=(1, 2, 1, 2, 1, 1, 1), lengths=(1, 2, 4, 2, 3, 3, 3))
    assert is_tiling(spec, halves)
    own = (*plan.phases[2], PhaseTerm((3,), 1, 2, 1))
    assert not is_tiling(spec, replace(halves, phases=(*plan.phases[:2], own, *plan.phases[3:])))


def test_one_digit_for_all_only_where_the_output_allows_it() -> None:
    # ids turn in four parts, the output in two; both miss v only, and the output's replicas would lie apart.
    spec, ft = specs.gather(8, 4, 6), ((4, 1, 1), (1, 1, 1), (2, 1, 1))
    assert place(spec, (1, 1, 4), ft, align_pace(spec, (1, 1, 4), ft)) is None


def test_one_digit_for_all_only_of_tensors_that_turn_along_one_axis() -> None:
    # The output turns along i and d: with the digits that ids alone would take it lacks two of its four windows.
    spec, ft = specs.gather(8, 4, 6), ((2, 1, 1), (1, 1, 1), (2, 2, 1))
    plan = place(spec, (1, 1, 4), ft, align_pace(spec, (1, 1, 4), ft))
    assert plan is None or is_tiling(spec, plan)


@given(st.data())
def test_whatever_is_placed_tiles(data: st.DataObject) -> None:
    spec = data.draw(st.sampled_from(KINDS))
    rows = operator_partitions(spec, 24, parallelism=0.0, padding=0.5).tolist()
    f_op = tuple(data.draw(st.sampled_from(rows)))
    ft = data.draw(st.sampled_from(TemporalSpace.of(spec).partitions(f_op, 0.5).tolist()))
    rows_of_ft = tuple(tuple(row) for row in ft)
    plan = place(spec, f_op, rows_of_ft, align_pace(spec, f_op, rows_of_ft))
    if plan is None:
        return
    assert is_tiling(spec, plan)
    for slot in range(len(spec.rotatable)):
        if all(extent % f == 0 for extent, f in zip(spec.extents, f_op, strict=True)):
            assert holds_each_element_once_per_ring(spec, plan, slot)
        for axis, t in enumerate(plan.ft[slot]):
            if t > 1:
                assert sorted(geometry.shift_sources(spec, plan, slot, axis, 1).tolist()) == list(
                    range(plan.n_cores)
                )


@pytest.mark.parametrize("spec", KINDS[:4], ids=lambda spec: spec.kind)
def test_almost_every_partition_has_a_placement(spec: OperatorSpec) -> None:
    tried = found = 0
    for f_op in operator_partitions(spec, 12, parallelism=0.5, padding=0.9).tolist():
        for ft in TemporalSpace.of(spec).partitions(tuple(f_op), 0.9)[::7].tolist():
            rows = tuple(tuple(row) for row in ft)
            tried += 1
            found += place(spec, tuple(f_op), rows, align_pace(spec, tuple(f_op), rows)) is not None
    assert found >= 0.95 * tried


def test_the_axis_that_numbers_cores_fastest_is_the_last_of_the_natural_order() -> None:
    rng = np.random.default_rng(4)
    for spec in (specs.matmul(30, 40, 50), specs.elementwise((6, 8, 10))):
        rows = rng.integers(1, 4, (60, len(spec.axes)))
        lengths = rng.integers(1, 3, rows.shape)
        found = fastest_axes(spec, rows, lengths).tolist()
        pairs = zip(rows.tolist(), lengths.tolist(), strict=True)
        assert found == [natural_core_order(spec, tuple(f_op), tuple(long))[-1] for f_op, long in pairs]
