"""A chosen plan written into its module: the plan and the idle level of every operator, as attributes."""

from __future__ import annotations

from typing import Any

from t10.core.schedule import ModulePlan
from t10.cost.registry import CodeFile, digest_of, name_of
from t10.dialect.attributes import to_attr
from t10.dialect.build import set_plan
from t10.dialect.mlir import ir
from t10.dialect.rtensor import CANDIDATES, FETCH, FORCED, SPACE
from t10.passes.read_graph import ReadModule

CHIP = "t10.chip"
COST_MODEL = "t10.cost_model"
"""Attribute of a module: where its cycles come from, a name of `t10.cost.registry`."""
COST_MODEL_DIGEST = "t10.cost_model_digest"
"""Attribute of a module: the digest of the cost model's file, where it has one."""
IDLE_LEVEL = "rtensor.idle_level"
"""Over how many replicas an operator's weights are divided at rest: 0 spread over all cores, 1 as they are used."""


def state_cost_model(module: Any, model: str | CodeFile) -> None:
    """Write on a module where its cycles come from. Needs a current context."""
    attributes, digest = module.operation.attributes, digest_of(model)
    attributes[COST_MODEL] = ir.StringAttr.get(name_of(model))
    if digest is not None:
        attributes[COST_MODEL_DIGEST] = ir.StringAttr.get(digest)
    elif COST_MODEL_DIGEST in attributes:
        del attributes[COST_MODEL_DIGEST]


def annotate(module: Any, read: ReadModule, plan: ModulePlan) -> None:
    """Write the choice into the module its graph was read from. Needs a current context and location."""
    if CHIP not in module.operation.attributes:
        # A pass before has named the chip as the user did: perhaps by the path of its file.
        module.operation.attributes[CHIP] = ir.StringAttr.get(plan.chip)
    levels: dict[str, int] = {}
    for layout in plan.weight_layouts:
        levels[layout.operator] = max(levels.get(layout.operator, 0), layout.scatter)
    first_by_operator = {fetch.operator: fetch.first for fetch in plan.fetches}
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        op = read.operations[spec.name]
        if spec.name in first_by_operator:
            op.attributes[FETCH] = to_attr(first_by_operator[spec.name])
        set_plan(op, scheduled.active)
        op.attributes[IDLE_LEVEL] = to_attr(levels.get(spec.name, 0))
        for undecided in (CANDIDATES, SPACE, FORCED):
            if undecided in op.attributes:
                del op.attributes[undecided]
