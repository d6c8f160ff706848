"""Closed forms of core.geometry against the paper's worked examples and against the conditions they must meet."""

import numpy as np
import pytest

from t10.core import geometry
from t10.core.expression import AffineDim, Axis, Operand, OperatorSpec, Term
from t10.core.plan import OperatorPlan, PhaseTerm, final_positions
from t10.core.scalar import ScalarFunction, ScalarOp

PRODUCT = ScalarFunction(2, (ScalarOp("arith.mulf", (0, 1), "f32"),), 2)


def simple(*axes: int) -> tuple[AffineDim, ...]:
    return tuple(AffineDim((Term(axis, 1),)) for axis in axes)


def matmul(m: int, n: int, k: int) -> OperatorSpec:
    return OperatorSpec(
        name="matmul",
        kind="contraction",
        axes=(Axis("m", m, "parallel"), Axis("n", n, "parallel"), Axis("k", k, "reduction")),
        inputs=(
            Operand("a", "activation", "f32", (m, k), simple(0, 2)),
            Operand("b", "weight", "f32", (k, n), simple(2, 1)),
        ),
        output=Operand("c", "output", "f32", (m, n), simple(0, 1)),
        combine="sum",
        body=PRODUCT,
        acc_dtype="f32",
    )


@pytest.fixture
def three_against_two() -> OperatorPlan:
    """T10 figure "cannon": A is cut 3x in time along k and B 2x, L_k = 6, so rp = 2 and 3 steps."""
    return OperatorPlan(
        f_op=(2, 3, 1),
        lengths=(1, 1, 6),
        ft=((1, 1, 3), (1, 1, 2), (1, 1, 1)),
        rp=(0, 0, 2),
        steps=(1, 1, 3),
        loop_order=(2,),
        phases=((), (), (PhaseTerm((1,), 1, 3, 2), PhaseTerm((0,), 1, 2, 3))),
        core_order=(0, 1, 2),
    )


def test_phases_are_those_of_the_paper(three_against_two: OperatorPlan) -> None:
    # Core (s_m, s_n) starts at 2 s_n + 3 s_m mod 6; windows may start off the partition grid and wrap around.
    assert geometry.phases(three_against_two)[:, 2].tolist() == [0, 2, 4, 3, 5, 1]


@pytest.mark.parametrize("slot", [0, 1])
def test_windows_of_every_ring_hold_each_element_once(three_against_two: OperatorPlan, slot: int) -> None:
    spec = matmul(2, 3, 6)
    operand = spec.inputs[slot]
    ranks = geometry.replica_ranks(operand, three_against_two, slot)
    for position in range(3):
        starts = geometry.window_starts(three_against_two, slot, (0, 0, position))
        lengths = geometry.window_lengths(three_against_two, slot)
        held = geometry.flat_elements(operand, lengths, three_against_two, starts).reshape(6, -1)
        for rank in set(ranks.tolist()):
            assert sorted(held[ranks == rank].ravel().tolist()) == list(range(np.prod(operand.shape)))


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("slot", [0, 1])
def test_shift_source_holds_what_the_next_window_lacks(
    three_against_two: OperatorPlan, slot: int, direction: int
) -> None:
    spec = matmul(2, 3, 6)
    operand = spec.inputs[slot]
    lengths = geometry.window_lengths(three_against_two, slot)
    sources = geometry.shift_sources(spec, three_against_two, slot, 2, direction)
    assert sorted(sources.tolist()) == list(range(6))
    for position in range(3):
        now, after = (
            geometry.flat_elements(
                operand,
                lengths,
                three_against_two,
                geometry.window_starts(three_against_two, slot, (0, 0, p)),
            ).reshape(6, -1)
            for p in (position, position + direction)
        )
        for core, source in enumerate(sources):
            changed = now[core] != after[core]
            assert set(after[core][changed]) <= set(now[source])
            assert changed.sum() == 2


def test_circular_slots_keep_what_stays(three_against_two: OperatorPlan) -> None:
    # B's window is 3 long and the pace 2: one of three slots must not change in a shift.
    spec = matmul(2, 3, 6)
    maps = [
        geometry.flat_elements(
            spec.inputs[1],
            geometry.window_lengths(three_against_two, 1),
            three_against_two,
            geometry.window_starts(three_against_two, 1, (0, 0, p)),
        ).reshape(6, -1)
        for p in (0, 1)
    ]
    assert ((maps[0] == maps[1]).sum(axis=1) == 1).all()


def test_serpentine_ends_home_after_an_even_number_of_sweeps() -> None:
    plan = OperatorPlan(
        f_op=(4, 3, 1),
        lengths=(4, 3, 6),
        ft=((1, 1, 3), (1, 1, 1), (1, 1, 1)),
        rp=(1, 0, 2),
        steps=(4, 1, 3),
        loop_order=(0, 2),
        phases=((), (), ()),
        core_order=(0, 1, 2),
    )
    # Axis 0 is swept once (odd: ends at 3), axis 2 four times (even: ends at 0).
    assert final_positions(plan) == (3, 0, 0)


def test_halo_and_padding_of_a_compound_dim() -> None:
    # 2h + kh - 1 with h cut in two: part 0 reads -1..3, part 1 reads 3..7 of an axis of 7 elements.
    dim = AffineDim((Term(0, 2), Term(1, 1)), -1)
    plan = OperatorPlan(
        f_op=(2, 1),
        lengths=(2, 3),
        ft=((1, 1), (1, 1)),
        rp=(0, 0),
        steps=(1, 1),
        loop_order=(),
        phases=((), ()),
        core_order=(0, 1),
    )
    operand = Operand("x", "activation", "f32", (7,), (dim,), pad_value="0.0")
    assert geometry.dim_extent(dim, (2, 3)) == 5
    held = geometry.flat_elements(operand, (2, 3), plan, np.zeros((2, 2), np.int64))
    assert held.tolist() == [[-1, 0, 1, 2, 3], [3, 4, 5, 6, -1]]
