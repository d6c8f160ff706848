"""What a linalg operation says about its axes: extents, and which axes index which operand."""

from __future__ import annotations

from typing import Any

from t10.dialect.mlir import ir, linalg_indexing_maps
from t10.dialect.plan import Expression


def root_of(op: Any) -> Any | None:
    """Return the linalg operation that decides an operator's axes, or None where there is none.

    A linalg op is its own root; the root of an `rtensor.operator` is its first linalg op with a reduction iterator, or
    the first one that is not a fill.
    """
    op = op.operation
    if op.name.startswith("linalg."):
        return op
    if op.name != "rtensor.operator":
        return None
    inner = [
        o.operation for o in op.regions[0].blocks[0].operations if o.operation.name.startswith("linalg.")
    ]
    computing = [o for o in inner if o.name not in ("linalg.fill", "linalg.yield")]
    for candidate in computing:
        expression = expression_of(candidate)
        if expression is not None and expression.uses[-1] != frozenset(range(len(expression.extents))):
            return candidate
    return computing[0] if computing else None


def expression_of(op: Any) -> Expression | None:
    """Return extents and uses (inputs in order, output last) of a linalg op on ranked tensors.

    None for operations without indexing maps, with several results, of dynamic shape, or with an axis that only occurs
    in compound dims and so has no extent of its own.
    """
    maps = linalg_indexing_maps(op)
    operands = list(op.operation.operands)
    if not maps or len(maps) != len(operands) or len(op.operation.results) != 1:
        return None
    extents: dict[int, int] = {}
    uses: list[frozenset[int]] = []
    for map_, operand in zip(maps, operands, strict=True):
        axes: set[int] = set()
        for dim, form in enumerate(map_.results):
            axes |= axes_of(form)
            axis = single_axis(form)
            if axis is None:
                continue
            if not isinstance(operand.type, ir.RankedTensorType) or operand.type.is_dynamic_dim(dim):
                return None
            extents[axis] = operand.type.shape[dim]
        uses.append(frozenset(axes))
    n_axes = maps[0].n_dims
    if set(extents) != set(range(n_axes)):
        return None
    return Expression(tuple(extents[axis] for axis in range(n_axes)), tuple(uses))


def single_axis(form: Any) -> int | None:
    """Return the axis of an affine form that is just that axis, or None."""
    return form.position if isinstance(form, ir.AffineDimExpr) else None


def axes_of(form: Any) -> set[int]:
    """Return all axes that occur in an affine form."""
    if isinstance(form, ir.AffineDimExpr):
        return {form.position}
    if isinstance(form, (ir.AffineConstantExpr, ir.AffineSymbolExpr)):
        return set()
    return axes_of(form.lhs) | axes_of(form.rhs)
