"""Slices, concatenations and constants added to a `FusionGraph`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from t10.dialect.elements import as_constant
from t10.dialect.mlir import ir
from t10.passes.fusion.graph import FusionGraph, Opaque


@dataclass(frozen=True, slots=True)
class ViewMaker:
    """Adds views to a graph; operations are made at `end`, and cloned from there when the graph is written."""

    graph: FusionGraph
    end: Any

    @classmethod
    def of(cls, function: Any, graph: FusionGraph) -> ViewMaker:
        """Return what adds views to the graph of a function."""
        return cls(graph, ir.InsertionPoint(list(function.regions[0].blocks[0].operations)[-1]))

    def slice(self, source: int, dim: int, first: int, n: int, rank: int, result: int | None = None) -> int:
        """Return `n` rows of a value from `first` on along a dim, as a value of their own, or as `result`."""
        shape = list(self.graph.shapes[source])
        sizes, offsets = [*shape[:dim], n, *shape[dim + 1 :]], [0] * len(shape)
        offsets[dim] = first
        static = {"static_offsets": offsets, "static_sizes": sizes, "static_strides": [1] * len(shape)}
        attributes = {key: ir.DenseI64ArrayAttr.get(values) for key, values in static.items()}
        segments = ir.DenseI32ArrayAttr.get([1, 0, 0, 0])
        made = self.graph.new_value(tuple(sizes), self.graph.types[source]) if result is None else result
        self._add("tensor.extract_slice", made, (source,), rank, **attributes, operandSegmentSizes=segments)
        return made

    def concat(self, result: int, sources: tuple[int, ...], dim: int, rank: int) -> None:
        """Make a value of others, one behind another along a dim."""
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
        self._add("tensor.concat", result, sources, rank, dim=number)

    def constant(self, result: int, values: NDArray[Any], rank: int) -> None:
        """Make a value a constant."""
        self._add("arith.constant", result, (), rank, value=as_constant(values, self._type(result)))

    def _add(self, name: str, result: int, sources: tuple[int, ...], rank: int, **attributes: Any) -> None:
        """Add an operation on values; its operands in IR stand in for them."""
        stand_ins = [
            ir.Operation.create("tensor.empty", results=[self._type(value)], ip=self.end).results[0]
            for value in sources
        ]
        op = ir.Operation.create(
            name, results=[self._type(result)], operands=stand_ins, attributes=attributes, ip=self.end
        )
        self.graph.add(Opaque((result,), sources, op, rank))

    def _type(self, value: int) -> Any:
        return ir.RankedTensorType.get(list(self.graph.shapes[value]), ir.Type.parse(self.graph.types[value]))
