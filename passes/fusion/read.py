"""A function of linalg operations read as a `FusionGraph`."""

from __future__ import annotations

from typing import Any

from t10.core.expression import AffineDim
from t10.dialect.mlir import captured, ir
from t10.dialect.rtensor import COPY, FORCED
from t10.errors import UnsupportedOpError
from t10.passes.bridge.affine import axis_dim
from t10.passes.bridge.body import BodyReader, indexing_maps, iterator_kinds, loop_extents
from t10.passes.bridge.scalars import constant_of, constant_value
from t10.passes.bridge.tree import Constant, Read
from t10.passes.fusion.graph import PARALLEL, TRANSPOSE, FusionGraph, Nest, Opaque, Reshape


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
        self.rank = 0

    def read(self) -> FusionGraph:
        for argument in self.block.arguments:
            self._define(argument)
        for op in self.block.operations:
            operation = op.operation
            self.rank += 1
            if operation.name == "func.return":
                self.graph.outputs = [self.value_of[value] for value in operation.operands]
            else:
                self._operation(operation)
        return self.graph

    def _define(self, value: Any) -> int:
        kind = value.type
        if isinstance(kind, ir.RankedTensorType):
            tensor = ir.RankedTensorType(kind)
            number = self.graph.new_value(tuple(tensor.shape), str(tensor.element_type))
        else:
            number = self.graph.new_value((), str(kind))
        self.value_of[value] = number
        return number

    def _fill(self, op: Any, text: str) -> None:
        value = self._define(op.results[0])
        shape, dtype = self.graph.shapes[value], self.graph.types[value]
        self.graph.add(
            Nest(
                result=value,
                extents=shape,
                kinds=(PARALLEL,) * len(shape),
                body=Constant(text, dtype),
                out_dims=tuple(axis_dim(i) for i in range(len(shape))),
                acc_type=dtype,
                location=op.location,
                rank=self.rank,
            )
        )

    def _operation(self, op: Any) -> None:
        text = _repeated(op)
        if text is not None:
            self._fill(op, text)
            return
        if op.name in ("tensor.expand_shape", "tensor.collapse_shape"):
            self._reshape(op)
            return
        if op.name == "linalg.generic" and COPY not in op.attributes:
            try:
                if _combines_nothing(op):
                    starts = list(op.operands)[-len(op.results) :]
                    self.value_of |= {
                        r: self.value_of[start] for r, start in zip(op.results, starts, strict=True)
                    }
                    return
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

        Raises `NotANest` or `UnsupportedOpError` for what is no loop nest of the kind that is fused.
        """
        maps, kinds = indexing_maps(op), iterator_kinds(op)
        extents = loop_extents(op, maps, len(kinds))
        if any(extent < 1 for extent in extents):
            raise NotANest
        body = BodyReader(
            op, lambda i: Read(self.value_of[op.operands[i]], maps[i]), lambda value: self.value_of[value]
        )
        nests: list[tuple[Any, Nest]] = []
        for i, result in enumerate(op.results):
            if len(op.results) > 1 and not list(result.uses):
                continue
            out_dims = maps[len(maps) - len(op.results) + i]
            shape = tuple(ir.RankedTensorType(result.type).shape)
            if not _covers(out_dims, kinds, shape):
                raise NotANest
            contribution, combine = body.result(i)
            element_type = str(ir.RankedTensorType(result.type).element_type)
            start = op.operands[len(maps) - len(op.results) + i]
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
                init=Read(self.value_of[start], out_dims) if combine else None,
                name=name,
                forced=op.attributes.get(FORCED),
                is_transpose="kind" in op.attributes
                and ir.StringAttr(op.attributes["kind"]).value == TRANSPOSE,
            )
            nests.append((result, nest))
        return nests


def _combines_nothing(op: Any) -> bool:
    """Return whether an operation leaves what it starts from: a reduction of no terms."""
    kinds = iterator_kinds(op)
    extents = loop_extents(op, indexing_maps(op), len(kinds))
    return any(extent == 0 and kind != PARALLEL for extent, kind in zip(extents, kinds, strict=True))


def _repeated(op: Any) -> str | None:
    """Return the constant that an operation repeats, None for one that does something else."""
    if op.name == "linalg.fill":
        return constant_value(op.operands[0])
    is_tensor = op.name == "arith.constant" and isinstance(op.results[0].type, ir.RankedTensorType)
    return constant_of(op.attributes["value"]) if is_tensor else None


def _covers(out_dims: tuple[AffineDim, ...], kinds: tuple[str, ...], shape: tuple[int, ...]) -> bool:
    """Return whether a result's dims are the parallel axes, once each, besides constant zeros of extent 1."""
    axes = [dim.terms[0].axis for dim in out_dims if dim.is_simple]
    others = [(dim, extent) for dim, extent in zip(out_dims, shape, strict=True) if not dim.is_simple]
    parallel = [axis for axis, kind in enumerate(kinds) if kind == PARALLEL]
    return sorted(axes) == parallel and all(not dim.terms and not dim.offset and n == 1 for dim, n in others)
