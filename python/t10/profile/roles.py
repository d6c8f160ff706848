"""The parts that an operator's axes play in code: what is vectorised, what streams through the matrix engine.

Roles depend on how operands are indexed, not on extents, so that one set of formulas serves all boxes of an operator.
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.codelets.matrix.product import is_product
from t10.core.expression import AxisSizes, Operand, OperatorSpec


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
    columns = _even_run(spec.output, operands, spec.output.axes)
    if not columns:
        return None
    stationary = [operand for operand in spec.inputs if columns[-1] in operand.axes]
    if len(stationary) != 1:
        return None
    (w,) = stationary
    (x,) = (operand for operand in spec.inputs if operand is not w)
    reduced = frozenset(spec.reduction_axes)
    inner = _even_run(x, operands, reduced) or _even_run(w, operands, reduced)
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
    run = _even_run(spec.output, operands, spec.output.axes)
    reduced = frozenset(spec.reduction_axes)
    selected = tuple(dict.fromkeys(selector.axis for selector in spec.selectors))
    folded: AxisSizes = ()
    for operand in spec.inputs:
        folded = folded or _even_run(operand, operands, reduced - set(selected))
    return LoopRoles(
        run=run,
        rows=tuple(a for a in range(len(spec.axes)) if a not in reduced and a not in run),
        folded=folded,
        summed=tuple(a for a in spec.reduction_axes if a not in folded and a not in selected),
        selected=selected,
    )


def epilogue_roles(spec: OperatorSpec) -> LoopRoles:
    """Return the roles of the parallel axes in an operator's epilogue."""
    run = _even_run(spec.output, (*spec.epilogue_inputs, spec.output), spec.output.axes)
    rows = tuple(a for a in sorted(spec.output.axes) if a not in run)
    return LoopRoles(run, rows, (), (), ())


def _even_run(operand: Operand, operands: tuple[Operand, ...], allowed: frozenset[int]) -> AxisSizes:
    """Return the longest chain of last dims of an operand, outermost first, that all operands walk on evenly.

    Every other operand has those axes side by side in the same order, or none of them.
    """
    chain: list[int] = []
    for dim in reversed(operand.dims):
        if not dim.is_simple or dim.terms[0].axis not in allowed:
            break
        axis = dim.terms[0].axis
        if chain and not all(_follows(other, axis, chain[0]) for other in operands):
            break
        chain.insert(0, axis)
    return tuple(chain)


def _follows(operand: Operand, outer: int, inner: int) -> bool:
    """Return whether an operand steps evenly from one axis into the other, or has neither."""
    if outer not in operand.axes and inner not in operand.axes:
        return True
    axes = [dim.terms[0].axis if dim.is_simple else -1 for dim in operand.dims]
    both = outer in axes and inner in axes
    return both and axes.index(inner) == axes.index(outer) + 1 and {outer, inner} <= operand.simple_axes
