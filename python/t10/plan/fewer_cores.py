"""Choices that run on fewer cores of a chip with links: on one chip of several, on some rows of a mesh, on one core.

What a whole model takes on few cores next to each other may be less than on all, because nothing passes slow links. No
operator alone shows that: its own plans are as fast or faster on all cores. So the model is also planned for the first
cores of the chip, fewer and fewer, as long as that is nearly as fast. These choices are states of the whole chip.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from t10.core.first_cores import fewer_cores
from t10.core.links import Links
from t10.errors import InfeasiblePlanError
from t10.plan.assemble import fronts_at_levels
from t10.plan.context import Context
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.greedy.algorithm1 import base_bytes
from t10.plan.joint.choose import JointChoice, JointPlanner, KnownChoice, is_past
from t10.plan.joint.marginals import alone
from t10.plan.memory.levels import Choice
from t10.plan.movement.arrivals import Mover
from t10.plan.options import PlanOptions, Reading
from t10.plan.search.pareto import Front

SLOWER = 9 / 8
"""Fewer cores are tried until the model takes so many times the cycles of the best choice known."""

Starts = Callable[[Context, tuple[Front, ...]], Mapping[Reading, Sequence[Choice] | None]]
"""Returns choices of Algorithm 1 to begin with."""


def choices_on_fewer_cores(
    context: Context,
    links: Links,
    options: PlanOptions,
    starts: Starts,
    most_cycles: int,
    deadline: float | None = None,
) -> list[KnownChoice]:
    """Return the choices on the first cores that make a model faster that takes `most_cycles` on all of them."""
    found: list[KnownChoice] = []
    # What is pinned says how many cores there are.
    for n_cores in () if options.forced else fewer_cores(links):
        if is_past(deadline):
            break
        joint = _planned_on(context, n_cores, options, starts, most_cycles, deadline)
        if joint is None:
            break
        if joint.cycles < most_cycles:
            most_cycles = joint.cycles
            found.append(joint.known())
    return found


def _planned_on(
    context: Context,
    n_cores: int,
    options: PlanOptions,
    starts: Starts,
    most_cycles: int,
    deadline: float | None,
) -> JointChoice | None:
    """Return the best choice on so many first cores, None where it cannot be nearly as fast."""
    chip = context.chip.model_copy(update={"n_cores": n_cores})
    few = replace(context, chip=chip, mover=Mover(context.graph, context.cost, n_cores))
    try:
        fronts = operator_fronts(context.graph, chip, context.cost, options)
        fronts = fronts_at_levels(few, fronts, context.level_by_operator)
    except InfeasiblePlanError:
        return None
    if sum(min(alone(each).cycles.total for each in front) for front in fronts) > most_cycles * SLOWER:
        return None
    planner = JointPlanner(few, fronts, options, starts(few, fronts), deadline=deadline)
    joint = planner.best(chip.capacity_bytes - base_bytes(few))
    return joint if joint is not None and joint.cycles <= most_cycles * SLOWER else None
