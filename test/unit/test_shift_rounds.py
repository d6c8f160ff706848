"""What shifts are priced at is what the exchange simulator says of the copies that programs make of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

import numpy as np
import pytest
from support import specs
from support.random_plans import random_plan
from support.random_specs import random_operator
from support.simulation import plan_of

from t10.chip import ChipSpec, load_chip
from t10.core import geometry
from t10.core.device import Pattern
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.loads import Places
from t10.core.operator_body import loop_statements, rotating_operands
from t10.core.plan import OperatorPlan
from t10.core.program import Shift
from t10.core.shift_rounds import shift_bytes
from t10.cost import IpuCostModel
from t10.cost.shifts import begins_whole, nest_cycles, nest_shifts, round_cycles
from t10.emit.shifts import shift_patterns
from t10.sim.device.phase import ExchangeModel, pattern_time

CHIP = load_chip("test-64")
APART, BUFFER = 1 << 16, 1 << 19
"""Bytes between operands, each in memory elements of its own, and where the shift buffer lies."""
PLANS = 40
TIED: tuple[tuple[AxisSizes, AxisSizes, tuple[AxisSizes, ...]], ...] = (
    ((64, 64, 64), (4, 4, 1), ((1, 1, 4), (1, 1, 4), (1, 1, 1))),
    ((64, 64, 64), (8, 8, 1), ((1, 1, 8), (1, 1, 4), (1, 1, 1))),
    ((128, 128, 128), (4, 4, 4), ((1, 1, 2), (1, 1, 4), (1, 1, 1))),
)
"""Products of which both operands pass on as much at a time, from different cores: extents, F_op, ft."""


def rotating_plans(seed: int, n: int) -> Iterator[tuple[ChipSpec, OperatorSpec, OperatorPlan]]:
    """Yield random plans that rotate, on chips with large and small shift buffers."""
    rng = Random(seed)
    while n:
        chip = CHIP.model_copy(update={"shift_buffer_bytes": rng.choice([16, 64, 256, 8192])})
        spec = random_operator(rng, largest=rng.choice([4_000, 40_000]))
        plan = random_plan(rng, spec, rng.choice([8, 16, 48, 64]))
        if plan.loop_order:
            n -= 1
            yield chip, spec, plan


def loop_shifts(plan: OperatorPlan) -> Counter[Shift]:
    """Return the shifts of a plan's loops and how often each is made, positions of other axes left out."""
    found = Counter[Shift]()
    for each in loop_statements(plan.loop_order, plan.steps, rotating_operands(plan)):
        if isinstance(each, Shift):
            positions = tuple(n if axis == each.axis else 0 for axis, n in enumerate(each.positions))
            found[Shift(each.operands, each.axis, positions, each.stop)] += 1
    return found


def simulated(
    chip: ChipSpec, spec: OperatorSpec, plan: OperatorPlan, statement: Shift, places: Places | None = None
) -> tuple[int, ...]:
    """Return the cycles of a shift by round, as the exchange simulator times the copies of programs."""
    at = [places.sources[n] if places else APART * n for n in range(len(spec.rotatable))]
    buffer = places.target if places else BUFFER

    def cycles(pattern: Pattern, sources: Sequence[int], target: int, *, is_neighbour: bool = False) -> int:
        return pattern_time(
            pattern,
            ExchangeModel(chip),
            chip.n_cores,
            source_offsets=np.array(sources, np.int64),
            target_offset=target,
            is_neighbour=is_neighbour,
        ).cycles

    rounds = shift_patterns(spec, plan, statement, chip.shift_buffer_bytes)
    found: list[int] = []
    for passages in rounds:
        total = 0
        for each in passages:
            operands = [at[part.number] for part in each.passage.parts]
            total += cycles(each.pattern, operands, buffer, is_neighbour=True)
            total += sum(cycles(out, [buffer], to) for out, to in zip(each.copied_out, operands, strict=True))
        found.append(total)
    return tuple(found)


@pytest.mark.slow
def test_where_windows_begin_is_told_from_strides() -> None:
    found = Counter[bool]()
    for _, _, plan in rotating_plans(1, 240):
        for axis in plan.loop_order:
            is_whole = not (geometry.phases(plan)[:, axis] % plan.rp[axis]).any()
            assert begins_whole(plan, axis) == is_whole
            found[is_whole] += 1
    assert found[False] > 2


@pytest.mark.parametrize("seed", [0, 1, 2, 6])  # In the last one, shifts of an axis differ by position.
def test_a_shift_takes_what_it_is_priced_at_and_no_less_than_its_bytes_say(seed: int) -> None:
    n_rounds = 0
    for chip, spec, plan in rotating_plans(seed, PLANS):
        least = IpuCostModel(chip).least
        shifts = loop_shifts(plan)
        due = {each: simulated(chip, spec, plan, each) for each in shifts}
        for each, by_round in due.items():
            assert round_cycles(chip, spec, plan, each) == by_round, f"{each} of {plan} of {spec}"
            assert least.shift_cycles(shift_bytes(spec, plan, each)) <= sum(by_round)
            n_rounds += len(by_round) > 1
        assert sum(n for n, _ in nest_shifts(spec, plan)) == shifts.total()
        assert nest_cycles(chip, spec, plan) == sum(n * sum(due[each]) for each, n in shifts.items())
    assert n_rounds


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize(("extents", "f_op", "ft"), TIED)
def test_ports_that_wait_for_each_other_are_in_the_price(
    extents: AxisSizes, f_op: AxisSizes, ft: tuple[AxisSizes, ...], dtype: str
) -> None:
    m, n, k = extents
    spec = specs.matmul(m, n, k, dtype)
    plan = plan_of(spec, f_op, ft)
    for each in loop_shifts(plan):
        assert round_cycles(CHIP, spec, plan, each) == simulated(CHIP, spec, plan, each)


@pytest.mark.parametrize("seed", range(2))
def test_shifts_that_share_memory_elements_take_what_they_are_priced_at(seed: int) -> None:
    n_slower = 0
    rng = Random(seed)
    for chip, spec, plan in rotating_plans(seed + 10, PLANS):
        buffer = 8 * rng.randrange(0, 1 << 12)
        at = tuple(buffer + 8192 + 8 * rng.randrange(0, 1 << 12) for _ in spec.rotatable)
        interleaved = chip.interleaved_base - chip.memory_base
        places = Places(chip.element_bytes, interleaved, buffer, at)
        shifts = loop_shifts(plan)
        due = {each: simulated(chip, spec, plan, each, places) for each in shifts}
        for each, by_round in due.items():
            assert round_cycles(chip, spec, plan, each, places) == by_round
            n_slower += by_round > round_cycles(chip, spec, plan, each)
        assert nest_cycles(chip, spec, plan, places) == sum(n * sum(due[each]) for each, n in shifts.items())
    assert n_slower


def test_an_inner_loop_sweeps_to_and_fro() -> None:
    """Two loops, of 2 and of 4 steps: the inner one makes three shifts, then three back."""
    plan = plan_of(specs.matmul(64, 64, 64), (4, 4, 1), ((1, 1, 4), (1, 2, 1), (1, 1, 1)))
    found = Counter[tuple[int, int]]()
    for n, each in nest_shifts(specs.matmul(64, 64, 64), plan):
        found[each.axis, each.direction] += n
    assert (plan.loop_order, found) == ((1, 2), {(1, 1): 1, (2, 1): 3, (2, -1): 3})
