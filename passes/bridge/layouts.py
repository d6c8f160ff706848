"""Layouts of a planned model as the dialect spells them, and operands as the tensors that carry them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from t10.core import geometry
from t10.core.expression import AffineDim, Operand, OperatorSpec
from t10.core.movement import operand_of
from t10.core.plan import OperatorPlan, final_positions
from t10.dialect.grid import grid_of
from t10.dialect.layout import RotatingLayout


@dataclass(frozen=True, slots=True)
class PaddedView:
    """A tensor as a root indexes it: padded by `low` and `high` elements per dim, so that no index lies outside."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    dims: tuple[AffineDim, ...]

    @property
    def is_whole(self) -> bool:
        """Return whether nothing is padded."""
        return not any(self.low) and not any(self.high)


def padded_view(spec: OperatorSpec, operand: Operand) -> PaddedView:
    """Return the view of an operand in which every index that its operator reads exists (linalg demands it)."""
    rows = [_padded(spec, dim, extent) for dim, extent in zip(operand.dims, operand.shape, strict=True)]
    return PaddedView(
        tuple(row[0] for row in rows), tuple(row[1] for row in rows), tuple(row[2] for row in rows)
    )


def _padded(spec: OperatorSpec, dim: AffineDim, extent: int) -> tuple[int, int, AffineDim]:
    """Return the elements to add in front of and behind a dim, and its index with them."""
    low = max(0, -dim.offset)
    touched = geometry.dim_extent(dim, spec.extents)
    high = dim.offset + touched - extent
    if high < 0 and len(dim.terms) == 1 and dim.terms[0].coefficient == 1 and dim.offset + low == 0:
        # linalg takes the extent of a dim that is one loop for that of the loop: this index must not be one.
        low += 1
    # The order in which a map is read.
    terms = tuple(sorted(dim.terms, key=lambda term: term.axis))
    return low, max(0, high), AffineDim(terms, dim.offset + low)


def operand_layout(spec: OperatorSpec, plan: OperatorPlan, number: int, scatter: int = 1) -> RotatingLayout:
    """Return the layout of operand `number` (inputs, epilogue inputs, output) of an operator under its plan.

    Inputs as they lie before the loops; epilogue inputs and the output as the output lies after them.
    """
    operand = operand_of(spec, number)
    slot = min(number, len(spec.inputs))
    ft = tuple(t if axis in operand.axes else 1 for axis, t in enumerate(plan.ft[slot]))
    layout = RotatingLayout(grid_of(plan), padded_view(spec, operand).dims, ft, scatter)
    return layout.standing(final_positions(plan)) if number >= len(spec.inputs) else layout


def rest_layout(spec: OperatorSpec, plan: OperatorPlan, number: int, scatter: int = 1) -> RotatingLayout:
    """Return the layout of what rests as operand `number` of an operator reads it.

    An input is not padded there: what its readers bring is.
    """
    layout, operand = operand_layout(spec, plan, number, scatter), operand_of(spec, number)
    if operand.role == "weight":
        return layout
    # The order in which a map is read.
    return replace(
        layout,
        dims=tuple(
            AffineDim(tuple(sorted(dim.terms, key=lambda term: term.axis)), dim.offset)
            for dim in operand.dims
        ),
    )


def accumulator_layout(spec: OperatorSpec, plan: OperatorPlan) -> RotatingLayout:
    """Return the layout of the accumulators while the loops run; `partial` where several cores share an element."""
    slot = len(spec.inputs)
    is_partial = spec.combine != "none" and geometry.n_replicas(spec, plan, slot) > 1
    dims = spec.output.dims
    return RotatingLayout(grid_of(plan), dims, plan.ft[slot], 1, spec.combine if is_partial else "")
