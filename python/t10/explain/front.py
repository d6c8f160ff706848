"""The front of one operator as points: cycles by kind against bytes of a core, and the plan behind each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t10.core.expression import OperatorSpec
from t10.core.plan import CostedPlan, OperatorPlan
from t10.explain.expression import by_axis
from t10.report.pareto import on_front


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """One plan: `number` on its front, counted from 1 at the least memory; `is_chosen` where the model runs it.

    `number` is 0 for a plan that the front beats: a model may run one, as its plans are chosen together.

    `fetch_cycles` are an estimate of what activations cost to bring from anywhere; in a model, exact relayouts and
    set-ups take their place. `cycles` is the sum of all kinds, without bank conflicts, for every plan alike.
    """

    number: int
    cycles: int
    compute_cycles: int
    shift_cycles: int
    reduce_cycles: int
    fetch_cycles: int
    active_bytes: int
    weight_bytes: int
    n_cores: int
    n_sub_tasks: int
    f_op: dict[str, int]
    ft: dict[str, dict[str, int]]
    rp: dict[str, int]
    reduce: str
    is_chosen: bool = False


def front_points(
    spec: OperatorSpec, front: Sequence[CostedPlan], chosen: OperatorPlan | None = None
) -> tuple[FrontPoint, ...]:
    """Return the plans of a front, least memory first as they come; `chosen` is marked where it is one of them."""
    return tuple(_point(spec, *each, chosen) for each in zip(front, front_numbers(front), strict=True))


def front_numbers(plans: Sequence[CostedPlan]) -> tuple[int, ...]:
    """Return the number of every plan on the front of all, 0 for one that another beats in cycles and bytes."""
    points = [(each.active_bytes, each.cycles.total) for each in plans]
    numbers = {point: number for number, point in enumerate(on_front(points), start=1)}
    return tuple(
        0 if point in points[:place] else numbers.get(point, 0) for place, point in enumerate(points)
    )


def cuts_text(point: FrontPoint) -> str:
    """Return how a plan cuts its operator: in space, then in time, e.g. `m 2, n 3 | a: k 3, b: k 2`."""
    space = ", ".join(f"{axis} {parts}" for axis, parts in point.f_op.items()) or "nothing"
    time = ", ".join(
        f"{tensor}: {' '.join(f'{axis} {parts}' for axis, parts in row.items())}"
        for tensor, row in point.ft.items()
    )
    return f"{space} | {time}" if time else space


def _point(spec: OperatorSpec, priced: CostedPlan, number: int, chosen: OperatorPlan | None) -> FrontPoint:
    plan, cycles = priced.plan, priced.cycles
    ft = {operand.name: by_axis(spec, row, 1) for operand, row in zip(spec.rotatable, plan.ft, strict=True)}
    return FrontPoint(
        number=number,
        cycles=cycles.total,
        compute_cycles=cycles.compute,
        shift_cycles=cycles.shift,
        reduce_cycles=cycles.reduce,
        fetch_cycles=cycles.relayout + cycles.setup,
        active_bytes=priced.active_bytes,
        weight_bytes=priced.weight_bytes,
        n_cores=plan.n_cores,
        n_sub_tasks=plan.n_sub_tasks,
        f_op=by_axis(spec, plan.f_op, 1),
        ft={name: row for name, row in ft.items() if row},
        rp=by_axis(spec, plan.rp, 0),
        reduce=plan.reduce,
        is_chosen=plan == chosen,
    )
