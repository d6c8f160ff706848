"""The parts that an operator's axes play in code: what is vectorised, what streams through the matrix engine.

Roles depend on how operands are indexed, not on extents, so that one set of formulas serves all boxes of an operator.
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.runs import even_run


@dataclass(frozen=True, slots=True)
class LoopRoles:
    """Loops over vectors: `run` axes are contiguous in the output and walk on evenly in all operands, `rows` the rest.

    `folded` are reduced axes that are contiguous in an input, `summed` other reduced axes, `selected` those that a
    selector picks points of.
    """

    run: AxisSizes
    rows: AxisSizes
    folded: AxisSizes
    summed: AxisSizes
    selected: AxisSizes


def loop_roles(spec: OperatorSpec) -> LoopRoles:
    """Return the roles of an operator's axes in vectorised loops."""
    operands = (*spec.inputs, spec.output)
    run = even_run(spec.output, operands, spec.output.axes)
    reduced = frozenset(spec.reduction_axes)
    selected = tuple(dict.fromkeys(selector.axis for selector in spec.selectors))
    folded: AxisSizes = ()
    for operand in spec.inputs:
        folded = folded or even_run(operand, operands, reduced - set(selected))
    return LoopRoles(
        run=run,
        rows=tuple(a for a in range(len(spec.axes)) if a not in reduced and a not in run),
        folded=folded,
        summed=tuple(a for a in spec.reduction_axes if a not in folded and a not in selected),
        selected=selected,
    )
