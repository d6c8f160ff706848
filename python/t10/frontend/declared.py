"""Shapes, axes and counts that the declared shapes of a model determine, made constants.

A model may compute the shape of a Reshape when it runs and yet declare the shape of what comes out: then only one value
can be meant. Without this the operator would be refused for an input that is not constant.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from t10.frontend.constant_inputs import constant_inputs
from t10.frontend.reading import reading
from t10.frontend.unsupported import STANDARD_DOMAINS

Shape = tuple[int, ...]


def use_declared_shapes(model: Any) -> None:
    """Replace, in place, inputs of nodes that are not constant by what declared shapes leave no choice for.

    Called while the graph still has the shapes that its file states.
    """
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    constants |= {name for node in graph.node if node.op_type == "Constant" for name in node.output}
    shapes = _declared(graph)
    for number, node in enumerate(graph.node):
        rule = _RULES.get(node.op_type) if node.domain in STANDARD_DOMAINS else None
        if rule is None or all(name in constants for name in constant_inputs(node)):
            continue
        given = [shapes.get(name) for name in node.input]
        made = [shapes.get(name) for name in node.output]
        if given[0] is None or any(shape is None for shape in made):
            continue
        options = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        with reading(node):
            found = rule(options, given[0], [shape for shape in made if shape is not None])
        if found is not None:
            place, values = found
            if node.op_type in ("Squeeze", "Unsqueeze"):
                node.op_type = "Reshape"
            name = f"t10.declared.{number}.{place}"
            graph.initializer.append(numpy_helper.from_array(np.array(values, np.int64), name))
            node.input[place] = name


def _declared(graph: Any) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            shapes[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    return shapes


Found = tuple[int, Any] | None
"""The place of an input among a node's inputs, and its values."""
Rule = Callable[[dict[str, Any], Shape, list[Shape]], Found]


def _reshape(options: dict[str, Any], given: Shape, made: list[Shape]) -> Found:
    del options, given
    return (1, made[0]) if made[0] and all(made[0]) else None


def _tile(options: dict[str, Any], given: Shape, made: list[Shape]) -> Found:
    del options
    if len(given) != len(made[0]) or not all(given):
        return None
    return 1, [after // before for before, after in zip(given, made[0], strict=True)]


def _split(options: dict[str, Any], given: Shape, made: list[Shape]) -> Found:
    axis = int(options.get("axis", 0))
    return (1, [shape[axis] for shape in made]) if -len(given) <= axis < len(given) else None


def _last_or(options: dict[str, Any], given: Shape, made: list[Shape]) -> Found:
    """Return the extent of the axis that a TopK or OneHot makes."""
    del given
    axis = int(options.get("axis", -1))
    return (1, [made[0][axis]]) if -len(made[0]) <= axis < len(made[0]) else None


def _scalar_depth(options: dict[str, Any], given: Shape, made: list[Shape]) -> Found:
    found = _last_or(options, given, made)
    return None if found is None else (1, found[1][0])


def _crop(options: dict[str, Any], given: Shape, made: list[Shape]) -> Found:
    axes = [int(axis) for axis in options.get("axes", range(len(given)))]
    return 1, [made[0][axis] for axis in axes]


def _whole(options: dict[str, Any], given: Shape, made: list[Shape]) -> Found:
    del options, given
    return 0, made[0]


def _unpool(options: dict[str, Any], given: Shape, made: list[Shape]) -> Found:
    del options, given
    return 2, made[0]


def _reduced(options: dict[str, Any], given: Shape, made: list[Shape]) -> Found:
    """Return the axes that went; of extent 1 they make no difference, as long as there are others."""
    wide = [axis for axis, extent in enumerate(given) if extent != 1]
    if int(options.get("keepdims", 1)):
        if len(given) != len(made[0]):
            return None
        axes = [axis for axis in wide if made[0][axis] == 1]
        return (1, axes) if axes else None
    n_gone = len(given) - len(made[0])
    fitting = [
        gone
        for gone in combinations(range(len(given)), n_gone)
        if tuple(extent for axis, extent in enumerate(given) if axis not in gone) == made[0]
    ]
    meanings = {tuple(axis for axis in gone if axis in wide) for gone in fitting}
    return (1, fitting[0]) if n_gone and len(meanings) == 1 and next(iter(meanings)) else None


_RULES: dict[str, Rule] = {
    "CenterCropPad": _crop,
    "ConstantOfShape": _whole,
    "Expand": _reshape,
    "MaxUnpool": _unpool,
    "OneHot": _scalar_depth,
    "Reshape": _reshape,
    "Split": _split,
    "Squeeze": _reshape,
    "Tile": _tile,
    "TopK": _last_or,
    "Unsqueeze": _reshape,
    **{
        f"Reduce{word}": _reduced
        for word in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    },
}
