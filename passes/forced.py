"""`rtensor.forced`: what the user has chosen of an operator's plan, as an attribute of the operator.

```mlir
%c = linalg.generic {...} attrs = {op_name = "product", rtensor.forced = {f_op = [2, 3, 1], ft = [[1, 1, 3], [1, 1, 2],
     [1, 1, 1]], rp = [0, 0, 2]}} ...
```

Only `f_op` must be there. The keys are those of `#rtensor.plan`, which may stand instead of the dictionary, and
`idle_level` (how the operator's weights rest); with `phases` it is a whole plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from t10.core.expression import OperatorSpec
from t10.dialect.ods import Invalid
from t10.dialect.plan import CandidatePlan, ForcedPlan
from t10.dialect.plan_attributes import forced_attr, forced_of
from t10.dialect.rtensor import FORCED
from t10.errors import InputError
from t10.passes.read_graph import ReadModule
from t10.plan.options import ForcedPartition


def forced_by_attributes(read: ReadModule) -> dict[str, ForcedPartition]:
    """Return what attributes force, by operator; raises `InputError` at an attribute that cannot be read."""
    found: dict[str, ForcedPartition] = {}
    for spec in read.graph.operators:
        attributes = read.operations[spec.name].attributes
        if FORCED in attributes:
            found[spec.name] = _read(spec, attributes[FORCED])
    return found


def set_forced(read: ReadModule, forced: Iterable[ForcedPartition]) -> None:
    """Write choices as attributes of their operators; raises `InputError` at numbers that no plan can have."""
    for each in forced:
        plan = CandidatePlan(each.f_op, each.ft, rp=each.rp)
        if each.plan is not None:
            plan = CandidatePlan.of(each.plan)
        operation = read.operations[each.operator]
        try:
            operation.attributes[FORCED] = forced_attr(ForcedPlan(plan, each.idle_level))
        except Invalid as problem:
            raise InputError(str(problem), operator=each.operator) from None


def _read(spec: OperatorSpec, attribute: Any) -> ForcedPartition:
    try:
        forced = forced_of(attribute)
        plan = forced.plan.placed() if forced.plan.is_placed else None
    except Invalid as problem:
        raise InputError(f"{FORCED}: {problem}", operator=spec.name, location=spec.location or None) from None
    fixed = forced.plan
    return ForcedPartition(spec.name, fixed.f_op, fixed.ft, fixed.rp, plan, forced.idle_level)
