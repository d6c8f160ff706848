"""Weights that several operators read: spread out and copied for each, or whole in one layout that all use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from t10.core.schedule import ModulePlan
from t10.errors import InfeasiblePlanError
from t10.plan.context import Context
from t10.plan.options import ForcedPartition


def best_sharing(
    context: Context, forced: Sequence[ForcedPartition], planned: Callable[[Context], ModulePlan]
) -> ModulePlan:
    """Return the faster plan of two: shared weights all spread out, or all resting as their first reader has them.

    Raises the `InfeasiblePlanError` of the first where neither fits.
    """
    contexts = {level: context.with_shared(level, forced) for level in (0, 1)}
    if contexts[0] == contexts[1]:
        return planned(context)
    found: list[ModulePlan] = []
    errors: list[InfeasiblePlanError] = []
    for each in contexts.values():
        try:
            found.append(planned(each))
        except InfeasiblePlanError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    known = [plan.optimality for plan in found if plan.optimality is not None]
    best = min(found, key=lambda plan: 0 if plan.optimality is None else plan.optimality.cycles)
    if best.optimality is None:
        return best
    both = replace(
        best.optimality,
        bound_cycles=min(each.bound_cycles for each in known),
        n_states=sum(each.n_states for each in known),
    )
    return replace(best, optimality=both)
