"""The parts that an operator's axes play in code: what is vectorised, what streams through the matrix engine.

Roles depend on how operands are indexed, not on extents, so that one set of formulas serves all boxes of an operator.
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.products import is_product
from t10.core.runs import epilogue_run_axes, even_run


@dataclass(frozen=True, slots=True)
class MatrixRoles:
    """A product on the matrix engine: `columns` and `inner` walk on evenly, `rows` stream, the rest loops.

    `outs` are further axes that move the output (groups), `sums` further reduced ones (window positions).
    """

    columns: AxisSizes
    inner: AxisSizes
    rows: AxisSizes
    outs: AxisSizes
    sums: AxisSizes


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


def matrix_roles(spec: OperatorSpec) -> MatrixRoles | None:
    """Return the roles of a sum of products of two operands that the matrix engine can compute, else None."""
    if len(spec.inputs) != 2 or spec.combine != "sum" or spec.selectors or not is_product(spec.body):
        return None
    operands = (*spec.inputs, spec.output)
    columns = even_run(spec.output, operands, spec.output.axes)
    if not columns:
        return None
    stationary = [operand for operand in spec.inputs if columns[-1] in operand.axes]
    if len(stationary) != 1:
        return None
    (w,) = stationary
    (x,) = (operand for operand in spec.inputs if operand is not w)
    reduced = frozenset(spec.reduction_axes)
    inner = even_run(x, operands, reduced) or even_run(w, operands, reduced)
    inner = (*_absorbed_windows(x, w, inner, reduced), *inner)
    others = [a for a in range(len(spec.axes)) if a not in reduced and a not in columns]
    return MatrixRoles(
        columns=columns,
        inner=inner,
        rows=tuple(a for a in others if a not in w.axes),
        outs=tuple(a for a in others if a in w.axes),
        sums=tuple(a for a in spec.reduction_axes if a not in inner),
    )


def _absorbed_windows(x: Operand, w: Operand, inner: AxisSizes, reduced: frozenset[int]) -> AxisSizes:
    """Return the window axis that both inputs step evenly from into the inner axes, if there is one.

    `X[h + kh, w + kw, c]` and `W[o, kh, kw, c]`: neighbouring window positions along kw are neighbouring pixels.
    """
    n = len(inner)
    if not n or len(x.dims) <= n or len(w.dims) <= n:
        return ()
    near_x, near_w = x.dims[-1 - n], w.dims[-1 - n]
    if not near_w.is_simple or near_w.terms[0].axis not in reduced:
        return ()
    axis = near_w.terms[0].axis
    steps = {term.axis: term.coefficient for term in near_x.terms}
    return (axis,) if steps.get(axis) == 1 and len(near_x.terms) > 1 else ()


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


def epilogue_roles(spec: OperatorSpec) -> LoopRoles:
    """Return the roles of the parallel axes in an operator's epilogue."""
    run = epilogue_run_axes(spec)
    rows = tuple(a for a in sorted(spec.output.axes) if a not in run)
    return LoopRoles(run, rows, (), (), ())
