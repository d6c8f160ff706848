"""The attributes of planning and their values: plans, what a user forces, spaces. One encoder and decoder each.

Encoders check the value, since `Attribute.get` checks nothing; decoders raise `Invalid` for an attribute that is not
one. All need a current context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from t10.core.legal import Expression
from t10.core.space import PartitionSpace
from t10.dialect.attributes import Decoder, to_attr, to_python
from t10.dialect.mlir import ir
from t10.dialect.ods import Invalid
from t10.dialect.plan import (
    CandidatePlan,
    ForcedPlan,
    check_plan,
    forced_fields,
    plan_fields,
    read_forced,
    read_plan,
)
from t10.dialect.rtensor import PlanAttr, SpaceAttr
from t10.dialect.space import check_space, read_space, space_fields


def plan_attr(plan: CandidatePlan, expression: Expression | None = None) -> Any:
    """Return `#rtensor.plan<...>`; raises `Invalid` for a plan that breaks a rule."""
    check_plan(plan, expression)
    return PlanAttr.get(to_attr(plan_fields(plan)))


def candidates_attr(plans: Sequence[CandidatePlan], expression: Expression | None = None) -> Any:
    """Return the value of `rtensor.candidates`."""
    return ir.ArrayAttr.get([plan_attr(plan, expression) for plan in plans])


def forced_attr(forced: ForcedPlan) -> Any:
    """Return the value of `rtensor.forced`. What a plan is forced on is checked by who plans."""
    check_plan(forced.plan)
    return to_attr(forced_fields(forced))


def space_attr(space: PartitionSpace, expression: Expression | None = None) -> Any:
    """Return `#rtensor.space<...>`; raises `Invalid` for a space that breaks a rule."""
    check_space(space, expression)
    return SpaceAttr.get(to_attr(space_fields(space)))


def _plan_of(attr: Any) -> CandidatePlan:
    attr = attr.maybe_downcast()
    if not isinstance(attr, PlanAttr):
        raise Invalid(f"found {attr}, expected #rtensor.plan<{{...}}>")
    return read_plan(to_python(attr.fields))


def _candidates_of(attr: Any) -> tuple[CandidatePlan, ...]:
    attr = attr.maybe_downcast()
    if not isinstance(attr, ir.ArrayAttr):
        raise Invalid(f"found {attr}, expected an array of #rtensor.plan")
    return tuple(plan_of(plan) for plan in attr)


def _forced_of(attr: Any) -> ForcedPlan:
    attr = attr.maybe_downcast()
    fields = to_python(attr.fields if isinstance(attr, PlanAttr) else attr)
    if not isinstance(fields, dict):
        raise Invalid(f"found {attr}, expected {{f_op = [...], ft = [[...], ...]}}")
    return read_forced(cast("dict[str, Any]", fields))


def _space_of(attr: Any) -> PartitionSpace:
    attr = attr.maybe_downcast()
    if not isinstance(attr, SpaceAttr):
        raise Invalid(f"found {attr}, expected #rtensor.space<{{...}}>")
    return read_space(to_python(attr.fields))


plan_of = Decoder(_plan_of)
"""Decodes `#rtensor.plan`."""
candidates_of = Decoder(_candidates_of)
"""Decodes `rtensor.candidates`."""
forced_of = Decoder(_forced_of)
"""Decodes `rtensor.forced`: a dictionary, or a plan."""
space_of = Decoder(_space_of)
"""Decodes `#rtensor.space`."""
