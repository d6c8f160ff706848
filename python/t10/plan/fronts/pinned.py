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
from t10.core.legal import PlanRows
from t10.core.plan import CostedPlan, OperatorPlan
from t10.core.schedule import ModulePlan
from t10.cost import CostModel
from t10.errors import InfeasiblePlanError, InputError, VerifyError
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.search.alignment import align_pace, require_legal
from t10.plan.search.listed import front_that_fits
from t10.plan.search.operator import SearchProgress, plan_operator
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
    if forced is not None and forced.plan is not None:
        check_plan(spec, chip, forced.plan)
        return front_that_fits(spec, (forced.plan,), chip, cost, options)
    if forced is not None:
        check_pace(spec, forced)
    return plan_operator(spec, chip, cost, options, progress)


def check_pace(spec: OperatorSpec, forced: ForcedPartition) -> None:
    """Raise `InfeasiblePlanError` if the factors forced cannot be aligned, or rp is not what alignment gives."""
    if forced.ft is None:
        require_legal(spec, PlanRows(forced.f_op))
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


def _refusal(spec: OperatorSpec, message: str, hint: str) -> InfeasiblePlanError:
    return InfeasiblePlanError(message, operator=spec.name, location=spec.location or None, hint=hint)
