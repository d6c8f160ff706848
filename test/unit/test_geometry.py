"""Closed forms of core.geometry against the paper's worked examples and against the conditions they must meet."""

from dataclasses import replace
from itertools import product
from math import prod
from random import Random

import numpy as np
import pytest
from support.random_plans import random_plan
from support.random_specs import random_operator

from t10.core import geometry, movement
from t10.core.expression import AffineDim, Axis, AxisSizes, Operand, OperatorSpec, Term
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
    assert plan.box == (1, 3, 2)


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


def place_of(plan: OperatorPlan, core: int) -> list[int]:
    """Return the coordinates of a core by the definition of core numbers."""
    where = [0] * len(plan.f_op)
    for axis in reversed(plan.core_order):
        core, where[axis] = divmod(core, plan.f_op[axis])
    return where


def start_of(plan: OperatorPlan, row: AxisSizes, where: list[int], positions: AxisSizes, axis: int) -> int:
    """Return where a core's window starts along an axis by the definition of phases."""
    if row[axis] == 1:
        return 0
    total = positions[axis] * plan.rp[axis]
    for term in plan.phases[axis]:
        sigma = 0
        for sharer in term.sharer_axes:
            sigma = sigma * plan.f_op[sharer] + where[sharer]
        digits = list(range(term.modulus))
        if term.is_folded:
            digits = [*digits[::2], *digits[1::2][::-1]]
        total += term.stride * digits.index(sigma // term.divisor % term.modulus)
    return total % plan.lengths[axis]


def indices_of(
    dim: AffineDim, plan: OperatorPlan, row: AxisSizes, where: list[int], positions: AxisSizes
) -> list[int]:
    """Return the global indices in the slots of a dim by the definition of windows."""
    starts = {axis: start_of(plan, row, where, positions, axis) for axis in dim.axes}
    if dim.is_simple:
        (axis,) = dim.axes
        width, length = plan.lengths[axis] // row[axis], plan.lengths[axis]
        slots = [0] * width
        for local in range(starts[axis], starts[axis] + width):
            slots[local % width] = where[axis] * length + local % length
        return slots
    first = dim.offset
    last = dim.offset
    for term in dim.terms:
        begin = where[term.axis] * plan.lengths[term.axis] + starts[term.axis]
        first += term.coefficient * begin
        last += term.coefficient * (begin + plan.lengths[term.axis] // row[term.axis] - 1)
    return list(range(first, last + 1))


def elements_of(
    operand: Operand, plan: OperatorPlan, row: AxisSizes, positions: AxisSizes
) -> list[list[int]]:
    """Return the element in every slot of every core, -1 outside the tensor."""
    result: list[list[int]] = []
    for core in range(plan.n_cores):
        where = place_of(plan, core)
        rows = [indices_of(dim, plan, row, where, positions) for dim in operand.dims]
        inside = [
            all(0 <= i < n for i, n in zip(point, operand.shape, strict=True)) for point in product(*rows)
        ]
        numbers = [
            int(np.ravel_multi_index(point, operand.shape)) if is_in and point else 0 if is_in else -1
            for point, is_in in zip(product(*rows), inside, strict=True)
        ]
        result.append(numbers)
    return result


def with_any_phases(rng: Random, plan: OperatorPlan) -> OperatorPlan:
    """Return a plan whose cores start anywhere: phases of any digits, whether rings then tile or not."""
    axes = range(len(plan.f_op))
    terms = [
        tuple(
            PhaseTerm(
                tuple(rng.sample(axes, rng.randint(1, len(axes)))),
                rng.randint(1, 3),
                rng.randint(2, 4),
                rng.randint(1, plan.lengths[axis]),
            )
            for _ in range(rng.randint(0, 2))
        )
        for axis in axes
    ]
    return replace(plan, phases=tuple(terms))


@pytest.mark.parametrize("seed", range(24))
def test_every_slot_holds_what_the_definition_says(seed: int) -> None:
    rng = Random(seed)
    spec = random_operator(rng)
    plan = with_any_phases(rng, random_plan(rng, spec, 12))
    here = tuple(rng.randrange(n) for n in plan.steps)
    assert geometry.coordinates(plan).tolist() == [place_of(plan, core) for core in range(plan.n_cores)]
    for slot, operand in enumerate(spec.rotatable):
        lengths = geometry.window_lengths(plan, slot)
        starts = geometry.window_starts(plan, slot, here)
        assert starts.tolist() == [
            [start_of(plan, plan.ft[slot], place_of(plan, core), here, axis) for axis in range(len(here))]
            for core in range(plan.n_cores)
        ]
        held = geometry.flat_elements(operand, lengths, plan, starts)
        assert held.reshape(plan.n_cores, -1).tolist() == elements_of(operand, plan, plan.ft[slot], here)
    for number, operand in enumerate((*spec.operands, spec.output)):
        # Inputs lie as before the first step; what epilogues read and results as after the last.
        slot = min(number, len(spec.inputs))
        positions = (0,) * len(plan.f_op) if number < len(spec.inputs) else final_positions(plan)
        lies = movement.operand_elements(spec, plan, number).reshape(plan.n_cores, -1)
        assert lies.tolist() == elements_of(operand, plan, plan.ft[slot], positions)


@pytest.mark.parametrize("seed", range(24))
def test_neighbours_hold_the_next_window_of_the_same_ring(seed: int) -> None:
    rng = Random(seed)
    spec = random_operator(rng)
    plan = random_plan(rng, spec, 12)
    still = (0,) * len(plan.f_op)
    for slot, operand in enumerate(spec.rotatable):
        row = plan.ft[slot]
        own = [axis for axis in range(len(row)) if axis in operand.axes]
        places = [place_of(plan, core) for core in range(plan.n_cores)]
        keys = [tuple((where[a], start_of(plan, row, where, still, a)) for a in own) for where in places]
        parts = [tuple(where[a] for a in own) for where in places]
        assert geometry.n_sharers(operand, plan) == parts.count(parts[0])
        assert geometry.n_replicas(spec, plan, slot) == parts.count(parts[0]) // prod(row)
        ranks = geometry.replica_ranks(operand, plan, slot).tolist()
        assert ranks == [keys[:core].count(key) for core, key in enumerate(keys)]
        for axis in (axis for axis in own if row[axis] > 1):
            width = plan.lengths[axis] // row[axis]
            for direction in (1, -1):
                sources = geometry.shift_sources(spec, plan, slot, axis, direction).tolist()
                for core, source in enumerate(sources):
                    part, start = keys[core][own.index(axis)]
                    wanted = list(keys[core])
                    wanted[own.index(axis)] = (part, (start + direction * width) % plan.lengths[axis])
                    assert (keys[source], ranks[source]) == (tuple(wanted), ranks[core])


def test_slots_outside_of_a_large_tensor_hold_nothing() -> None:
    # Two of -1.6e9 are not a negative number of 32 bits.
    dims = (AffineDim((Term(0, 1),), -1), AffineDim((Term(1, 1),), -1))
    still = ((1, 1), (1, 1))
    plan = OperatorPlan((1, 1), (2, 2), still, (0, 0), (1, 1), (), ((), ()), (0, 1))
    held = geometry.flat_elements(
        Operand("x", "activation", "f32", (40_000, 40_000), dims), (2, 2), plan, np.zeros((1, 2), np.int64)
    )
    assert held.tolist() == [[[-1, -1], [-1, 0]]]


def test_windows_far_apart_are_not_taken_for_one() -> None:
    # Numbers of windows that are made of one place after the other would need 66 bits.
    far = (1 << 32) - 1
    whole = ((2, 2, 2, 1),) * 2
    phases = tuple((PhaseTerm((3,), 4 >> axis, 2, far if axis else 1),) for axis in range(3))
    lengths = (2, 1 << 33, 1 << 33, 1)
    plan = OperatorPlan(
        (1, 1, 1, 8), lengths, whole, (1, 1, 1, 0), (2, 2, 2, 1), (0, 1, 2), (*phases, ()), (0, 1, 2, 3)
    )
    operand = Operand("x", "activation", "f32", (2, 1 << 33, 1 << 33), simple(0, 1, 2))
    assert geometry.replica_ranks(operand, plan, 0).tolist() == [0] * 8
