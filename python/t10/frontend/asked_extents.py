"""What asks for the extent of a bounded result: the bound where it shapes other results, else the count of valid rows.

    n = Size(v)                              n = Size(v)                     the bound
    y = Expand(one, Reshape(n, [1]))         y = Expand(one, Reshape(n, [1]))
    m = Div(total, Cast(n))                  m = Div(total, n.counted)       n.counted = Cast(slope * count + offset)

Integers that are computed from such an extent are tried with three of them: they are linear in it, or refused where
they are more than a shape. What an extent alone shapes (Expand, ConstantOfShape, Range) has valid rows as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from t10.errors import UnsupportedOpError
from t10.frontend.fold import run_node
from t10.frontend.followed_rows import Follower
from t10.frontend.names import fresh, value_names
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.rewrites.bounded import Rows
from t10.frontend.unsupported import STANDARD_DOMAINS, node_location, title_of

_TRIED = (7919, 7927, 8011)
_SHAPES: dict[str, frozenset[int]] = {
    **dict.fromkeys(("ConstantOfShape",), frozenset({0})),
    **dict.fromkeys(("Expand", "OneHot", "Pad", "Reshape", "Split", "Squeeze"), frozenset({1})),
    **dict.fromkeys(("CenterCropPad", "Tile", "TopK", "Unsqueeze", "Upsample"), frozenset({1})),
    "Range": frozenset({0, 1, 2}),
    "Resize": frozenset({1, 2, 3}),
    "Slice": frozenset({1, 2, 3, 4}),
}
"""By operator, the inputs that say what extents its result has."""
_KEPT = ("Reshape", "Squeeze", "Unsqueeze")
"""Operators that have the rows of their first operand, which are followed."""
_LINEAR = frozenset(
    {
        *(
            "Add",
            "Cast",
            "Concat",
            "Flatten",
            "Gather",
            "Identity",
            "Mul",
            "Reshape",
            "Slice",
            "Squeeze",
            "Sub",
        ),
        *("Transpose", "Unsqueeze"),
    }
)
"""Operators that keep integers linear, or do not for all that is tried."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """Integers that depend on extents of values, (name, axis) of each: what they are for the extents that are tried."""

    of: frozenset[tuple[str, int]]
    tried: tuple[Array, ...] | None
    """None if they cannot be told, or are not linear."""
    asks: Any
    """The node that asks for the extent."""

    def depends(self) -> Array | None:
        """Return which elements depend on the extents."""
        return None if self.tried is None else self.tried[0] != self.tried[1]


@dataclass(slots=True)
class Extents:
    """What depends on the extents of bounded results in a model whose shapes are inferred, before it has bounds."""

    model: Any
    source: str
    bounded: frozenset[str] = frozenset()
    """Names of operators, or of their results, that have a bound: a TopK of a computed k that may be such an extent."""
    known: dict[str, Array] = field(default_factory=dict[str, Array])
    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])
    shaping: set[str] = field(default_factory=set[str])
    counted: dict[str, tuple[str, Asked]] = field(default_factory=dict[str, "tuple[str, Asked]"])
    """By value, that which the model computes with, and what it is."""
    fixed: dict[str, Array] = field(default_factory=dict[str, Array])
    """Constants that are inputs until rows are followed, so that nothing is folded that they shape."""
    rows: dict[str, tuple[int, Asked]] = field(default_factory=dict[str, "tuple[int, Asked]"])
    """By result that an extent shapes, the axis of its rows."""
    taken: set[str] = field(default_factory=set[str])

    def separate(self) -> None:
        """Let what computes with an extent read a value of its own, an input of the graph until `settle`."""
        graph = self.model.graph
        self.taken = set(value_names(graph))
        self.known = {t.name: numpy_helper.to_array(t) for t in graph.initializer if np.prod(t.dims) <= 4096}
        dims = dict(_dims(graph))
        self._find(dims)
        if not self.asked:
            return
        self._find_shaping()
        nodes: list[Any] = []
        for node in graph.node:
            nodes.extend(self._separated(node, dims))
        for value in graph.output:
            if value.name in self.asked and self._counted(value.name, None) != value.name:
                nodes.append(self._output(value.name, nodes))
        replace_all(graph.node, nodes)

    def _find(self, dims: Mapping[str, tuple[int | None, ...]]) -> None:
        """Find what is computed of extents and constants alone."""
        for node in self.model.graph.node:
            if node.domain not in STANDARD_DOMAINS:
                continue
            if node.op_type in ("Shape", "Size"):
                extents = dims.get(node.input[0])
                if extents is None or None in extents:
                    self.asked[node.output[0]] = self._asked(node, extents)
                continue
            read = [self.asked[name] for name in node.input if name in self.asked]
            is_shaped = any(node.input[i] in self.asked for i in self._shape_places(node))
            names = [name for name in node.input if name]
            if read and not is_shaped and all(name in self.asked or name in self.known for name in names):
                self._compute(node, read)

    def _shape_places(self, node: Any) -> Iterator[int]:
        is_bounded = node.op_type == "TopK" and not self.bounded.isdisjoint((node.name, *node.output))
        is_known = node.domain in STANDARD_DOMAINS and not is_bounded
        places = _SHAPES.get(node.op_type, frozenset[int]()) if is_known else ()
        return (i for i in sorted(places) if i < len(node.input))

    def _asked(self, node: Any, extents: tuple[int | None, ...] | None) -> Asked:
        unknown = [] if extents is None else [i for i, extent in enumerate(extents) if extent is None]
        if extents is None or len(unknown) != 1:
            return Asked(frozenset({(node.input[0], -1)}), None, node)
        where = {attribute.name: attribute.i for attribute in node.attribute}
        found: list[Array] = []
        for tried in _TRIED:
            shape = np.array([tried if extent is None else extent for extent in extents], np.int64)
            part = shape[where.get("start", 0) : where.get("end", len(shape))]
            found.append(np.array(np.prod(shape)) if node.op_type == "Size" else part)
        return Asked(frozenset({(node.input[0], unknown[0])}), tuple(found), node)

    def _compute(self, node: Any, read: list[Asked]) -> None:
        """Find what a node makes of extents; what is the same for all of them does not depend on them."""
        of, asks = frozenset[tuple[str, int]]().union(*(each.of for each in read)), read[0].asks
        runs: list[dict[str, Array]] = []
        for i in range(len(_TRIED)):
            values = {n: each.tried[i] for n in node.input if (each := self.asked.get(n)) and each.tried}
            inputs = {**self.known, **values}
            made = None
            if all(name in inputs for name in node.input if name):
                made = run_node(self.model, node, {name: inputs[name] for name in node.input if name})
            runs.append(made or {})
        for name in node.output:
            tried = [run[name] for run in runs if name in run]
            is_told = len(tried) == len(_TRIED) and len({each.shape for each in tried}) == 1
            self.asked[name] = Asked(of, tuple(tried) if is_told else None, asks)

    def _find_shaping(self) -> None:
        """Find the values that only say what extents results have."""
        left: set[str] = {value.name for value in self.model.graph.output}
        for node in reversed(self.model.graph.node):
            is_computed = any(name in self.asked for name in node.output)
            is_shape = is_computed and not left.intersection(node.output)
            places = set(self._shape_places(node))
            left |= {name for i, name in enumerate(node.input) if not is_shape and i not in places}
        self.shaping = self.asked.keys() - left

    def _separated(self, node: Any, dims: Mapping[str, tuple[int | None, ...]]) -> list[Any]:
        """Return what takes the place of a node that reads what depends on an extent."""
        places = [i for i, name in enumerate(node.input) if name in self.asked]
        is_root = node.op_type in ("Shape", "Size")
        is_closed = all(not name or name in self.asked or name in self.known for name in node.input)
        if not is_closed and not is_root:
            self._forget(node)
        if not places:
            return [node]
        of_shape = [i for i in places if i in self._shape_places(node)]
        if of_shape:
            self._take(node, [i for i in places if i not in of_shape])
            return self._shaped(node, of_shape, dims)
        is_computed = all(name in self.asked for name in node.output)
        if not is_computed or not (self._is_linear(node) or self.shaping.issuperset(node.output)):
            self._take(node, places)
            self._forget(node)
        return [node]

    def _forget(self, node: Any) -> None:
        """Take what a node makes for a value like others: it is computed with the count."""
        for name in node.output:
            self.asked.pop(name, None)

    def _is_linear(self, node: Any) -> bool:
        """Return whether what a node makes is linear in the extents."""
        return node.op_type in _LINEAR and all(
            (made := self.asked[name]).tried is not None and _line(made.tried) is not None
            for name in node.output
        )

    def _take(self, node: Any, places: list[int]) -> None:
        """Let a node read the count at some places."""
        for place in places:
            node.input[place] = self._counted(node.input[place], node)

    def _counted(self, name: str, reader: Any) -> str:
        asked = self.asked[name]
        depends = asked.depends()
        if depends is not None and not depends.any():
            return name
        if name not in self.counted:
            if asked.tried is None or _line(asked.tried) is None:
                what = f"{reader.op_type} {title_of(reader)!r}" if reader is not None else "an output"
                self._refuse(
                    asked.asks, f"{what} computes with what {asked.asks.op_type} says of a bounded result"
                )
            made = fresh(f"{name}.counted", self.taken)
            self.counted[name] = made, asked
            self._input(made, asked.tried[0])
        return self.counted[name][0]

    def _output(self, name: str, nodes: list[Any]) -> Any:
        """Return the node that makes an output of a count; what made it gets another name."""
        counted, inner = self._counted(name, None), fresh(f"{name}.extent", self.taken)
        for node in nodes:
            for names in (node.input, node.output):
                for i, each in enumerate(names):
                    if each == name:
                        names[i] = inner
        return onnx.helper.make_node("Identity", [counted], [name], name=name)

    def _shaped(self, node: Any, places: list[int], dims: Mapping[str, tuple[int | None, ...]]) -> list[Any]:
        """Return nodes for one that an extent shapes: not folded, and with rows that are valid."""
        if node.op_type in _KEPT:
            return [node]
        found = {i: self.asked[node.input[i]] for i in places}
        depends = {i: each.depends() for i, each in found.items()}
        if all(each is not None and not each.any() for each in depends.values()):
            return [node]
        axis = self._axis(node, found)
        if axis is None:
            asked = next(iter(found.values()))
            self._refuse(
                asked.asks, f"{node.op_type} {title_of(node)!r} makes rows of what {asked.asks.op_type} says"
            )
        out, make = node.output[0], onnx.helper.make_node
        data = dims.get(node.input[0]) if node.op_type == "Expand" else ()
        if data is None:
            self._refuse(node, f"{node.op_type} reads a value of unknown rank")
        shape_rank = len(found[1].tried[0]) if node.op_type == "Expand" and found[1].tried else 0
        self.rows[out] = (axis + max(0, len(data) - shape_rank), next(iter(found.values())))
        if node.op_type == "Range":
            places_made = fresh(f"{out}.places", self.taken)
            node.output[0] = places_made
            zero = self._fixed(np.zeros((), self.known[node.input[0]].dtype), out)
            return [node, make("Add", [places_made, zero], [out], name=title_of(node))]
        if node.op_type == "ConstantOfShape":
            value = next((numpy_helper.to_array(a.t) for a in node.attribute if a.name == "value"), None)
            fill = self._fixed(np.zeros((), np.float32) if value is None else value.reshape(()), out)
            return [make("Expand", [fill, node.input[0]], [out], name=title_of(node))]
        if node.input[0] in self.known:
            node.input[0] = self._fixed(self.known[node.input[0]], out)
        return [node]

    def _axis(self, node: Any, found: Mapping[int, Asked]) -> int | None:
        """Return the axis whose extent is exactly what was asked for, None for another form."""
        if node.op_type == "Range":
            first, step = (self.known.get(node.input[i]) for i in (0, 2))
            end = found.get(1)
            is_plain = first is not None and step is not None and not first.any() and bool((step == 1).all())
            return 0 if is_plain and end is not None and self._is_extent(end, ()) else None
        asked = found.get(0 if node.op_type == "ConstantOfShape" else 1)
        depends = None if asked is None else asked.depends()
        if node.op_type not in ("ConstantOfShape", "Expand") or asked is None or depends is None:
            return None
        places = np.flatnonzero(depends)
        return int(places[0]) if len(places) == 1 and self._is_extent(asked, places[0]) else None

    @staticmethod
    def _is_extent(asked: Asked, place: Any) -> bool:
        """Return whether an element is the extent itself."""
        return asked.tried is not None and all(
            each[place] == n for each, n in zip(asked.tried, _TRIED, strict=True)
        )

    def _fixed(self, value: Array, stem: str) -> str:
        name = fresh(f"{stem}.fixed", self.taken)
        self.fixed[name] = value
        self._input(name, value)
        return name

    def _input(self, name: str, value: Array) -> None:
        kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
        self.model.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, value.shape))

    def rows_of(self, name: str, follower: Follower) -> Rows | None:
        """Return the rows of a result that an extent shapes, None for others and for those that have no bound."""
        if name not in self.rows:
            return None
        axis, asked = self.rows[name]
        found = self._found(asked, follower)
        return None if found is None else replace(found, axis=axis)

    def settle(self, graph: Any, follower: Follower, nodes: list[Any]) -> list[Any]:
        """Return nodes by which the values that were separated are counts, before those that read them."""
        own = {*self.fixed, *(made for made, _ in self.counted.values())}
        replace_all(graph.input, [value for value in graph.input if value.name not in own])
        graph.initializer.extend(numpy_helper.from_array(each, name) for name, each in self.fixed.items())
        for made, asked in self.counted.values():
            found = self._found(asked, follower)
            assert asked.tried is not None
            line = _line(asked.tried)
            if found is None or line is None:  # a result without a bound, which is refused as that
                graph.initializer.append(numpy_helper.from_array(asked.tried[0], made))
                continue
            first = next(i for i, node in enumerate(nodes) if made in node.input)
            nodes[first:first] = _of_count(graph, made, found.count, line, asked.tried[0].dtype)
        return nodes

    def _found(self, asked: Asked, follower: Follower) -> Rows | None:
        """Return the rows whose extent is asked for, None if they have no bound."""
        rows = follower.rows
        there = [(rows[name], axis) for name, axis in sorted(asked.of) if name in rows]
        if not there and any(0 in follower.shapes.get(name, (0,)) for name, _ in asked.of):
            return None
        is_one = len({each.valid for each, _ in there}) == 1 and len(there) == len(asked.of)
        if not is_one or any(each.axis != axis for each, axis in there):
            self._refuse(asked.asks, f"{asked.asks.op_type} says extents of several bounded results")
        return there[0][0]

    def _refuse(self, node: Any, message: str) -> NoReturn:
        raise UnsupportedOpError(
            f"{message} (expected extents that shape other results, or numbers that are linear in a count)",
            operator=title_of(node),
            location=node_location(node, self.source),
            hint="end the model before it, and compute it on the host from the rows that the count says",
        )


def _dims(graph: Any) -> Iterator[tuple[str, tuple[int | None, ...]]]:
    """Yield the extents of values of known rank, None for those that are not known."""
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.HasField("shape"):
            extents = (dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim)
            yield value.name, tuple(extents)
    for tensor in graph.initializer:
        yield tensor.name, tuple(tensor.dims)


def _line(tried: tuple[Array, ...]) -> tuple[Array, Array] | None:
    """Return slopes and offsets of numbers for the extents that were tried; None if they are not linear."""
    if tried[0].dtype.kind not in "if":
        return None
    a, b, c = (each.astype(np.int64) for each in tried)
    slope = (b - a) // (_TRIED[1] - _TRIED[0])
    offset = a - slope * _TRIED[0]
    if any((slope * n + offset != each).any() for n, each in zip(_TRIED, (a, b, c), strict=True)):
        return None
    return np.asarray(slope), np.asarray(offset)


def _of_count(graph: Any, made: str, count: str, line: tuple[Array, Array], dtype: Any) -> list[Any]:
    """Return nodes for slope * count + offset."""
    make, kind = onnx.helper.make_node, onnx.helper.np_dtype_to_tensor_dtype(dtype)
    for word, values in zip(("slope", "offset"), line, strict=True):
        graph.initializer.append(numpy_helper.from_array(values.astype(dtype), f"{made}.{word}"))
    return [
        make("Cast", [count], [f"{made}.count"], name=f"{made}.count", to=kind),
        make("Mul", [f"{made}.count", f"{made}.slope"], [f"{made}.product"], name=f"{made}.product"),
        make("Add", [f"{made}.product", f"{made}.offset"], [made], name=made),
    ]
