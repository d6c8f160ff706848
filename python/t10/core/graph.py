"""A whole model as values: inputs, weights, operators in execution order, and views that only rename elements.

A view (reshape, slice, transpose, broadcast, concatenation, padding) is never computed: the relayout that brings an
operand to its cores reads straight through it, element by element, and is charged for what it moves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from t10.core.expression import OperatorSpec
from t10.core.orders import Order, inverse, permuted
from t10.errors import T10Error

ViewKind = Literal["reshape", "slice", "transpose", "broadcast", "concat", "pad"]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a weight is made of: weights that the model came with, one behind another along `axis`."""

    axis: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TensorValue:
    """A named tensor that comes from outside: `shape` in elements, element type by its MLIR name.

    `declared` is the type that the model states where that has no sign (`ui8`) and `dtype` the same bits (`i8`). The
    host has its dims in another sequence where there is an `order`: `order[i]` is the host's dim that is dim `i` here.
    `parts`, by the host's dims, is what it makes a weight of. With a `split` (dim, size), `order` numbers that dim of
    the host's as two: blocks of so many, and what is in one. The host first appends `padding` zeros to each dim.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    declared: str = ""
    order: Order = ()
    parts: Parts | None = None
    split: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an order that does not name every dim once, a split of no dim, and padding that is no part of dims."""
        if self.order and sorted(self.order) != list(range(len(self.shape))):
            raise T10Error(
                f"tensor {self.name}: order {list(self.order)} does not name {len(self.shape)} dims once"
            )
        if self.split and not self._is_split:
            raise T10Error(f"tensor {self.name}: split {list(self.split)} is no dim and its last extent")
        if self.padding and not self._is_padded:
            raise T10Error(
                f"tensor {self.name}: padding {list(self.padding)} is no part of {self.padded_shape}"
            )

    @property
    def host_dtype(self) -> str:
        """Return the element type of what the host gives."""
        return self.declared or self.dtype

    @property
    def host_shape(self) -> tuple[int, ...]:
        """Return the shape of what the host gives."""
        shape = self.padded_shape
        return tuple(n - more for n, more in zip(shape, self.padding, strict=True)) if self.padding else shape

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """Return the shape of what the host gives, with zeros behind it."""
        shape = self.split_shape
        if not self.split:
            return shape
        dim = self.split[0]
        return (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :])

    @property
    def split_shape(self) -> tuple[int, ...]:
        """Return the shape of what the host gives, a dim that is split as two."""
        return permuted(self.shape, inverse(self.order)) if self.order else self.shape

    @property
    def _is_padded(self) -> bool:
        shape = self.padded_shape
        return len(shape) == len(self.padding) and all(
            0 <= p < n for p, n in zip(self.padding, shape, strict=True)
        )

    @property
    def _is_split(self) -> bool:
        shape = self.split_shape
        if len(self.split) != 2 or not 0 <= self.split[0] < len(shape) - 1:
            return False
        return shape[self.split[0] + 1] == self.split[1]


@dataclass(frozen=True, slots=True)
class View:
    """A value whose elements are elements of `sources` (or one constant), in another order.

    Parameters by kind: `reshape` none (row-major order is kept); `slice` `offsets` and `strides` per dim; `transpose`
    `permutation` (numpy's convention); `broadcast` `dims` of the result that the source's dims become; `concat`
    `axis`; `pad` `low` per dim and `value` (a constant's spelling), the high side follows from `shape`.
    """

    name: str
    kind: ViewKind
    sources: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    offsets: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    permutation: tuple[int, ...] = ()
    dims: tuple[int, ...] = ()
    axis: int = 0
    low: tuple[int, ...] = ()
    value: str = ""


@dataclass(frozen=True, slots=True)
class GraphOutput:
    """A result of the model: its public name and the value it is; `declared` as of a `TensorValue`."""

    name: str
    value: str
    declared: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """A model. Operators stand in execution order; a view stands after its sources among `views`."""

    name: str
    inputs: tuple[TensorValue, ...]
    weights: tuple[TensorValue, ...]
    operators: tuple[OperatorSpec, ...]
    views: tuple[View, ...]
    outputs: tuple[GraphOutput, ...]
    _sources_by_value: dict[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]], init=False, repr=False, compare=False
    )
    """What `sources_of` found: it is asked for again and again."""

    def __post_init__(self) -> None:
        """Refuse names that are used before their definition, or twice."""
        defined = {v.name for v in (*self.inputs, *self.weights)}
        made = [(op.output.name, tuple(o.name for o in op.operands)) for op in self.operators]
        made += [(view.name, view.sources) for view in self.views]
        names = [name for name, _ in made]
        if len(set(names)) != len(names) or defined & set(names):
            raise T10Error(f"graph {self.name} defines a value twice")
        known = defined | set(names)
        for name, uses in made:
            missing = [use for use in uses if use not in known]
            if missing:
                raise T10Error(f"value {name} reads {missing[0]}, which nothing defines")

    @property
    def shape_by_value(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of every value, in elements."""
        shapes = {v.name: v.shape for v in (*self.inputs, *self.weights, *self.views)}
        shapes |= {op.output.name: op.output.shape for op in self.operators}
        return shapes

    @property
    def signature(self) -> tuple[tuple[TensorValue, ...], tuple[TensorValue, ...]]:
        """Return inputs and outputs with the host's types and shapes; outputs under their public names."""
        dtypes = {v.name: v.dtype for v in (*self.inputs, *self.weights, *self.views)}
        dtypes |= {op.output.name: op.output.dtype for op in self.operators}
        shapes = self.shape_by_value
        outputs = tuple(
            TensorValue(o.name, shapes[o.value], o.declared or dtypes[o.value]) for o in self.outputs
        )
        return tuple(TensorValue(v.name, v.host_shape, v.host_dtype) for v in self.inputs), outputs

    def sources_of(self, value: str) -> tuple[str, ...]:
        """Return the inputs, weights and operator results that a value reads through views, without repeats."""
        known = self._sources_by_value.get(value)
        if known is not None:
            return known
        views = {view.name: view for view in self.views}
        found: dict[str, None] = {}
        stack = [value]
        while stack:
            name = stack.pop()
            view = views.get(name)
            if view is None:
                found[name] = None
            else:
                stack.extend(reversed(view.sources))
        self._sources_by_value[value] = tuple(found)
        return self._sources_by_value[value]
