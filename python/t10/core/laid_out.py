"""How a value lies for an operator that reads it through views: where each of its cores reads it.

```
%kk = concat(%cache : 2x15x8, %new : 2x1x8) along 1       s[b, q, k] += q[b, q, d] * kk[b, k, d]
```

The second operand reads the view `kk` at `(b, k, d)`. Seen through the view it reads `cache` at `(b, k, d)`, of which
the last `k` lies outside, and `new` at `(b, k - 15, d)`. A layout that names this operand and is one of `cache` or of
`new` puts elements where they are read so. Slices, padding, transposes and windows are seen through in the same way;
what is read backwards (a slice of negative step) is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from t10.core.expression import AffineDim, Operand, OperatorSpec, Term
from t10.core.graph import Graph
from t10.core.schedule import ValueLayout
from t10.core.view_boxes import Piece, piece_of


def seen_operand(graph: Graph, operand: Operand, value: str) -> Operand | None:
    """Return an operand as it reads a value itself, perhaps reshaped; None where its dims are no affine forms then.

    Its name is that of the value, or of the reshape of it that is read.
    """
    for name in _reshaped(graph, operand.name, value):
        if name == operand.name:
            return operand
        piece = piece_of(graph, operand.name, name)
        if piece is not None and all(stride > 0 for stride in piece.strides):
            dims = tuple(_seen_dim(operand, piece, dim) for dim in range(len(piece.dims)))
            return replace(operand, name=name, shape=graph.shape_by_value[name], dims=dims, pad_value="")
    return None


def _reshaped(graph: Graph, read: str, value: str) -> Iterator[str]:
    """Yield a value and, of what is read through views, its reshapes; what is read itself first."""
    names = {value: None}
    for view in graph.views:  # a view stands after its sources
        if view.kind == "reshape" and view.sources[0] in names:
            names[view.name] = None
    if read in names:
        yield read
        return
    yield from names


def _seen_dim(operand: Operand, piece: Piece, dim: int) -> AffineDim:
    """Return the index along a dim of a piece's source at which an operand reads it."""
    along, offset, stride = piece.dims[dim], piece.offsets[dim], piece.strides[dim]
    if along < 0:
        return AffineDim((), offset)
    seen = operand.dims[along]
    terms = tuple(Term(term.axis, stride * term.coefficient) for term in seen.terms)
    return AffineDim(terms, offset + stride * seen.offset)


def reads_all(spec: OperatorSpec, operand: Operand) -> bool:
    """Return whether an operator reads every element of an operand's tensor, each at its own place or in a window."""
    axes = [axis for dim in operand.dims for axis in dim.axes]
    if len(set(axes)) < len(axes):
        return False
    return all(_reaches(spec, dim, extent) for dim, extent in zip(operand.dims, operand.shape, strict=True))


def _reaches(spec: OperatorSpec, dim: AffineDim, extent: int) -> bool:
    """Return whether a dim takes every index of an extent."""
    reach = 1
    for term in sorted(dim.terms, key=lambda term: term.coefficient):
        if term.coefficient > reach:
            return False
        reach += term.coefficient * (spec.axes[term.axis].extent - 1)
    return dim.offset <= 0 and dim.offset + reach >= extent


@dataclass(slots=True)
class LayoutOperators:
    """The operators that layouts of a graph's values name; an operand is as it reads the value itself."""

    graph: Graph
    _specs: dict[str, OperatorSpec] = field(init=False)
    _found: dict[tuple[str, int, str], OperatorSpec | None] = field(
        default_factory=dict[tuple[str, int, str], OperatorSpec | None]
    )

    def __post_init__(self) -> None:
        """Index the graph."""
        self._specs = {spec.name: spec for spec in self.graph.operators}

    def of(self, layout: ValueLayout) -> OperatorSpec | None:
        """Return the operator that a layout names; None for a linear one, or where there is no such operand."""
        if not layout.operator:
            return None
        key = layout.operator, layout.operand, layout.value
        if key not in self._found:
            self._found[key] = self._named(layout)
        return self._found[key]

    def _named(self, layout: ValueLayout) -> OperatorSpec | None:
        spec = self._specs.get(layout.operator)
        if spec is None or not 0 <= layout.operand <= len(spec.operands):
            return None
        if layout.operand == len(spec.operands):
            return spec
        operand = spec.operands[layout.operand]
        seen = operand if operand.name == layout.value else seen_operand(self.graph, operand, layout.value)
        return None if seen is None else with_operand(spec, layout.operand, seen)


def with_operand(spec: OperatorSpec, number: int, operand: Operand) -> OperatorSpec:
    """Return an operator with another operand `number`."""
    if spec.operands[number] is operand:
        return spec
    operands = (*spec.operands[:number], operand, *spec.operands[number + 1 :])
    n_inputs = len(spec.inputs)
    return replace(spec, inputs=operands[:n_inputs], epilogue_inputs=operands[n_inputs:])
