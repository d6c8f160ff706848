"""One linalg operation as the parts of an operator: axes, operands, the contribution of a point and its combination."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from t10.core.expression import AffineDim, Axis, AxisKind, Combine, Operand, Selector, Term
from t10.core.neutral import neutral_value
from t10.core.scalar import ScalarFunction, parse_constant
from t10.dialect.location import source_text
from t10.dialect.maps import read_map
from t10.dialect.mlir import ir
from t10.errors import UnsupportedOpError
from t10.passes.bridge.scalars import ScalarBuilder, drop_inputs, read_scalar, used_inputs

COMBINE_BY_OPCODE: dict[str, Combine] = {
    "arith.addf": "sum",
    "arith.addi": "sum",
    "arith.mulf": "prod",
    "arith.muli": "prod",
    "arith.maximumf": "max",
    "arith.maxnumf": "max",
    "arith.maxsi": "max",
    "arith.maxui": "max",
    "arith.minimumf": "min",
    "arith.minnumf": "min",
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
    """A linalg operation read: what `OperatorSpec` needs of it, and what its result starts from (`init`)."""

    axes: tuple[Axis, ...]
    inputs: tuple[Operand, ...]
    output_dims: tuple[AffineDim, ...]
    output_shape: tuple[int, ...]
    dtype: str
    combine: Combine
    combine_opcode: str
    body: ScalarFunction
    selectors: tuple[Selector, ...]
    init: Known


Lookup = Callable[[Any], Known]


def tensor_type(value: Any) -> tuple[tuple[int, ...], str]:
    """Return (shape, element type name) of a tensor, () for a scalar; raises `UnsupportedOpError` for other types."""
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
    return tuple(int(n) for n in kind.shape), str(kind.element_type)


def indexing_maps(op: Any) -> list[tuple[AffineDim, ...]]:
    """Return the affine forms of every operand of a linalg.generic, inputs first."""
    return [read_map(ir.AffineMapAttr(attr).value) for attr in ir.ArrayAttr(op.attributes["indexing_maps"])]


def iterator_kinds(op: Any) -> tuple[AxisKind, ...]:
    """Return parallel or reduction for every iterator of a linalg.generic."""
    kinds = [str(attr) for attr in ir.ArrayAttr(op.attributes["iterator_types"])]
    return tuple("reduction" if "reduction" in kind else "parallel" for kind in kinds)


def n_results(op: Any) -> int:
    """Return how many tensors a linalg operation makes."""
    return len(op.results)


def read_root(op: Any, lookup: Lookup, *, in_order: bool = False) -> Root:
    """Return a linalg.generic with one result as the parts of an operator.

    `in_order` keeps the order in which the body's operations stand: what `write_spec` wrote is read back as it was.
    Raises `UnsupportedOpError` for bodies that are not one combination of the old result with a contribution.
    """
    if n_results(op) != 1:
        raise UnsupportedOpError(
            f"linalg operation with {n_results(op)} results (expected one)", location=source_text(op)
        )
    maps = indexing_maps(op)
    kinds = iterator_kinds(op)
    values = list(op.operands)
    reader = _BodyReader(op, lookup, maps)
    extents = _extents(values, maps, len(kinds), source_text(op))
    axes = [Axis(f"d{i}", extent, kind) for i, (extent, kind) in enumerate(zip(extents, kinds, strict=True))]
    has_reduction = "reduction" in kinds
    if in_order:
        reader.read_in_order(has_reduction)
    contribution, combine, opcode = reader.contribution(has_reduction)
    axes.extend(reader.new_axes)
    if reader.new_axes and not has_reduction:
        # One point of a new axis is selected, so any combination hands its value through; sums are what cores have.
        combine, opcode = ("or", "arith.ori") if reader.dtype == "i1" else ("sum", "")
    body = reader.builder.finish(contribution)
    selectors = tuple(Selector(axis, reader.builder.finish(index)) for axis, index in reader.selected)
    inputs, body, selectors = _without_unused(tuple(reader.inputs), body, selectors)
    if any(not operand.name for operand in inputs):
        raise UnsupportedOpError("a linalg operation reads an uninitialised tensor", location=source_text(op))
    init = lookup(values[-1])
    shape, dtype = tensor_type(op.results[0])
    if not has_reduction:
        init = replace(init, name="", fill="")
    return Root(tuple(axes), inputs, maps[-1], shape, dtype, combine, opcode, body, selectors, init)


class _BodyReader:
    """Reads the body of one generic: constants become part of it, gathers become axes with selectors."""

    def __init__(self, op: Any, lookup: Lookup, maps: list[tuple[AffineDim, ...]]) -> None:
        self.op = op
        self.lookup = lookup
        self.block = op.regions[0].blocks[0]
        self.dtype = tensor_type(op.results[0])[1]
        self.inputs: list[Operand] = []
        self.new_axes: list[Axis] = []
        self.selected: list[tuple[int, int]] = []
        self.numbers: dict[Any, int] = {}
        self.n_axes = len(iterator_kinds(op))
        self.extracts = [
            inner.operation for inner in self.block.operations if inner.operation.name == "tensor.extract"
        ]
        self.out_argument = list(self.block.arguments)[-1]
        constants = self._operands(maps)
        self.builder = ScalarBuilder(len(self.inputs))
        for argument, known in constants:
            self.numbers[argument] = self.builder.constant(known.fill, known.dtype)
        self._bind_extracts()

    def _operands(self, maps: list[tuple[AffineDim, ...]]) -> list[tuple[Any, Known]]:
        """Number the tensors that are read; return the block arguments that are constants instead."""
        constants: list[tuple[Any, Known]] = []
        values = list(self.op.operands)
        arguments = list(self.block.arguments)
        reads_output = self._reads_output_as_input()
        for value, argument, dims in zip(values, arguments, maps, strict=True):
            if argument == self.out_argument and not reads_output:
                continue
            known = self.lookup(value)
            if known.fill:
                constants.append((argument, known))
                continue
            self.numbers[argument] = len(self.inputs)
            self.inputs.append(_operand(known, dims))
        for extract in self.extracts:
            self.inputs.append(self._table(extract))
        return constants

    def _reads_output_as_input(self) -> bool:
        """Return whether an all-parallel body reads its `outs` operand: it is an input like any other then."""
        return "reduction" not in iterator_kinds(self.op) and bool(list(self.out_argument.uses))

    def _table(self, extract: Any) -> Operand:
        """Return the table a gather reads; every index that is not a loop index gets an axis of its own."""
        known = self.lookup(extract.operands[0])
        dims: list[AffineDim] = []
        for extent, index in zip(known.shape, list(extract.operands)[1:], strict=True):
            owner = index.owner
            name = "" if isinstance(owner, ir.Block) else owner.operation.name
            if name == "linalg.index":
                dims.append(AffineDim((Term(ir.IntegerAttr(owner.operation.attributes["dim"]).value, 1),)))
            elif name == "arith.constant":
                dims.append(AffineDim((), int(ir.IntegerAttr(owner.operation.attributes["value"]).value)))
            else:
                axis = self.n_axes + len(self.new_axes)
                self.new_axes.append(Axis(f"v{len(self.new_axes)}", extent, "reduction"))
                dims.append(AffineDim((Term(axis, 1),)))
        return _operand(known, tuple(dims))

    def _bind_extracts(self) -> None:
        """Make every tensor.extract an input of the body and its computed indices selectors."""
        first = len(self.inputs) - len(self.extracts)
        axis = self.n_axes
        for i, extract in enumerate(self.extracts):
            for index in list(extract.operands)[1:]:
                owner = index.owner
                name = "" if isinstance(owner, ir.Block) else owner.operation.name
                if name in ("linalg.index", "arith.constant"):
                    continue
                self.selected.append((axis, read_scalar(index, self.builder, self.numbers)))
                axis += 1
            self.numbers[extract.results[0]] = first + i

    def read_in_order(self, has_reduction: bool) -> None:
        """Number the operations of the body as they stand, but for the last that combines."""
        operations = [inner.operation for inner in self.block.operations][:-1]
        for inner in operations[: len(operations) - has_reduction]:
            read_scalar(inner.results[0], self.builder, self.numbers)

    def contribution(self, has_reduction: bool) -> tuple[int, Combine, str]:
        """Return the number of the contributed value, how it is combined with the old one, and by which opcode."""
        terminator = list(self.block.operations)[-1].operation
        result = terminator.operands[0]
        if not has_reduction:
            return read_scalar(result, self.builder, self.numbers), "none", ""
        owner = result.owner
        name = "" if isinstance(owner, ir.Block) else owner.operation.name
        wrong_here = NO_COMBINE.get(self.dtype, NO_COMBINE[""])
        combine = None if name in wrong_here else COMBINE_BY_OPCODE.get(name)
        operands = [] if isinstance(owner, ir.Block) else list(owner.operation.operands)
        if name == "arith.subf" and operands[0] == self.out_argument != operands[1]:
            # Canonicalizing makes this of a sum of negatives.
            subtracted = read_scalar(operands[1], self.builder, self.numbers)
            return self.builder.add("arith.negf", (subtracted,), self.dtype), "sum", "arith.addf"
        if combine is None or self.out_argument not in operands or operands[0] == operands[1]:
            raise UnsupportedOpError(
                f"the reduction body ends in {name or 'a block argument'} on {self.dtype} (expected the old result "
                f"combined by one of {', '.join(sorted(COMBINE_BY_OPCODE.keys() - wrong_here))})",
                location=source_text(self.op),
            )
        other = operands[1] if operands[0] == self.out_argument else operands[0]
        return read_scalar(other, self.builder, self.numbers), combine, name


def _operand(known: Known, dims: tuple[AffineDim, ...]) -> Operand:
    role = "weight" if known.role == "weight" else "activation"
    return Operand(known.name, role, known.dtype, known.shape, dims)


def _extents(
    values: list[Any], maps: list[tuple[AffineDim, ...]], n_axes: int, location: str
) -> tuple[int, ...]:
    """Return the trip count of every loop: the extent of an operand dim that is this loop alone."""
    extents: dict[int, int] = {}
    for value, dims in zip(values, maps, strict=True):
        for dim, extent in zip(dims, tensor_type(value)[0], strict=True):
            if dim.is_simple:
                extents.setdefault(dim.terms[0].axis, extent)
    missing = [axis for axis in range(n_axes) if axis not in extents]
    if missing:
        raise UnsupportedOpError(f"loop d{missing[0]} indexes no operand dim alone", location=location)
    return tuple(extents[axis] for axis in range(n_axes))


def _without_unused(
    inputs: tuple[Operand, ...], body: ScalarFunction, selectors: tuple[Selector, ...]
) -> tuple[tuple[Operand, ...], ScalarFunction, tuple[Selector, ...]]:
    """Drop inputs that neither the body nor a selector reads (the window operand of a pooling)."""
    used = used_inputs(body).union(*(used_inputs(selector.index) for selector in selectors))
    kept = tuple(sorted(used))
    if len(kept) == len(inputs):
        return inputs, body, selectors
    narrowed = tuple(Selector(s.axis, drop_inputs(s.index, kept)) for s in selectors)
    return tuple(inputs[i] for i in kept), drop_inputs(body, kept), narrowed


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
