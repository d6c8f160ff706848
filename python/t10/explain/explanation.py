"""Everything about one operator of a planned model, as one value: for the terminal, for plots, and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from t10.chip import ChipSpec
from t10.core import geometry
from t10.core.document.encode import cycles_record
from t10.core.partials import allowed_error, partials_type
from t10.core.schedule import ModulePlan
from t10.cost import CostModel
from t10.explain.choice import Choice, explain_choice
from t10.explain.expression import formula
from t10.explain.front import FrontPoint, front_points
from t10.explain.holdings import Holding, holdings
from t10.explain.nest import nest_text
from t10.plan.fronts.pinned import check_names


@dataclass(frozen=True, slots=True)
class Explanation:
    """One operator: `formula`, its program as text (`nest`), who holds what (`holdings`), its `front`, and why.

    `coordinates` give every core's place along the axes that are cut (`axes`: parts, the axis that changes from core to
    core last), by core number. `partials` is the type in which sums of f16 are kept (empty: none), `partials_error` the
    bound on the error of those in f16, as a part of |sum| + root of squares. `cost_model` names where cycles come from;
    all of them are modelled.
    """

    operator: str
    kind: str
    location: str
    chip: str
    cost_model: str
    formula: str
    partials: str
    partials_error: float
    cycles: dict[str, int]
    nest: str
    axes: dict[str, int]
    coordinates: tuple[tuple[int, ...], ...]
    holdings: tuple[Holding, ...]
    front: tuple[FrontPoint, ...]
    choice: Choice

    def as_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {"format": "t10-explanation", "version": 1, "modelled": True, **asdict(self)}


def explain_operator(
    plan: ModulePlan, name: str, cost: CostModel, cost_model: str, chip: ChipSpec | None = None
) -> Explanation:
    """Return the explanation of an operator of a planned model; raises `InputError` for a name it does not have.

    With `chip`, it says what the operator's place in memory costs.
    """
    check_names((name,), plan.graph)
    step = [spec.name for spec in plan.graph.operators].index(name)
    spec, scheduled = plan.graph.operators[step], plan.operators[step]
    active = scheduled.active.plan
    resident = tuple(
        arrival.operand
        for arrival in scheduled.arrivals
        if arrival.buffer.startswith("idle:") and arrival.operand < len(spec.inputs)
    )
    cut = [axis for axis in active.core_order if active.f_op[axis] > 1]
    return Explanation(
        operator=name,
        kind=spec.kind,
        location=spec.location,
        chip=plan.chip,
        cost_model=cost_model,
        formula=formula(spec),
        partials=partials_type(spec),
        partials_error=allowed_error(spec, active),
        cycles=cycles_record(scheduled.active.cycles).model_dump(),
        nest=nest_text(spec, active, cost, resident),
        axes={spec.axes[axis].name: active.f_op[axis] for axis in cut},
        coordinates=tuple(tuple(row) for row in geometry.coordinates(active)[:, cut].tolist()),
        holdings=holdings(spec, active),
        front=front_points(spec, scheduled.pareto, active),
        choice=explain_choice(plan, step, chip),
    )
