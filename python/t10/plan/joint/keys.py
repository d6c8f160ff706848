"""What tells layouts apart: plans of one operator often differ in nothing that matters to one of its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from t10.core.expression import OperatorSpec
from t10.core.graph import Graph, View
from t10.core.movement import operand_of
from t10.core.plan import OperatorPlan


def lying_key(spec: OperatorSpec, plan: OperatorPlan, number: int) -> object:
    """Return a value that is equal for plans under which operand `number` (or the output) lies the same way."""
    operand = operand_of(spec, number)
    slot = min(number, len(spec.inputs))
    own = sorted(operand.axes)
    rotating = [axis for axis in own if plan.ft[slot][axis] > 1]
    ends = (plan.loop_order, plan.steps) if rotating and number >= len(spec.inputs) else ()
    return (
        plan.f_op,
        plan.core_order,
        tuple(plan.lengths[axis] for axis in own),
        tuple(plan.ft[slot][axis] for axis in own),
        tuple((axis, plan.phases[axis], plan.rp[axis]) for axis in rotating),
        ends,
        plan.reduce,
    )


def view_key(graph: Graph, value: str, source_key: Callable[[str], object]) -> object:
    """Return a value that is equal for views that do the same to sources with equal keys, whatever their names."""
    return _described({view.name: view for view in graph.views}, value, source_key)


def _described(views: Mapping[str, View], name: str, source_key: Callable[[str], object]) -> object:
    """Return what is equal for values that views make alike."""
    view = views.get(name)
    if view is None:
        return source_key(name)
    return (
        view.kind,
        view.shape,
        view.offsets,
        view.strides,
        view.permutation,
        view.dims,
        view.axis,
        view.low,
        view.value,
        tuple([_described(views, source, source_key) for source in view.sources]),
    )
