"""The search of one operator in stages that can be looked at: partitions, then whole plans, then the front.

One after the other they find what `plan_operator` finds in one call, which prices only what bounds leave over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from t10.chip import ChipSpec
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.links import Links
from t10.core.plan import OperatorPlan
from t10.core.space import PartitionSpace
from t10.cost import CostModel
from t10.errors import InfeasiblePlanError
from t10.plan.fronts.pinned import check_pace
from t10.plan.options import PlanOptions
from t10.plan.search.alignment import align_pace
from t10.plan.search.laid_out import laid_out
from t10.plan.search.listed import PartitionFactors
from t10.plan.search.operator import ft_of_pace, no_such_pace, operator_space
from t10.plan.search.placement import place
from t10.plan.search.space import partitions_within, unrotated_within
from t10.plan.search.temporal import TemporalSpace


def partitions_or_space(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions, most: int
) -> tuple[PartitionFactors, ...] | PartitionSpace:
    """Return the partitions of an operator within its options, or the space of them if it may hold more than `most`.

    Raises `InfeasiblePlanError` for forced factors that cannot be aligned or need more cores than there are.
    """
    forced = options.forced_for(spec.name)
    if forced is not None:
        check_pace(spec, forced)
    space = operator_space(spec, chip, cost, options)
    if forced is not None and forced.ft is not None:
        return ((forced.f_op, forced.ft),)
    return space if space.at_most > most else tuple(partitions_of(spec, space))


def partitions_of(spec: OperatorSpec, space: PartitionSpace) -> Iterator[PartitionFactors]:
    """Yield every partition of a space in lexicographic order, whatever its pace; see `partitions_within`."""
    temporal = TemporalSpace.of(spec)
    unrotated: set[AxisSizes] = {tuple(row) for row in unrotated_within(spec, space).tolist()}
    searched: list[AxisSizes] = [tuple(row) for row in partitions_within(spec, space).tolist()]
    for f_op in sorted([*searched, *unrotated]):
        if f_op in unrotated:
            yield f_op, ((1,) * len(f_op),) * len(spec.rotatable)
            continue
        for ft in temporal.partitions(f_op, space.padding).tolist():
            yield f_op, tuple(tuple(factors) for factors in ft)


def aligned_space(spec: OperatorSpec, space: PartitionSpace, rp: AxisSizes | None) -> PartitionSpace:
    """Return a space with its pace decided: `rp` where one is forced, else what every partition's factors give.

    Raises `InfeasiblePlanError` where no partition has that pace.
    """
    if rp is not None and space.f_op is not None:
        ft_of_pace(spec, space.f_op, rp)
    return replace(space, rp=rp, is_aligned=True)


def placed_plans(
    spec: OperatorSpec,
    partitions: Iterable[PartitionFactors],
    rp: AxisSizes | None,
    links: Links | None = None,
) -> tuple[OperatorPlan, ...]:
    """Return the plans of the partitions that can be aligned, to the pace `rp` if there is one, and placed.

    Cores lie as `links` between groups of them are least busy.

    Raises `InfeasiblePlanError` where none is left: says why the last went that could not be aligned.
    """
    plans: list[OperatorPlan] = []
    refusal: InfeasiblePlanError | None = None
    others: dict[AxisSizes, AxisSizes] = {}
    for f_op, ft in partitions:
        try:
            pace = align_pace(spec, f_op, ft)
        except InfeasiblePlanError as error:
            refusal = error
            continue
        if rp is not None and pace.rp != rp:
            others[pace.rp] = f_op
            continue
        plan = place(spec, f_op, ft, pace)
        if plan is not None:
            plans.append(plan if links is None else laid_out(links, spec, plan))
    if plans:
        return tuple(plans)
    if rp is not None and others:
        raise no_such_pace(spec, next(iter(others.values())), rp, others)
    raise refusal or InfeasiblePlanError(
        "no candidate has a placement: tensors that rotate along one axis have sharers that overlap",
        operator=spec.name,
        location=spec.location or None,
    )
