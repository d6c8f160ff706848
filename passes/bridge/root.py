"""One linalg operation as the parts of an operator: axes, operands, the contribution of a point and its combination."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from t10.core.expression import AffineDim, Axis, Combine, Operand
from t10.core.neutral import neutral_value
from t10.core.scalar import parse_constant
from t10.dialect.location import source_text
from t10.dialect.mlir import ir
from t10.errors import UnsupportedOpError
from t10.passes.bridge.affine import axis_dim
from t10.passes.bridge.body import COMBINE_BY_OPCODE, BodyReader, indexing_maps, iterator_kinds, loop_extents
from t10.passes.bridge.tree import Constant, Extract, Index, Read, Scalar, visit


@dataclass(frozen=True, slots=True)
class Known:
    """What an SSA tensor is: a named value, or (`fill` not empty) a constant repeated, or (`name` empty) undefined."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: str = "activation"
    fill: str = ""


@dataclass(frozen=True, slots=True)
class Root:
    """A linalg operation read: what `OperatorSpec` needs of it, and what its result starts from (`init`).

    `operands` are what `body` reads, by the number its leaves have, in the order of the operation; `selected` are axes
    with the index that picks a point of them; `order` is the order in which scalars were written, empty if any will do.
    """

    axes: tuple[Axis, ...]
    operands: dict[int, Operand]
    output_dims: tuple[AffineDim, ...]
    output_shape: tuple[int, ...]
    dtype: str
    combine: Combine
    combine_opcode: str
    body: Scalar
    selected: tuple[tuple[int, Scalar], ...]
    init: Known
    order: tuple[Scalar, ...] = ()


Lookup = Callable[[Any], Known]


def tensor_type(value: Any) -> tuple[tuple[int, ...], str]:
    """Return (shape, element type name) of a tensor, () for a scalar; raises `UnsupportedOpError` for other types.

    These include tensors with dynamic extents and tensors without elements.
    """
    if isinstance(value.type, (ir.IntegerType, ir.FloatType, ir.IndexType)):
        return (), str(value.type)
    if not isinstance(value.type, ir.RankedTensorType):
        raise UnsupportedOpError(f"a value of type {value.type} cannot be planned (expected a ranked tensor)")
    kind = ir.RankedTensorType(value.type)
    if not kind.has_static_shape:
        raise UnsupportedOpError(
            f"tensor {kind} has a dynamic shape (expected static extents)",
            location=None if isinstance(value.owner, ir.Block) else source_text(value.owner.operation),
            hint="give the extents with --shape name=1x128",
        )
    if 0 in kind.shape:
        raise UnsupportedOpError(
            f"tensor {kind} has no elements (expected extents of at least 1)",
            location=None if isinstance(value.owner, ir.Block) else source_text(value.owner.operation),
            hint="leave it out of the model",
        )
    return tuple(int(n) for n in kind.shape), str(kind.element_type)


def read_root(op: Any, lookup: Lookup, *, in_order: bool = False) -> Root:
    """Return a linalg.generic with one result as the parts of an operator.

    Constants become part of the body, computed indices axes with selectors. `in_order` keeps the order in which the
    body's operations stand: what `write_spec` wrote is read back as it was. Raises `UnsupportedOpError` for bodies that
    are not one combination of the old result with a contribution.
    """
    if len(op.results) != 1:
        raise UnsupportedOpError(
            f"linalg operation with {len(op.results)} results (expected one)", location=source_text(op)
        )
    values, maps, kinds = list(op.operands), indexing_maps(op), iterator_kinds(op)
    extents = loop_extents(op, maps, len(kinds))
    axes = [Axis(f"d{i}", extent, kind) for i, (extent, kind) in enumerate(zip(extents, kinds, strict=True))]
    tables: list[Known] = []

    def leaf(number: int) -> Scalar:
        known = lookup(values[number])
        return Constant(known.fill, known.dtype) if known.fill else Read(number, maps[number])

    def table(value: Any) -> int:
        tables.append(lookup(value))
        return len(values) + len(tables) - 1

    reader = BodyReader(op, leaf, table)
    order = tuple(reader.in_order()) if in_order else ()
    body, opcode = reader.result()
    shape, dtype = tensor_type(op.results[0])
    operands: dict[int, Operand] = {}
    selected: list[tuple[int, Scalar]] = []
    for node in visit(body):
        if isinstance(node, Read):
            operands[node.value] = operand_of(lookup(values[node.value]), node.dims)
        elif isinstance(node, Extract):
            known = tables[node.table - len(values)]
            operands[node.table] = operand_of(known, _table_dims(known, node, axes, selected))
    if any(not operand.name for operand in operands.values()):
        raise UnsupportedOpError("a linalg operation reads an uninitialised tensor", location=source_text(op))
    combine: Combine = COMBINE_BY_OPCODE[opcode] if opcode else "none"
    init = lookup(values[-1])
    if not opcode:
        init = replace(init, name="", fill="")
    if selected and not opcode:
        # One point of a new axis is selected, so any combination hands its value through; sums are what cores have.
        combine, opcode = ("or", "arith.ori") if dtype == "i1" else ("sum", "")
    return Root(
        axes=tuple(axes),
        operands=dict(sorted(operands.items())),
        output_dims=maps[-1],
        output_shape=shape,
        dtype=dtype,
        combine=combine,
        combine_opcode=opcode,
        body=body,
        selected=tuple(selected),
        init=init,
        order=order,
    )


def _table_dims(
    known: Known, extract: Extract, axes: list[Axis], selected: list[tuple[int, Scalar]]
) -> tuple[AffineDim, ...]:
    """Return how a gather reads its table; every index that is not a position gets an axis of its own."""
    dims: list[AffineDim] = []
    for extent, index in zip(known.shape, extract.indices, strict=True):
        if isinstance(index, Index):
            dims.append(index.form)
        elif isinstance(index, Constant):
            dims.append(AffineDim((), int(index.text)))
        else:
            dims.append(axis_dim(len(axes)))
            selected.append((len(axes), index))
            axes.append(Axis(f"v{len(selected) - 1}", extent, "reduction"))
    return tuple(dims)


def operand_of(known: Known, dims: tuple[AffineDim, ...]) -> Operand:
    """Return a tensor as it is read at `dims`."""
    role = "weight" if known.role == "weight" else "activation"
    return Operand(known.name, role, known.dtype, known.shape, dims)


def is_neutral(combine: Combine, fill: str, dtype: str) -> bool:
    """Return whether starting from the constant `fill` changes nothing."""
    value = parse_constant(fill)
    if combine in ("sum", "or"):
        return value == 0
    if combine in ("prod",):
        return value == 1
    if combine == "and":
        return value is True or value == -1
    return value == neutral_value(combine, dtype)
