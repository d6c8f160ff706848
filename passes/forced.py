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
from typing import Any, cast

from t10.core.expression import OperatorSpec
from t10.core.plan import CostedPlan, Cycles
from t10.dialect.attributes import int_tuple, is_int, refuse_unknown, required, to_attr, to_python
from t10.dialect.ods import Invalid
from t10.dialect.plan import KEYS, plan_fields, read_plan
from t10.dialect.rtensor import FORCED, PlanAttr
from t10.errors import InputError
from t10.passes.bridge.annotate import expression_of
from t10.passes.read_graph import ReadModule
from t10.plan.options import ForcedPartition

WHOLE = "phases"
"""The key that only a whole plan has."""
LEVEL = "idle_level"
PRICES = ("cycles", "weight_bytes", "active_bytes")
"""Keys of a plan that follow from it."""


def forced_by_attributes(read: ReadModule) -> dict[str, ForcedPartition]:
    """Return what attributes force, by operator; raises `InputError` at an attribute that cannot be read."""
    found: dict[str, ForcedPartition] = {}
    for spec in read.graph.operators:
        attributes = read.operations[spec.name].attributes
        if FORCED in attributes:
            found[spec.name] = _read(spec, attributes[FORCED])
    return found


def set_forced(read: ReadModule, forced: Iterable[ForcedPartition]) -> None:
    """Write choices as attributes of their operators."""
    specs = {spec.name: spec for spec in read.graph.operators}
    for each in forced:
        read.operations[each.operator].attributes[FORCED] = _attribute(specs[each.operator], each)


def _read(spec: OperatorSpec, attribute: Any) -> ForcedPartition:
    try:
        fields = _fields(attribute)
        level = fields.pop(LEVEL, None)
        if level is not None and not (is_int(level) and level >= 0):
            raise Invalid(f"{LEVEL} is {level}, expected a number of at least 0")
        refuse_unknown(fields, KEYS, "it")
        plan = read_plan(fields).plan if WHOLE in fields else None
        f_op = int_tuple(required(fields, "f_op", "it"), "f_op")
        ft = tuple(int_tuple(row, "ft") for row in fields["ft"]) if "ft" in fields else None
        rp = int_tuple(fields["rp"], "rp") if "rp" in fields else None
    except Invalid as problem:
        raise InputError(f"{FORCED}: {problem}", operator=spec.name, location=spec.location or None) from None
    return ForcedPartition(spec.name, f_op, ft, rp, plan, level)


def _fields(attribute: Any) -> dict[str, Any]:
    """Return the keys of a choice; raises `Invalid` for what is no dictionary."""
    attribute = attribute.maybe_downcast()
    if isinstance(attribute, PlanAttr):
        attribute = attribute.fields
    fields = to_python(attribute)
    if not isinstance(fields, dict):
        raise Invalid(f"found {attribute}, expected {{f_op = [...], ft = [[...], ...]}}")
    return cast("dict[str, Any]", fields)


def _attribute(spec: OperatorSpec, forced: ForcedPartition) -> Any:
    fields: dict[str, Any] = {"f_op": forced.f_op, "ft": forced.ft, "rp": forced.rp}
    if forced.plan is not None:
        fields = plan_fields(CostedPlan(forced.plan, Cycles(), 0, 0), expression_of(spec))
    fields[LEVEL] = forced.idle_level
    return to_attr({key: value for key, value in fields.items() if value is not None and key not in PRICES})
