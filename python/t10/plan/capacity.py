"""What no search can make fit: an operator far larger than the whole chip, in bytes or in work."""

from __future__ import annotations

from math import prod

from t10.chip import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.errors import InfeasiblePlanError

HOPELESS = 16
"""From so many times the memory of the chip on, nothing is searched: sizes in the way of a search would overflow."""

MOST_POINTS = 2**31
"""Most points of an operator's loop nest per core: seconds of the chip's time for one operator."""


def check_capacity(graph: Graph, chip: ChipSpec) -> None:
    """Raise `InfeasiblePlanError` for the first operator whose tensors or loops are hopelessly large.

    Operands and result lie on the chip together while the operator runs, each at least once (T10 §4.1).
    """
    total = chip.n_cores * chip.sram_bytes
    for spec in graph.operators:
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


def _error(spec: OperatorSpec, message: str) -> InfeasiblePlanError:
    return InfeasiblePlanError(
        message,
        operator=spec.name,
        location=spec.location or None,
        hint="a smaller batch or smaller shapes, or a much larger chip",
    )
