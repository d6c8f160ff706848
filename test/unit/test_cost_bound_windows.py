"""Bounds of steps and shifts of plans whose windows are known: never above what these take, and closer than others."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support.random_products import handed_on_rounded, product_of, random_box, random_product
from support.specs import dim

from t10.codelets.count import cycles_of
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.task_nest import simplified
from t10.cost.bound.step import sub_task_bound
from t10.cost.work import step, step_offsets

SPECS = 150
MULTIPLES = (1, 1, 1, 2, 3)


def random_windows(rng: Random, spec: OperatorSpec, box: AxisSizes) -> tuple[AxisSizes, ...]:
    """Return windows of all rotatable operands, whole numbers of the box."""
    return tuple(tuple(n * rng.choice(MULTIPLES) for n in box) for _ in spec.rotatable)


def counted(
    spec: OperatorSpec, box: AxisSizes, windows: tuple[AxisSizes, ...], *, initial: bool
) -> int | None:
    """Return the cycles of the fastest step over a box in windows, wherever in them it begins."""
    task = simplified(step(spec, box, windows, initial=initial))
    found = [cycles_of(task, offsets) for offsets in step_offsets(spec, windows, box)]
    known = [cycles for cycles in found if cycles is not None]
    return min(known, default=None)


@pytest.mark.slow
def test_no_step_takes_less_than_the_bound_of_its_windows() -> None:
    rng = Random(21)
    shares: list[float] = []
    loose: list[float] = []
    for number in range(SPECS):
        spec = random_product(rng)
        if number % 5 == 0 and spec.body.ops[0].opcode == "arith.extf":
            spec = handed_on_rounded(spec)
        box = random_box(rng, spec)
        windows = random_windows(rng, spec, box)
        adds = rng.random() < 0.5
        cycles = counted(spec, box, windows, initial=not adds)
        if cycles is None:
            continue
        boxes = np.array([box])
        with np.errstate(divide="ignore", invalid="ignore"):
            lies = [np.array([each]) for each in windows]
            bound = int(sub_task_bound(spec, boxes, windows=lies, adds=adds)[0])
            other = int(sub_task_bound(spec, boxes)[0])
        assert bound <= cycles, f"{box} in {windows} of {spec.inputs} -> {spec.output}: {bound} > {cycles}"
        shares.append(bound / cycles)
        loose.append(other / cycles)
    assert len(shares) > SPECS // 2
    assert np.median(shares) >= np.median(loose)
    assert np.mean(shares) > np.mean(loose)


@pytest.mark.parametrize("box", [(190, 16, 16), (46, 32, 32), (13, 8, 64), (8, 12, 4)])
@pytest.mark.parametrize("is_rounded", [False, True])
def test_a_step_that_adds_is_bounded_by_what_adding_takes(box: AxisSizes, is_rounded: bool) -> None:
    """Partial sums are loaded, and those of f16 widened first: bounds of steps that may begin know nothing of it."""
    spec = product_of(
        ([dim((0, 1)), dim((2, 1))], [dim((1, 1)), dim((2, 1))], [dim((0, 1)), dim((1, 1))]), {2}
    )
    spec = handed_on_rounded(spec) if is_rounded else spec
    windows = (box, box, box)
    cycles = counted(spec, box, windows, initial=False)
    assert cycles is not None
    lies = [np.array([each]) for each in windows]
    bound, any_step = (
        int(sub_task_bound(spec, np.array([box]), windows=lies, adds=adds)[0]) for adds in (True, False)
    )
    assert any_step < bound <= cycles
    assert bound >= 0.8 * cycles
