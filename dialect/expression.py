"""What a linalg operation says about its axes: extents, and which axes index which operand."""

from __future__ import annotations

from typing import Any

from t10.core.legal import Expression
from t10.dialect.mlir import ir, linalg_indexing_maps
from t10.dialect.region import is_expanded


def root_of(op: Any) -> Any | None:
    """Return the linalg operation that decides an operator's axes, or None where there is none.

    A linalg op is its own root; the root of an `rtensor.operator` is its first linalg op with a reduction iterator, or
    the first one that is not a fill. Operators that are expanded to loops have none: their ops compute on parts.
    """
    op = op.operation
    if op.name.startswith("linalg."):
        return op
    if op.name != "rtensor.operator":
        return None
    if is_expanded(op):
        return None
    inner = [each.operation for each in op.regions[0].blocks[0].operations]
    computing = [o for o in inner if o.name.startswith("linalg.") and o.name != "linalg.fill"]
    reducing = [o for o in computing if _reduces(linalg_indexing_maps(o))]
    return next(iter((*reducing, *computing)), None)


def expression_of(op: Any) -> Expression | None:
    """Return extents and uses (inputs in order, output last) of a linalg op on ranked tensors.

    Inputs that the body does not read have no part in it (the window of a pooling). None for operations without
    indexing maps, with several results, of dynamic shape, with an axis that only occurs in compound dims and so has no
    extent of its own, and for those whose operands are not those that the planner sees: it gives a gather an axis per
    computed index, takes constants into the body, and an output that an elementwise body reads for an input.
    """
    maps = linalg_indexing_maps(op)
    operands = list(op.operation.operands)
    if not maps or len(maps) != len(operands) or len(op.operation.results) != 1:
        return None
    if _is_seen_otherwise(op, maps):
        return None
    read = [bool(list(argument.uses)) for argument in op.operation.regions[0].blocks[0].arguments]
    read[-1] = True
    extents: dict[int, int] = {}
    uses: list[frozenset[int]] = []
    compound: list[frozenset[int]] = []
    for map_, operand, is_read in zip(maps, operands, read, strict=True):
        axes: set[int] = set()
        in_compound: set[int] = set()
        for dim, form in enumerate(map_.results):
            axes |= axes_of(form)
            axis = single_axis(form)
            if axis is None:
                in_compound |= axes_of(form)
                continue
            if not isinstance(operand.type, ir.RankedTensorType) or operand.type.is_dynamic_dim(dim):
                return None
            extents[axis] = operand.type.shape[dim]
        if is_read:
            uses.append(frozenset(axes))
            compound.append(frozenset(in_compound))
    n_axes = maps[0].n_dims
    if set(extents) != set(range(n_axes)):
        return None
    return Expression(tuple(extents[axis] for axis in range(n_axes)), tuple(uses), tuple(compound))


def _reduces(maps: list[Any]) -> bool:
    """Return whether some axis does not index the output, the last of the maps."""
    return bool(maps) and set().union(*map(axes_of, maps[-1].results)) != set(range(maps[-1].n_dims))


def _is_seen_otherwise(op: Any, maps: list[Any]) -> bool:
    """Return whether the planner's operands or axes of a linalg op are others than those of its maps."""
    block = op.operation.regions[0].blocks[0]
    if any(inner.operation.name == "tensor.extract" for inner in block.operations):
        return True
    reads_output = not _reduces(maps) and bool(list(block.arguments[-1].uses))
    return reads_output or any(_may_be_constant(value) for value in list(op.operation.operands)[:-1])


def _may_be_constant(value: Any) -> bool:
    """Return whether a tensor may be one number throughout: made by a constant or fill, or a view of such."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    owner = owner.operation
    if owner.name.startswith("tensor.") and len(owner.operands):
        return _may_be_constant(owner.operands[0])
    if owner.name == "linalg.generic":
        return not any(list(argument.uses) for argument in owner.regions[0].blocks[0].arguments)
    return owner.name in ("arith.constant", "linalg.fill")


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
