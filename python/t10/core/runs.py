"""Runs: how far loops over an operator's output walk on evenly, in its own memory and in that of what is read with it.

An epilogue whose operands all walk on evenly is one loop over everything a core owns; one with a bias along the columns
begins anew in every row. What a core owns, cut into runs, is what epilogues are priced by.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from t10.core.expression import AxisSizes, Operand, OperatorSpec


def even_run(operand: Operand, operands: tuple[Operand, ...], allowed: Collection[int]) -> AxisSizes:
    """Return the longest chain of last dims of an operand, outermost first, that all operands walk on evenly.

    Every other operand has those axes side by side in the same order, or none of them. Dims over no axis do not count.
    """
    chain: list[int] = []
    for dim in reversed(operand.dims):
        if not dim.terms:
            continue
        if not dim.is_simple or dim.terms[0].axis not in allowed:
            break
        axis = dim.terms[0].axis
        if chain and not all(_follows(other, axis, chain[0]) for other in operands):
            break
        chain.insert(0, axis)
    return tuple(chain)


def epilogue_run_axes(spec: OperatorSpec) -> AxisSizes:
    """Return the last axes of the output, outermost first, that accumulator, result and epilogue inputs walk evenly.

    Without epilogue inputs these are all of them, in the output's order.
    """
    return even_run(spec.output, (*spec.epilogue_inputs, spec.output), spec.output.axes)


def epilogue_run(spec: OperatorSpec, windows: AxisSizes, n_slots: int) -> int:
    """Return the run of an epilogue: of a core's `n_slots` accumulated elements, those that lie in one even row.

    `windows` are the output's, per axis. After a reduce-scatter a core may own less than a row.
    """
    return min(prod(windows[axis] for axis in epilogue_run_axes(spec)), n_slots)


def _follows(operand: Operand, outer: int, inner: int) -> bool:
    """Return whether an operand steps evenly from one axis into the other, or has neither."""
    if outer not in operand.axes and inner not in operand.axes:
        return True
    axes = [dim.terms[0].axis if dim.is_simple else -1 for dim in operand.dims if dim.terms]
    both = outer in axes and inner in axes
    return both and axes.index(inner) == axes.index(outer) + 1 and {outer, inner} <= operand.simple_axes
