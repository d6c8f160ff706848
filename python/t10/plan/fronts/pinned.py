"""Plans that a user has chosen, in part or whole: checked, completed and priced.

Of a pinned operator at least F_op is given. What else is given is kept, what is missing is searched; what contradicts
itself or the operator is one error that names the operator and where it comes from.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.plan import CostedPlan, OperatorPlan
from t10.core.schedule import ModulePlan
from t10.cost import CostModel
from t10.errors import InfeasiblePlanError, InputError, VerifyError
from t10.plan.memory.operator_bound import least_bytes
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.search.alignment import align_pace
from t10.plan.search.operator import (
    PartitionFactors,
    SearchProgress,
    align,
    pareto_front,
    partition_candidates,
    placed,
    plan_operator,
)
from t10.plan.verify import verify_operator

MOST_NAMED = 8


def pinned_front(
    spec: OperatorSpec,
    chip: ChipSpec,
    cost: CostModel,
    options: PlanOptions,
    progress: SearchProgress | None = None,
) -> tuple[CostedPlan, ...]:
    """Return the plans of an operator that agree with what is forced of it, fastest last; never empty.

    Raises `InfeasiblePlanError` for factors or a pace that cannot be, or where nothing fits a core, and `VerifyError`
    for a whole plan that is wrong.
    """
    forced = options.forced_for(spec.name)
    if forced is None:
        return plan_operator(spec, chip, cost, options, progress)
    if forced.plan is not None:
        check_plan(spec, chip, forced.plan)
        front = pareto_front(spec, (forced.plan,), cost, options)
        _check_room(spec, chip, front[0])
        return front
    partitions = pinned_partitions(spec, chip, cost, options)
    front = pareto_front(spec, placed(spec, align(spec, partitions)), cost, options)
    if not front:
        raise _refusal(
            spec, f"none of {len(partitions)} partitions as pinned could be placed", "pin f_op only"
        )
    return front


def pinned_partitions(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions
) -> tuple[PartitionFactors, ...]:
    """Return the partitions of an operator that agree with what is forced of it; raises as `pinned_front` does."""
    forced = options.forced_for(spec.name)
    if forced is not None:
        check_pace(spec, forced)
    partitions = partition_candidates(spec, chip, cost, options)
    if forced is None or forced.rp is None:
        return partitions
    aligned = align(spec, partitions)
    kept = tuple(partition for partition, pace in aligned if pace.rp == forced.rp)
    if not kept:
        paces = sorted({pace.rp for _, pace in aligned})
        raise _refusal(
            spec,
            f"nothing on the front of f_op {list(forced.f_op)} has rp {list(forced.rp)}"
            f" (expected one of {', '.join(str(list(rp)) for rp in paces)})",
            "give ft as well: rp follows from it",
        )
    return kept


def check_pace(spec: OperatorSpec, forced: ForcedPartition) -> None:
    """Raise `InfeasiblePlanError` if the factors forced cannot be aligned, or rp is not what alignment gives."""
    if forced.ft is None:
        ones = tuple((1,) * len(spec.axes) for _ in spec.rotatable)
        align_pace(spec, forced.f_op, ones)
        return
    pace = align_pace(spec, forced.f_op, forced.ft)
    if forced.rp is not None and forced.rp != pace.rp:
        raise _refusal(
            spec,
            f"rp is {list(forced.rp)}, but these f_op and ft align to rp {list(pace.rp)}: parts of"
            f" {list(pace.lengths)} elements in {list(pace.steps)} steps",
            "leave rp out, or change ft",
        )


def check_plan(spec: OperatorSpec, chip: ChipSpec, plan: OperatorPlan) -> None:
    """Raise `VerifyError` with the first rule that a whole plan of an operator breaks."""
    found = verify_operator(spec, plan, chip.n_cores)
    if found:
        first = found[0]
        raise VerifyError(
            f"the pinned plan is wrong: {first.rule}: found {first.found}, expected {first.expected}",
            operator=spec.name,
            location=spec.location or None,
            hint="pin f_op and ft only, and let the planner place it",
        )


def check_names(names: Iterable[str], graph: Graph) -> None:
    """Raise `InputError` for names of operators that a model does not have, with those that come close."""
    known = [spec.name for spec in graph.operators]
    for name in names:
        if name not in known:
            raise InputError(unknown_operator(name, known))


def unknown_operator(name: str, known: list[str]) -> str:
    """Return the sentence about a name that no operator has: what comes close, else the names there are."""
    close = get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"no operator '{name}' (did you mean {' or '.join(close)}?)"
    more = ", ..." if len(known) > MOST_NAMED else ""
    return f"no operator '{name}' (expected one of {', '.join(known[:MOST_NAMED])}{more})"


def idle_levels(plan: ModulePlan) -> dict[str, int]:
    """Return the idle level of every operator of a planned model, by name: 0 where its weights are spread out."""
    levels = {operator.name: 0 for operator in plan.operators}
    for layout in plan.weight_layouts:
        if layout.operator:
            levels[layout.operator] = max(levels[layout.operator], layout.scatter)
    return levels


def _check_room(spec: OperatorSpec, chip: ChipSpec, priced: CostedPlan) -> None:
    room, need = chip.capacity_bytes - chip.shift_buffer_bytes, least_bytes(spec, priced.plan)
    if need > room:
        raise _refusal(
            spec,
            f"the pinned plan needs {need} bytes per core, {room} are available on {chip.name}",
            "cut it further, in space (f_op) or in time (ft)",
        )


def _refusal(spec: OperatorSpec, message: str, hint: str) -> InfeasiblePlanError:
    return InfeasiblePlanError(message, operator=spec.name, location=spec.location or None, hint=hint)
