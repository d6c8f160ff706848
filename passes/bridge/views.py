"""Operations that only rename elements, as `View` values."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from t10.core.graph import View
from t10.dialect.location import source_text
from t10.dialect.mlir import ir
from t10.dialect.rtensor import COPY
from t10.errors import UnsupportedOpError
from t10.passes.bridge.body import indexing_maps, iterator_kinds
from t10.passes.bridge.root import Known, tensor_type
from t10.passes.bridge.scalars import constant_value

VIEW_OPS = frozenset(
    {"tensor.expand_shape", "tensor.collapse_shape", "tensor.extract_slice", "tensor.concat", "tensor.pad"}
)

Unique = Callable[[str], str]


def read_view(op: Any, sources: list[Known], unique: Unique) -> list[View]:
    """Return the views a tensor operation stands for, the last one being its result.

    Raises `UnsupportedOpError` for dynamic offsets and sizes and for pads that compute their value.
    """
    shape, dtype = tensor_type(op.results[0])
    names = tuple(source.name for source in sources)
    if op.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        return [View(unique(f"{names[0]}.reshape"), "reshape", names, shape, dtype)]
    if op.name == "tensor.concat":
        axis = int(ir.IntegerAttr(op.attributes["dim"]).value)
        return [View(unique("concat"), "concat", names, shape, dtype, axis=axis)]
    if op.name == "tensor.pad":
        return [_pad(op, names, shape, dtype, unique)]
    return _slice(op, sources[0], shape, dtype, unique)


def _static(op: Any, key: str) -> tuple[int, ...]:
    values = tuple(int(v) for v in ir.DenseI64ArrayAttr(op.attributes[key]))
    if any(v < -(1 << 62) for v in values) or len(op.operands) > 1:
        raise UnsupportedOpError(
            f"{op.name} with computed {key} (expected constants)", location=source_text(op)
        )
    return values


def _slice(op: Any, source: Known, shape: tuple[int, ...], dtype: str, unique: Unique) -> list[View]:
    offsets, sizes = _static(op, "static_offsets"), _static(op, "static_sizes")
    strides = _static(op, "static_strides")
    if any(stride < 1 for stride in strides):
        raise UnsupportedOpError(
            f"{op.name} with strides {list(strides)} (expected at least 1)", location=source_text(op)
        )
    name = unique(f"{source.name}.slice")
    views = [View(name, "slice", (source.name,), sizes, dtype, offsets=offsets, strides=strides)]
    if sizes != shape:
        views.append(View(unique(f"{source.name}.reshape"), "reshape", (name,), shape, dtype))
    return views


def _pad(op: Any, names: tuple[str, ...], shape: tuple[int, ...], dtype: str, unique: Unique) -> View:
    terminator = list(op.regions[0].blocks[0].operations)[-1].operation
    text = constant_value(terminator.operands[0])
    if text is None:
        raise UnsupportedOpError("tensor.pad with a computed value", location=source_text(op))
    return View(unique("pad"), "pad", names, shape, dtype, low=_static(op, "static_low"), value=text)


def is_pure_move(op: Any) -> bool:
    """Return whether a generic only shows elements of one tensor: a transpose, a broadcast or both, but no copy."""
    if COPY in op.attributes or len(op.operands) != 2 or "reduction" in iterator_kinds(op):
        return False
    block = op.regions[0].blocks[0]
    operations = list(block.operations)
    if len(operations) != 1 or operations[0].operation.operands[0] != block.arguments[0]:
        return False
    source, result = indexing_maps(op)
    axes = [dim.axes for dim in source if dim.terms]
    targets = [dim.axes for dim in result]
    plain = all(dim.is_simple or not dim.terms for dim in source) and all(dim.is_simple for dim in result)
    return (
        plain
        and len(set(axes)) == len(axes)
        and len(set(targets)) == len(targets)
        and set(axes) <= set(targets)
    )


def move_as_views(op: Any, source: Known, unique: Unique) -> list[View]:
    """Return a pure move as views: one index of dims without a loop, the others in order, then spread over the result.

    No views if nothing changes.
    """
    from_dims, to_dims = indexing_maps(op)
    shape, dtype = tensor_type(op.results[0])
    if from_dims == to_dims:
        return []
    where = {dim.terms[0].axis: d for d, dim in enumerate(to_dims)}
    kept = [d for d, dim in enumerate(from_dims) if dim.terms]
    views: list[View] = []
    name = source.name
    inner = tuple(source.shape[d] for d in kept)
    if prod(inner) != prod(source.shape):
        name = unique(f"{source.name}.slice")
        sizes = tuple(n if dim.terms else 1 for n, dim in zip(source.shape, from_dims, strict=True))
        offsets, strides = tuple(dim.offset for dim in from_dims), (1,) * len(sizes)
        views.append(View(name, "slice", (source.name,), sizes, dtype, offsets=offsets, strides=strides))
    if len(kept) != len(from_dims):
        cut, name = name, unique(f"{source.name}.reshape")
        views.append(View(name, "reshape", (cut,), inner, dtype))
    targets = [where[from_dims[d].terms[0].axis] for d in kept]
    order = tuple(sorted(range(len(targets)), key=lambda i: targets[i]))
    if order != tuple(range(len(order))):
        moved = unique(f"{source.name}.transpose")
        inner = tuple(inner[i] for i in order)
        views.append(View(moved, "transpose", (name,), inner, dtype, permutation=order))
        name = moved
    if inner != shape:
        spread = unique(f"{source.name}.broadcast")
        views.append(View(spread, "broadcast", (name,), shape, dtype, dims=tuple(sorted(targets))))
    return views
