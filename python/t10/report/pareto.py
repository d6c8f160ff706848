"""Time against memory of an operator: which of its plans are on the Pareto front, and which one runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from t10.core.plan import CostedPlan
from t10.core.schedule import ScheduledOperator


@dataclass(frozen=True, slots=True)
class FrontPlot:
    """Points (bytes per core, cycles): of the Pareto front by bytes, of other plans, and of the chosen plan if any."""

    front: tuple[tuple[int, int], ...]
    others: tuple[tuple[int, int], ...]
    chosen: tuple[int, int] | None

    @property
    def is_on_front(self) -> bool:
        """Return whether the chosen plan is one of the front."""
        return self.chosen in self.front


def front_plot(planned: ScheduledOperator) -> FrontPlot:
    """Return the points of an operator's plot, all at costs without bank conflicts and with activations anywhere."""
    same = next((each for each in planned.pareto if each.plan == planned.active.plan), planned.active)
    return plot_of([_point(each) for each in planned.pareto], _point(same))


def plot_of(points: Sequence[tuple[int, int]], chosen: tuple[int, int] | None) -> FrontPlot:
    """Return the plot of some points, those of the front told from the others."""
    front = on_front(points)
    return FrontPlot(front, tuple(sorted(set(points) - set(front))), chosen)


def on_front(points: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the points that no other beats in both numbers, by the first."""
    front: list[tuple[int, int]] = []
    for point in sorted(points):
        if not front or point[1] < front[-1][1]:
            front.append(point)
    return tuple(front)


def front_record(planned: ScheduledOperator) -> dict[str, Any]:
    """Return the same as JSON values, with how many cores and steps the plans of the front have."""
    plot = front_plot(planned)
    about = {_point(each): (each.plan.n_cores, each.plan.n_sub_tasks) for each in reversed(planned.pareto)}
    return {
        "front": [[*point, *about[point]] for point in plot.front],
        "others": [[*point, *about[point]] for point in plot.others],
        "chosen": list(plot.chosen or ()),
        "isOnFront": plot.is_on_front,
    }


def _point(each: CostedPlan) -> tuple[int, int]:
    return each.active_bytes, each.cycles.total
