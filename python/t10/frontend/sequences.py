"""Sequences whose length and places are known before the model runs, and optionals: their tensors, named directly.

    SequenceInsert(SequenceInsert(SequenceEmpty(), a), b)   is the list a, b
    SequenceAt(list, 1)                                     is b
    ConcatFromSequence(list, axis, new_axis)                is a Concat
    OptionalGetElement(Optional(a))                         is a
    SequenceMap(list)                                       is its body, written for every tensor

Exporters write lists so: what a loop collects, what a split makes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from t10.frontend.protobuf_fields import replace_all
from t10.frontend.read_names import names_read_by
from t10.frontend.reading import reading
from t10.frontend.rewrites.apply import facts_of
from t10.frontend.rewrites.site import Site
from t10.frontend.rewrites.subgraphs import write_graph
from t10.frontend.unsupported import STANDARD_DOMAINS

_LISTS = frozenset(
    {"SequenceEmpty", "SequenceConstruct", "SequenceInsert", "SequenceErase", "SplitToSequence"}
)
_OPTIONAL = "Optional"
_READERS = frozenset(
    {"SequenceAt", "SequenceLength", "ConcatFromSequence", "OptionalGetElement", "OptionalHasElement"}
)

MOST_PARTS = 20_000
"""What would be split into more tensors stays as it is, and is refused by name."""

_AXES_ARE_INPUTS = 13

_make: Any = onnx.helper.make_node


def expand_sequences(model: Any) -> bool:
    """Replace, in place, what reads lists of known tensors by what reads the tensors; return whether there was any.

    Lists that nothing reads then are dropped; others stay. Called on a model with inferred shapes and folded constants.
    """
    graph = model.graph
    if not any(node.op_type in (*_LISTS, _OPTIONAL) for node in graph.node):
        return False
    opset = next((entry.version for entry in model.opset_import if entry.domain in STANDARD_DOMAINS), 1)
    lists = _Lists(model, opset)
    for node in graph.node:
        with reading(node):
            lists.take(node)
    nodes, has_dropped = _without_unread_lists(lists.nodes, lists.parts, graph)
    if not lists.has_changed and not has_dropped:
        return False
    replace_all(graph.node, nodes)
    return True


@dataclass(slots=True)
class _Lists:
    """The nodes so far, those that read lists replaced; `parts` has the tensors of every known list.

    That of an optional is what it holds, a tensor or a list, or nothing.
    """

    model: Any
    opset: int
    nodes: list[Any] = field(default_factory=list[Any])
    parts: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    graph: Any = field(init=False)
    constants: dict[str, Any] = field(init=False)
    made: set[str] = field(init=False)
    has_changed: bool = False

    def __post_init__(self) -> None:
        self.graph = self.model.graph
        self.constants = {tensor.name: tensor for tensor in self.graph.initializer}
        self.made = {name for node in self.graph.node for name in node.output}

    def take(self, node: Any) -> None:
        """Append a node or what replaces it."""
        for each in self._mapped(node) if node.op_type == "SequenceMap" else [node]:
            self._take(each)

    def _take(self, node: Any) -> None:
        is_reader = node.domain in STANDARD_DOMAINS and node.op_type in _READERS and len(node.input)
        if is_reader and node.input[0] in self.parts:
            written = self._read(node, self.parts[node.input[0]])
            self.has_changed = self.has_changed or written is not None
            if written is None or node.op_type != "OptionalGetElement":
                self.nodes.extend([node] if written is None else written)
                return
            node = written[0]  # of what may be a list
        self.nodes.append(node)
        if node.domain not in STANDARD_DOMAINS:
            return
        if node.op_type in (*_LISTS, _OPTIONAL) or (
            node.op_type == "Identity" and node.input[0] in self.parts
        ):
            made = self._listed(node)
            if made is not None:
                self.parts[node.output[0]] = made

    def _mapped(self, node: Any) -> list[Any]:
        """Return the body of a SequenceMap for every tensor of its lists, and the lists of what it makes."""
        body = next((each.g for each in node.attribute if each.name == "body"), None)
        first = self.parts.get(node.input[0]) if node.domain in STANDARD_DOMAINS and node.input else None
        if body is None or first is None or len(first) * max(1, len(body.node)) > MOST_PARTS:
            return [node]
        lists = {value.name for value in self.graph.value_info if value.type.HasField("sequence_type")}
        if any(name in lists - set(self.parts) for name in node.input):
            return [node]
        if any(len(self.parts.get(name, first)) < len(first) for name in node.input):
            return [node]
        site = Site(node, self.graph, facts_of(self.model))
        made: list[list[str]] = []
        for i in range(len(first)):
            given = [self.parts[name][i] if name in self.parts else name for name in node.input]
            made.append(write_graph(site, body, dict(zip((v.name for v in body.input), given, strict=True))))
        self.has_changed = True
        rows = zip(*made, strict=True) if made else (() for _ in node.output)
        for name, row in zip(node.output, rows, strict=True):
            site.nodes.append(_make("SequenceConstruct" if row else "SequenceEmpty", list(row), [name]))
        return site.nodes

    def _listed(self, node: Any) -> tuple[str, ...] | None:
        """Return the tensors of the list that a node makes, None where they are not known."""
        if node.op_type == "SequenceEmpty":
            return ()
        if node.op_type in ("SequenceConstruct", _OPTIONAL):
            return tuple(node.input)
        if node.op_type == "SplitToSequence":
            return self._split(node)
        before = self.parts.get(node.input[0])
        if before is None or node.op_type == "Identity":
            return before
        inserted = node.op_type == "SequenceInsert"
        place = self._place(
            node, 2 if inserted else 1, len(before), len(before) if inserted else len(before) - 1
        )
        if place is None:
            return None
        return (*before[:place], node.input[1], *before[place:]) if inserted else _without(before, place)

    def _place(self, node: Any, at: int, n: int, default: int) -> int | None:
        """Return the place that an input of a node says, counted from 0; None where it is not constant or not there."""
        if len(node.input) <= at or not node.input[at]:
            return default
        value = self._constant(node.input[at])
        if value is None:
            return None
        place = int(value.reshape(()))
        place += n if place < 0 else 0
        return place if 0 <= place <= n else None

    def _constant(self, name: str) -> NDArray[Any] | None:
        tensor = self.constants.get(name)
        return None if tensor is None else numpy_helper.to_array(tensor)

    def _split(self, node: Any) -> tuple[str, ...] | None:
        """Write the tensors of a SplitToSequence and return them."""
        options = _options(node)
        shape = _shape(self.graph, node.input[0])
        if shape is None:
            return None
        axis = int(options.get("axis", 0)) % len(shape)
        sizes, keeps = np.ones(shape[axis], np.int64), bool(options.get("keepdims", 1))
        if len(node.input) > 1 and node.input[1]:
            given = self._constant(node.input[1])
            if given is None:
                return None
            sizes, keeps = given if given.ndim else _even(shape[axis], int(given)), True
        if len(sizes) > MOST_PARTS or (sizes < 1).any():
            return None
        stem = node.output[0]
        names = tuple(f"{stem}.part.{i}" for i in range(len(sizes)))
        if names[0] in self.made:  # a list that something else reads is met again
            return names
        for i, (name, end) in enumerate(zip(names, np.cumsum(sizes), strict=True)):
            if keeps:
                bounds = [np.array([value]) for value in (end - sizes[i], end, axis)]
                words = zip(("start", "end", "axis"), bounds, strict=True)
                self.nodes.append(
                    _make(
                        "Slice", [node.input[0], *(self._written(f"{name}.{w}", v) for w, v in words)], [name]
                    )
                )
            else:
                place = self._written(f"{name}.place", np.array(i))
                self.nodes.append(_make("Gather", [node.input[0], place], [name], axis=axis))
        return names

    def _read(self, node: Any, parts: tuple[str, ...]) -> list[Any] | None:
        """Return what takes the place of a node that reads a known list."""
        output = node.output[0]
        if node.op_type == "OptionalGetElement":
            return [_make("Identity", list(parts), [output])] if parts else None
        if node.op_type == "OptionalHasElement":
            return [_make("Identity", [self._written(f"{output}.held", np.array(bool(parts)))], [output])]
        if node.op_type == "SequenceLength":
            return [_make("Identity", [self._written(f"{output}.length", np.array(len(parts)))], [output])]
        if node.op_type == "SequenceAt":
            place = self._place(node, 1, len(parts), 0)
            return (
                None
                if place is None or place >= len(parts)
                else [_make("Identity", [parts[place]], [output])]
            )
        options = _options(node)
        if not parts:
            return None
        axis = int(options["axis"])
        if not options.get("new_axis", 0):
            return [_make("Concat", list(parts), [output], axis=axis)]
        nodes = [self._unsqueezed(part, f"{output}.wide.{i}", axis) for i, part in enumerate(parts)]
        return [*nodes, _make("Concat", [each.output[0] for each in nodes], [output], axis=axis)]

    def _unsqueezed(self, x: str, output: str, axis: int) -> Any:
        """Return an Unsqueeze, whose axes are an input from opset 13 on and an attribute before."""
        if self.opset < _AXES_ARE_INPUTS:
            return _make("Unsqueeze", [x], [output], axes=[axis])
        return _make("Unsqueeze", [x, self._written(f"{output}.axis", np.array([axis]))], [output])

    def _written(self, name: str, values: NDArray[Any]) -> str:
        if name not in self.constants:
            tensor = numpy_helper.from_array(
                values if values.dtype == np.bool_ else values.astype(np.int64), name
            )
            self.graph.initializer.append(tensor)
            self.constants[name] = tensor
        return name


def _without(parts: tuple[str, ...], place: int) -> tuple[str, ...] | None:
    return (*parts[:place], *parts[place + 1 :]) if 0 <= place < len(parts) else None


def _even(extent: int, size: int) -> NDArray[Any]:
    """Return the sizes of pieces of one size, the last of them smaller where it does not divide the extent."""
    return np.array([min(size, extent - start) for start in range(0, extent, size)], np.int64)


def _options(node: Any) -> dict[str, Any]:
    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}


def _shape(graph: Any, name: str) -> tuple[int, ...] | None:
    for value in (*graph.value_info, *graph.input, *graph.initializer):
        if value.name != name:
            continue
        if isinstance(value, onnx.TensorProto):
            return tuple(value.dims)
        kind = value.type.tensor_type
        dims = tuple(dim.dim_value for dim in kind.shape.dim)
        return dims if dims and all(dims) else None
    return None


def _without_unread_lists(nodes: list[Any], parts: dict[str, Any], graph: Any) -> tuple[list[Any], bool]:
    """Return the nodes without those that make a known list that nothing reads any more, and whether there were any."""
    read = {value.name for value in graph.output}
    kept: list[Any] = []
    for node in reversed(nodes):
        if node.output[0] in parts and node.output[0] not in read:
            continue
        kept.append(node)
        read |= names_read_by([node])
    return kept[::-1], len(kept) < len(nodes)
