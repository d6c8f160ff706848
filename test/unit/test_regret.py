"""No legal pin is cheaper than the plan that is called the fastest, and no bound is above the price of a plan."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from regret import Regret, report
from support.random_pins import RandomPins
from support.random_products import random_product

from t10.chip import ChipSpec, load_chip
from t10.codelets.count import counted_cycles, run_cycles
from t10.core.arrays import Ints
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.geometry import partition_elements
from t10.cost import IpuCostModel
from t10.cost.work import box_bytes
from t10.errors import UnsupportedOpError
from t10.plan.options import PlanOptions
from t10.plan.search.evaluate import padded_lengths
from t10.plan.search.operator import plan_operator
from t10.plan.search.space import axis_factors
from t10.plan.search.temporal import TemporalSpace
from t10.profile.boxes import random_boxes
from t10.profile.operators import made_steps

CHIP = load_chip("ipu-mk2")
COST = IpuCostModel(CHIP)
SMALL = load_chip("test-16")
N_OPERATORS, N_PINS = 12, 8
N_PLANS, N_ROWS = 120, 6
MOST_POINTS, MOST_BYTES = 1 << 16, 1 << 18
MADE = [one for one in made_steps() if one.step == "sub_task"]


def shortened(spec: OperatorSpec, rng: Random, power: float) -> OperatorSpec:
    """Return an operator with axes as long as a random power of their extents, window positions as they are."""
    axes = tuple(
        axis
        if number in spec.window_positions
        else replace(axis, extent=max(round(axis.extent ** (power * rng.choice((0.6, 0.8, 1.0)))), 1))
        for number, axis in enumerate(spec.axes)
    )
    return replace(spec, axes=axes)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(N_OPERATORS))
def test_no_legal_pin_is_cheaper_than_the_fastest_plan(number: int) -> None:
    rng = Random(number)
    spec = shortened(MADE[number * len(MADE) // N_OPERATORS].spec, rng, 0.5)
    cost = IpuCostModel(SMALL)
    best = plan_operator(spec, SMALL, cost, PlanOptions(exhaustive=True))[-1]
    pins = RandomPins(spec, SMALL, cost, rng)
    for pin in pins.near_the_best(N_PINS, [best]):
        assert pin.cycles.total >= best.cycles.total, f"{spec.name}: f_op {pin.plan.f_op} ft {pin.plan.ft}"
    assert not pins.above


def regret_of(**other: Any) -> Regret:
    """Return what an operator comes to that no pin beats, but for what is given."""
    known: dict[str, Any] = {
        "model": "m", "operator": "o", "kind": "k", "extents": (4,), "n_pins": 1, "priced": 100, "timed": 100,
        "f_op": (1,), "ft": ((1,),), "least_price": 100, "pin_priced": 100, "pin_timed": 100,
    }  # fmt: skip
    return Regret(**(known | other))


@pytest.mark.parametrize(
    ("other", "status", "text"),
    [
        ({}, 0, "0 beaten"),
        ({"pin_timed": 98}, 1, "1 beaten by more than 1%"),
        (
            {"above": ((((2,), ((1,),)), (120, 110)),)},
            1,
            "bound 120 is above price 110 of f_op (2,) ft ((1,),)",
        ),
    ],
    ids=["fine", "beaten", "above"],
)
def test_the_search_for_better_pins_fails_where_a_pin_wins_or_a_bound_is_above(
    other: dict[str, Any], status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report([regret_of(), regret_of(**other)]) == status
    assert text in capsys.readouterr().out


def random_partitions(
    spec: OperatorSpec, chip: ChipSpec, rng: Random
) -> Iterator[tuple[AxisSizes, list[AxisSizes]]]:
    """Yield random F_op with ft rows whose parts fit a core, legal or not."""
    space = TemporalSpace.of(spec)
    factors = [
        axis_factors(axis.extent, chip.n_cores, 0.0) if axis.is_splittable else (1,) for axis in spec.axes
    ]
    for _ in range(N_ROWS):
        left, chosen = chip.n_cores, [1] * len(spec.axes)
        for axis in rng.sample(range(len(spec.axes)), len(spec.axes)):
            chosen[axis] = rng.choice([factor for factor in factors[axis] if factor <= left])
            left //= chosen[axis]
        f_op = tuple(chosen)
        per_slot = [space.rows(slot, f_op, 0.0).tolist() for slot in range(len(spec.rotatable))]
        ft = [tuple(rng.choice(rows)) if rng.random() < 0.6 else (1,) * len(f_op) for rows in per_slot]
        lengths = tuple(padded_lengths(spec, np.array([f_op]), np.array([ft]))[0].tolist())
        if prod(lengths) <= MOST_POINTS and box_bytes(spec, lengths) <= MOST_BYTES:
            yield f_op, ft


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(4))
def test_no_bound_is_above_the_price_of_a_plan(seed: int) -> None:
    """Steps that begin sums and that add to them, in the windows that cores hold; ends, reductions."""
    rng, n_priced = Random(seed), 0
    for _ in range(N_PLANS // 4):
        made = random_product(rng) if rng.random() < 0.4 else rng.choice(MADE).spec
        spec = shortened(made, rng, 1.0)
        chip = CHIP.model_copy(update={"n_cores": rng.choice((4, 16, 64, 256, 1472))})
        found = list(random_partitions(spec, chip, rng))
        if not found:
            continue
        f_op, ft = (np.array(each, np.int64) for each in zip(*found, strict=True))
        cost, least = IpuCostModel(chip), IpuCostModel(chip).least
        lengths, steps = padded_lengths(spec, f_op, ft), ft.max(axis=1)
        boxes, windows = lengths // steps, lengths[:, None, :] // ft
        members = f_op[:, list(spec.reduction_axes)].prod(axis=1) // ft[:, -1].prod(axis=1)
        n_out = partition_elements(spec.output, windows[:, -1])
        for adds in (False, True)[: 1 + (spec.combine != "none")]:
            asked = (spec, boxes, windows, np.full(len(boxes), adds))
            above = least.step_cycles_many(*asked) > cost.step_cycles_many(*asked)
            assert not above.any(), f"{spec.name}: {boxes[above][0]} in {windows[above][0]}, adds {adds}"
        for n in set(members.tolist()):
            rows = members == n
            asked = (spec, windows[rows, -1], members[rows])
            if spec.epilogue is not None or n > 1:
                assert (least.end_cycles_many(*asked) <= cost.end_cycles_many(*asked)).all(), asked
            sums = (spec, members[rows], n_out[rows])
            assert (least.reduce_cycles_many(*sums) <= cost.reduce_cycles_many(*sums)).all(), sums
            assert (least.all_reduce_cycles_many(*sums) <= cost.all_reduce_cycles_many(*sums)).all(), sums
            if n > 1:
                # Ends that add take cycles off the reduction: what is bounded is both together.
                scattered, whole = asked, (spec, windows[rows, -1], -members[rows])
                bound = least.reduce_cycles_many(*sums) + least.end_cycles_many(*scattered)
                assert (bound <= cost.reduce_cycles_many(*sums) + _ended(cost, *scattered)).all(), scattered
                bound = least.all_reduce_cycles_many(*sums) + least.end_cycles_many(*whole)
                assert (bound <= cost.all_reduce_cycles_many(*sums) + _ended(cost, *whole)).all(), whole
        n_priced += len(boxes)
    assert n_priced > N_PLANS / 4


def _ended(cost: IpuCostModel, spec: OperatorSpec, windows: Ints, members: Ints) -> Ints:
    """Return what ends take beyond the reductions in front of them, of which they may do the last additions."""
    return cost.end_cycles_many(spec, windows, members) - cost.fused_cycles_many(spec, windows, members)


def test_what_is_counted_is_what_a_run_takes_on_a_draw_by_the_commit() -> None:
    """Other sub-tasks with every commit; the seed is in the message."""
    root = Path(__file__).parents[2]
    command = ["git", "-C", str(root), "rev-parse", "--verify", "--quiet", "HEAD"]
    seed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "no commit"
    n_counted = 0
    for one in made_steps():
        rng = Random(f"{seed} {one.title}")
        for box in islice(random_boxes(one, rng), 2):
            task = one.other_task(box, rng)
            try:
                counted = counted_cycles(task)
            except UnsupportedOpError:
                continue
            if counted is not None:
                n_counted += 1
                assert counted == run_cycles(task), f"{seed}: {one.title} {box}"
    assert n_counted > len(made_steps())


COUNTEREXAMPLES = (
    ("f32 f32 to f32: t b d, b n d", (16, 8, 20, 128), ((16, 8, 20, 128),) * 3),
    ("f16 f16 to f32: t b d, b n d", (4, 2, 6, 256), ((4, 2, 12, 256), (4, 2, 6, 256), (4, 2, 12, 256))),
    ("f16 f16 to f32: m k, n k -> m n", (4, 52, 43), ((4, 52, 43), (4, 52, 86), (4, 52, 86))),
    ("f16 f16 to f16: t u, u n", (2, 11, 4), ((2, 22, 4), (2, 11, 188), (2, 22, 188))),
    (
        "f16 f16 to f32: x h+i w+j c, f i j c",
        (4, 2, 25, 4, 3, 3, 1),
        ((4, 2, 25, 148, 3, 3, 14), (4, 2, 25, 148, 3, 3, 1), (4, 2, 25, 4, 3, 3, 14)),
    ),
    (
        "f16 f16 to f32: x 2h+i 2w+j c, f i j c",
        (1, 2, 56, 2, 3, 3, 1),
        ((1, 4, 56, 2, 3, 3, 2), (1, 4, 112, 22, 3, 3, 1), (1, 2, 112, 22, 3, 3, 2)),
    ),
    (
        "f16 f16 to f32: x c h w, f c",
        (4, 2, 3, 6, 147),
        ((4, 2, 3, 6, 147), (4, 2, 3, 12, 147), (4, 2, 3, 12, 147)),
    ),
    ("gather i32 f32 to f32: n, d v", (1024, 11, 1), ((1024, 11, 1),) * 3),
)
"""Steps of which bounds were above counts: operators, boxes, and the windows of operands that they lie in."""


@pytest.mark.parametrize("number", range(len(COUNTEREXAMPLES)))
def test_no_bound_is_above_a_count_that_it_was_above(number: int) -> None:
    title, box, windows = COUNTEREXAMPLES[number]
    made = next(one.spec for one in MADE if title in one.title)
    # No part of a plan goes that far beyond its tensor.
    longest = np.maximum(box, np.max(windows, axis=0)).tolist()
    axes = [replace(axis, extent=max(axis.extent, n)) for axis, n in zip(made.axes, longest, strict=True)]
    spec = replace(made, axes=tuple(axes))
    for adds in (False, True)[: 1 + (spec.combine != "none")]:
        asked = (spec, np.array([box]), np.array([windows]), np.array([adds]))
        bound, count = (int(cost.step_cycles_many(*asked)[0]) for cost in (COST.least, COST))
        assert bound <= count
