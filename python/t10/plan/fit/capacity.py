"""What no search can make fit: an operator far larger than the whole chip, in bytes or in work, or in its form."""

from __future__ import annotations

from math import prod

from t10.chip import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph, View
from t10.errors import InfeasiblePlanError, UnsupportedOpError

HOPELESS = 16
"""From so many times the memory of the chip on, nothing is searched: sizes in the way of a search would overflow."""

MOST_POINTS = 2**31
"""Most points of an operator's loop nest per core: seconds of the chip's time for one operator."""

MOST_ELEMENTS = 2**28
"""Most elements of a view: a table of 8 bytes each tells where they lie."""

MOST_AXES = 16
MOST_OPERANDS = 16
"""Most axes of an operator, and most operands with its result: how large the tables of the native search are."""


_HINT = "a smaller batch or smaller shapes, or a much larger chip"


def check_capacity(graph: Graph, chip: ChipSpec) -> None:
    """Raise `InfeasiblePlanError` for the first operator or value whose elements or loops are hopelessly many.

    Operands and result lie on the chip together while the operator runs, each at least once (T10 §4.1). A view that
    only the host reads does not, but the host needs its elements. Raises
    `UnsupportedOpError` for one of more axes or operands than are searched.
    """
    total = chip.n_cores * chip.sram_bytes
    for spec in graph.operators:
        _check_form(spec)
        tensors = {operand.name: operand for operand in (*spec.inputs, *spec.epilogue_inputs, spec.output)}
        needed = sum(prod(each.shape) * size_bytes(each.dtype) for each in tensors.values())
        points = prod(axis.extent for axis in spec.axes)
        if needed > HOPELESS * total:
            raise _error(
                spec,
                f"its operands and result have {needed:,} bytes, {chip.name} has {total:,} in all its cores",
            )
        if points > MOST_POINTS * chip.n_cores:
            most = MOST_POINTS * chip.n_cores
            raise _error(spec, f"its loops have {points:,} points, expected at most {most:,} on {chip.name}")
    for value in (*graph.inputs, *graph.weights, *graph.views):
        most = HOPELESS * total // size_bytes(value.dtype)
        if isinstance(value, View):
            most = min(most, MOST_ELEMENTS)
        if prod(value.shape) > most:
            raise InfeasiblePlanError(
                f"value {value.name!r} of shape {'x'.join(map(str, value.shape))} has {prod(value.shape):,} "
                f"elements (expected at most {most:,} on {chip.name})",
                hint=_HINT,
            )


def _check_form(spec: OperatorSpec) -> None:
    n_axes, n_operands = len(spec.axes), len(spec.inputs) + 1
    if n_axes > MOST_AXES or n_operands > MOST_OPERANDS:
        raise UnsupportedOpError(
            f"it has {n_axes} axes and {n_operands} operands with its result (expected at most {MOST_AXES} and "
            f"{MOST_OPERANDS})",
            operator=spec.name,
            location=spec.location or None,
            hint="reshape tensors of many dims to fewer; add up many tensors in several steps",
        )


def _error(spec: OperatorSpec, message: str) -> InfeasiblePlanError:
    return InfeasiblePlanError(
        message,
        operator=spec.name,
        location=spec.location or None,
        hint=_HINT,
    )
