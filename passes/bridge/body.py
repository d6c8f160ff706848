"""The region of a linalg.generic read as scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from t10.core.expression import AffineDim, AxisKind, Combine
from t10.dialect.location import source_text
from t10.dialect.maps import read_map
from t10.dialect.mlir import ir
from t10.errors import UnsupportedOpError
from t10.passes.bridge.affine import axis_dim
from t10.passes.bridge.scalars import constant_of
from t10.passes.bridge.tree import Apply, Constant, Extract, Index, Scalar

# Numbered as in the arith dialect's definition of CmpFPredicate and CmpIPredicate.
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
COMPUTING_DIALECTS = ("arith.", "math.")

COMBINE_BY_OPCODE: dict[str, Combine] = {
    "arith.addf": "sum",
    "arith.addi": "sum",
    "arith.mulf": "prod",
    "arith.muli": "prod",
    "arith.maximumf": "max",
    "arith.maxnumf": "maxnum",
    "arith.maxsi": "max",
    "arith.maxui": "max",
    "arith.minimumf": "min",
    "arith.minnumf": "minnum",
    "arith.minsi": "min",
    "arith.minui": "min",
    "arith.andi": "and",
    "arith.ori": "or",
}

NO_COMBINE = {
    "i1": frozenset({"arith.addi", "arith.maxsi", "arith.minsi"}),
    "": frozenset({"arith.maxui", "arith.minui"}),
}
"""Opcodes that `COMBINE_BY_OPCODE` must not stand for, by element type (empty: all others): cores compare integers as
signed numbers and one bit as false < true."""


def indexing_maps(op: Any) -> list[tuple[AffineDim, ...]]:
    """Return the affine forms of every operand of a linalg.generic, inputs first."""
    return [read_map(ir.AffineMapAttr(attr).value) for attr in ir.ArrayAttr(op.attributes["indexing_maps"])]


def iterator_kinds(op: Any) -> tuple[AxisKind, ...]:
    """Return parallel or reduction for every iterator of a linalg.generic."""
    kinds = [str(attr) for attr in ir.ArrayAttr(op.attributes["iterator_types"])]
    return tuple("reduction" if "reduction" in kind else "parallel" for kind in kinds)


def loop_extents(op: Any, maps: list[tuple[AffineDim, ...]], n_axes: int) -> tuple[int, ...]:
    """Return the trip count of every loop: the extent of an operand dim that is this loop alone."""
    extents: dict[int, int] = {}
    for value, dims in zip(op.operands, maps, strict=True):
        shape = value.type.shape if isinstance(value.type, ir.RankedTensorType) else ()
        for dim, extent in zip(dims, shape, strict=True):
            if dim.is_simple:
                extents.setdefault(dim.terms[0].axis, extent)
    missing = [axis for axis in range(n_axes) if axis not in extents]
    if missing:
        raise UnsupportedOpError(f"loop d{missing[0]} indexes no operand dim alone", location=source_text(op))
    return tuple(extents[axis] for axis in range(n_axes))


class BodyReader:
    """Reads the region of one linalg.generic, each value once.

    `leaf` returns what a block argument that stands for an element of a tensor is, by its number; `table` numbers a
    tensor read at computed indices. Methods raise `UnsupportedOpError` for what has no meaning here.
    """

    def __init__(self, op: Any, leaf: Callable[[int], Scalar], table: Callable[[Any], int]) -> None:
        """Start with nothing read."""
        self.op = op
        self.leaf = leaf
        self.table = table
        self.block = op.regions[0].blocks[0]
        self.reduces = "reduction" in iterator_kinds(op)
        arguments = list(self.block.arguments)
        self.numbers = {argument: number for number, argument in enumerate(arguments)}
        self.accumulators = arguments[len(arguments) - len(op.results) :]
        self.known: dict[Any, Scalar] = {}

    def result(self, i: int = 0) -> tuple[Scalar, str]:
        """Return what a point contributes to result `i`, and the opcode that combines it with the old one.

        The opcode is empty where there are no reduction axes: the contribution is the result.
        """
        value = list(self.block.operations)[-1].operation.operands[i]
        if not self.reduces:
            return self.scalar(value), ""
        old, dtype, owner = self.accumulators[i], str(value.type), value.owner
        name = "" if isinstance(owner, ir.Block) else owner.operation.name
        operands = [] if isinstance(owner, ir.Block) else list(owner.operation.operands)
        if name == "arith.subf" and operands[0] == old != operands[1]:
            # Canonicalizing makes this of a sum of negatives.
            return Apply("arith.negf", (self.scalar(operands[1]),), dtype), "arith.addf"
        allowed = COMBINE_BY_OPCODE.keys() - NO_COMBINE.get(dtype, NO_COMBINE[""])
        if name not in allowed or old not in operands or operands[0] == operands[1]:
            raise UnsupportedOpError(
                f"the reduction body ends in {name or 'a block argument'} on {dtype} (expected the old result "
                f"combined by one of {', '.join(sorted(allowed))})",
                location=source_text(self.op),
            )
        return self.scalar(operands[1] if operands[0] == old else operands[0]), name

    def in_order(self) -> list[Scalar]:
        """Return the values of the body in the order of its operations, but for the one that combines."""
        operations = [inner.operation for inner in self.block.operations][:-1]
        return [self.scalar(inner.results[0]) for inner in operations[: len(operations) - self.reduces]]

    def scalar(self, value: Any) -> Scalar:
        """Return what computes a value inside the body."""
        known = self.known.get(value)
        if known is None:
            known = self.known[value] = self._read(value)
        return known

    def _read(self, value: Any) -> Scalar:
        owner, dtype = value.owner, str(value.type)
        if isinstance(owner, ir.Block):
            number = self.numbers.get(value)
            if number is None or (self.reduces and value in self.accumulators):
                raise UnsupportedOpError("a linalg body reads a value that is neither its own nor a constant")
            operand = self.op.operands[number]
            is_tensor = isinstance(operand.type, ir.RankedTensorType)
            return self.leaf(number) if is_tensor else self.scalar(operand)
        op = owner.operation
        if op.name == "arith.constant":
            text = constant_of(op.attributes["value"])
            if text is None:
                raise UnsupportedOpError(f"a linalg body reads the constant {op}")
            return Constant(text, dtype)
        if op.name == "linalg.index":
            return Index(axis_dim(int(ir.IntegerAttr(op.attributes["dim"]).value)))
        if op.name == "tensor.extract":
            tensor, *indices = op.operands
            return Extract(self.table(tensor), tuple(self.scalar(index) for index in indices))
        if not op.name.startswith(COMPUTING_DIALECTS):
            raise UnsupportedOpError(
                f"{op.name} inside a linalg body cannot be planned (expected arith and math operations)",
                location=source_text(op),
            )
        return Apply(op.name, tuple(self.scalar(operand) for operand in op.operands), dtype, _predicate(op))


def _predicate(op: Any) -> str:
    """Return the name of a comparison's predicate, empty for other operations."""
    names = {"arith.cmpf": FLOAT_PREDICATES, "arith.cmpi": INTEGER_PREDICATES}.get(op.name)
    return names[int(ir.IntegerAttr(op.attributes["predicate"]).value)] if names else ""
