"""A function of linalg operations read as a `FusionGraph`."""

from __future__ import annotations

from typing import Any

from t10.core.expression import AffineDim
from t10.dialect.maps import read_map
from t10.dialect.mlir import captured, ir
from t10.dialect.rtensor import FORCED
from t10.errors import UnsupportedOpError
from t10.passes.fusion.affine import axis_dim
from t10.passes.fusion.graph import PARALLEL, REDUCTION, TRANSPOSE, FusionGraph, Nest, Opaque, Reshape
from t10.passes.fusion.scalar import Apply, Constant, Extract, Index, Read, Scalar

COMBINES = frozenset(
    f"arith.{name}"
    for name in (
        "addf", "addi", "mulf", "muli", "maximumf", "maxnumf", "maxsi", "maxui", "minimumf", "minnumf",
        "minsi", "minui", "andi", "ori",
    )
)  # fmt: skip


class NotANest(Exception):
    """The operation is not a loop nest of the kind that is fused."""


def read_function(function: Any) -> FusionGraph:
    """Return the graph of a `func.func` with one block. Operations that are no loop nests become `Opaque`."""
    return _Reader(function).read()


class _Reader:
    def __init__(self, function: Any) -> None:
        self.block = function.regions[0].blocks[0]
        self.graph = FusionGraph()
        self.value_of: dict[Any, int] = {}
        self.constants: dict[Any, Any] = {}
        self.rank = 0

    def read(self) -> FusionGraph:
        for argument in self.block.arguments:
            self._define(argument)
        for op in self.block.operations:
            operation = op.operation
            self.rank += 1
            if operation.name == "func.return":
                self.graph.outputs = [self.value_of[value] for value in operation.operands]
            elif operation.name == "arith.constant" and self._constant(operation):
                continue
            else:
                self._operation(operation)
        return self.graph

    def _define(self, value: Any) -> int:
        kind = value.type
        if isinstance(kind, ir.RankedTensorType):
            tensor = ir.RankedTensorType(kind)
            number = self.graph.new_value(tuple(tensor.shape), tensor.element_type)
        else:
            number = self.graph.new_value((), kind)
        self.value_of[value] = number
        return number

    def _constant(self, op: Any) -> bool:
        """Read a constant: scalars are remembered, splat tensors become moves of a constant."""
        attribute = op.attributes["value"]
        result = op.results[0]
        if not isinstance(result.type, ir.RankedTensorType):
            self.constants[result] = attribute
            return False
        if not isinstance(attribute, ir.DenseElementsAttr) or not ir.DenseElementsAttr(attribute).is_splat:
            return False
        self._fill(op, ir.DenseElementsAttr(attribute).get_splat_value())
        return True

    def _fill(self, op: Any, attribute: Any) -> None:
        value = self._define(op.results[0])
        shape = self.graph.shapes[value]
        self.graph.add(
            Nest(
                result=value,
                extents=shape,
                kinds=(PARALLEL,) * len(shape),
                body=Constant(attribute),
                out_dims=tuple(axis_dim(i) for i in range(len(shape))),
                acc_type=self.graph.types[value],
                location=op.location,
                rank=self.rank,
            )
        )

    def _operation(self, op: Any) -> None:
        if op.name == "linalg.fill" and op.operands[0] in self.constants:
            self._fill(op, self.constants[op.operands[0]])
            return
        if op.name in ("tensor.expand_shape", "tensor.collapse_shape"):
            self._reshape(op)
            return
        if op.name == "linalg.generic":
            try:
                nodes = self._generic(op)
            except (NotANest, UnsupportedOpError):
                pass
            else:
                for result, node in nodes:
                    self.graph.add(node)
                    self.value_of[result] = node.result
                return
        operands = tuple(self.value_of.get(value) for value in (*op.operands, *captured(op)))
        results = tuple(self._define(value) for value in op.results)
        if results:
            self.graph.add(Opaque(results, operands, op, self.rank))

    def _reshape(self, op: Any) -> None:
        groups = tuple(
            tuple(int(ir.IntegerAttr(i).value) for i in ir.ArrayAttr(group))
            for group in ir.ArrayAttr(op.attributes["reassociation"])
        )
        source = self.value_of[op.operands[0]]
        expands = op.name == "tensor.expand_shape"
        result = self._define(op.results[0])
        self.graph.add(Reshape(result, source, groups, expands, op.location, self.rank))

    def _generic(self, op: Any) -> list[tuple[Any, Nest]]:
        """Return (result, nest) for every result of a linalg.generic that is used.

        Raises `NotANest` if results depend on one another.
        """
        maps = [
            read_map(ir.AffineMapAttr(attr).value) for attr in ir.ArrayAttr(op.attributes["indexing_maps"])
        ]
        iterators = [str(attr) for attr in ir.ArrayAttr(op.attributes["iterator_types"])]
        kinds = tuple(REDUCTION if "reduction" in text else PARALLEL for text in iterators)
        body = _Body(op, maps, kinds, self.value_of, self.constants)
        extents = self._extents(op, maps, len(kinds))
        nests: list[tuple[Any, Nest]] = []
        for i, result in enumerate(op.results):
            if len(op.results) > 1 and not list(result.uses):
                continue
            out_dims = maps[len(maps) - len(op.results) + i]
            shape = tuple(ir.RankedTensorType(result.type).shape)
            if not _covers(out_dims, kinds, shape):
                raise NotANest
            contribution, combine, init = body.result(i)
            element_type = ir.RankedTensorType(result.type).element_type
            value = self.graph.new_value(shape, element_type)
            name = ir.StringAttr(op.attributes["op_name"]).value if "op_name" in op.attributes else ""
            nest = Nest(
                result=value,
                extents=extents,
                kinds=kinds,
                body=contribution,
                out_dims=out_dims,
                acc_type=element_type,
                location=op.location,
                rank=self.rank,
                combine=combine,
                init=init,
                name=name,
                forced=op.attributes.get(FORCED),
                is_transpose="kind" in op.attributes
                and ir.StringAttr(op.attributes["kind"]).value == TRANSPOSE,
            )
            nests.append((result, nest))
        return nests

    def _extents(self, op: Any, maps: list[tuple[AffineDim, ...]], n_axes: int) -> tuple[int, ...]:
        extents: dict[int, int] = {}
        for value, dims in zip(op.operands, maps, strict=True):
            shape = (
                ir.RankedTensorType(value.type).shape if isinstance(value.type, ir.RankedTensorType) else ()
            )
            for dim, extent in zip(dims, shape, strict=False):
                if dim.is_simple:
                    extents.setdefault(dim.terms[0].axis, extent)
        if len(extents) != n_axes or any(extent < 1 for extent in extents.values()):
            raise NotANest
        return tuple(extents[axis] for axis in range(n_axes))


def _covers(out_dims: tuple[AffineDim, ...], kinds: tuple[str, ...], shape: tuple[int, ...]) -> bool:
    """Return whether a result's dims are the parallel axes, once each, besides constant zeros of extent 1."""
    axes = [dim.terms[0].axis for dim in out_dims if dim.is_simple]
    others = [(dim, extent) for dim, extent in zip(out_dims, shape, strict=True) if not dim.is_simple]
    parallel = [axis for axis, kind in enumerate(kinds) if kind == PARALLEL]
    return sorted(axes) == parallel and all(not dim.terms and not dim.offset and n == 1 for dim, n in others)


class _Body:
    """The region of one linalg.generic read as scalars."""

    def __init__(
        self,
        op: Any,
        maps: list[tuple[AffineDim, ...]],
        kinds: tuple[str, ...],
        value_of: dict[Any, int],
        constants: dict[Any, Any],
    ) -> None:
        self.op = op
        self.maps = maps
        self.kinds = kinds
        self.value_of = value_of
        self.constants = constants
        block = op.regions[0].blocks[0]
        self.arguments = list(block.arguments)
        self.yielded = list(list(block.operations)[-1].operation.operands)
        self.known: dict[Any, Scalar] = {}
        self.accumulators = self.arguments[len(self.arguments) - len(op.results) :]

    def result(self, i: int) -> tuple[Scalar, str, Scalar | None]:
        """Return contribution, combining opcode and initial value of result `i`."""
        n_inputs = len(self.arguments) - len(self.accumulators)
        out = self.op.operands[n_inputs + i]
        init = self._leaf(out, self.maps[n_inputs + i])
        value = self.yielded[i]
        if REDUCTION not in self.kinds:
            for j, argument in enumerate(self.accumulators):
                self.known[argument] = self._leaf(self.op.operands[n_inputs + j], self.maps[n_inputs + j])
            return self._scalar(value), "", None
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.operation.name not in COMBINES:
            raise NotANest
        operands = list(owner.operation.operands)
        if self.accumulators[i] not in operands or operands[0] == operands[1]:
            raise NotANest
        other = operands[1] if operands[0] == self.accumulators[i] else operands[0]
        return self._scalar(other), owner.operation.name, init

    def _leaf(self, operand: Any, dims: tuple[AffineDim, ...]) -> Scalar:
        if operand in self.constants:
            return Constant(self.constants[operand])
        if not isinstance(operand.type, ir.RankedTensorType):
            return self._scalar(operand)
        return Read(self.value_of[operand], dims)

    def _scalar(self, value: Any) -> Scalar:
        known = self.known.get(value)
        if known is None:
            known = self.known[value] = self._read(value)
        return known

    def _read(self, value: Any) -> Scalar:
        if value in self.constants:
            return Constant(self.constants[value])
        owner = value.owner
        if isinstance(owner, ir.Block):
            if value not in self.arguments or value in self.accumulators:
                raise NotANest
            number = self.arguments.index(value)
            return self._leaf(self.op.operands[number], self.maps[number])
        op = owner.operation
        if op.name == "arith.constant":
            return Constant(op.attributes["value"])
        if op.name == "linalg.index":
            return Index(axis_dim(int(ir.IntegerAttr(op.attributes["dim"]).value)))
        if op.name == "tensor.extract":
            operands = list(op.operands)
            return Extract(self.value_of[operands[0]], tuple(self._scalar(index) for index in operands[1:]))
        if not op.name.startswith(("arith.", "math.")):
            raise NotANest
        return Apply(op.name, tuple(self._scalar(operand) for operand in op.operands), value.type, op)
