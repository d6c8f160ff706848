"""Views whose attributes leave nothing to do, or whose dims are of one element, move what ONNX says they move.

Of each view a grid of its attributes is tried: blocks of 1, one group, axes counted from behind, pads of nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from support.linalg_numpy import run_module

from t10.core.stored import as_stored
from t10.frontend.importer import import_proto
from t10.passes.fuse import Fuse
from t10.passes.read_graph import read_graph

Array = NDArray[Any]
helper: Any = onnx.helper  # some of its functions are typed in part only
SHAPES = ((1, 1, 1, 1), (1, 4, 1, 1), (1, 4, 2, 3), (2, 4, 1, 3), (1, 8, 2, 1))
OPSETS = (14, 18, 23)

Case = tuple[str, Mapping[str, Any], tuple[int, ...], tuple[Array, ...]]


def integers(*values: int) -> Array:
    return np.array(values, np.int64)


def blocks() -> Iterator[Case]:
    for shape in SHAPES:
        for size in (1, 2):
            if shape[1] % size**2 == 0:
                for mode in ("DCR", "CRD"):
                    yield "DepthToSpace", {"blocksize": size, "mode": mode}, shape, ()
            if shape[2] % size == 0 == shape[3] % size:
                yield "SpaceToDepth", {"blocksize": size}, shape, ()


def orders() -> Iterator[Case]:
    for shape in SHAPES:
        for perm in ((0, 1, 2, 3), (0, 2, 1, 3), (3, 2, 1, 0), (1, 0, 3, 2), (0, 3, 1, 2)):
            yield "Transpose", {"perm": perm}, shape, ()
        for axis in range(-4, 5):
            yield "Flatten", {"axis": axis}, shape, ()
        for target in ((-1,), (0, -1), (0, 0, 0, 0), (1, 1, -1), (0, -1, 1)):
            yield "Reshape", {}, shape, (integers(*target),)


def units() -> Iterator[Case]:
    for shape in SHAPES:
        ones = [axis for axis, extent in enumerate(shape) if extent == 1]
        for axis in ones:
            yield "Squeeze", {}, shape, (integers(axis),)
            yield "Squeeze", {}, shape, (integers(axis - 4),)
        for axes in ((0,), (-1,), (4,), (0, -1), (2, 3)):
            yield "Unsqueeze", {}, shape, (integers(*axes),)
        yield "Expand", {}, shape, (integers(1),)
        yield "Expand", {}, shape, (integers(2, 1, 1, 1) if shape[0] == 1 else integers(1, 1),)
        yield "Tile", {}, shape, (integers(1, 1, 1, 1),)
        yield "Tile", {}, shape, (integers(1, 2, 1, 3),)


def parts() -> Iterator[Case]:
    for shape in SHAPES:
        for axis in (0, 1, -1, -3):
            yield "Concat", {"axis": axis}, shape, ()
            yield "Split", {"axis": axis}, shape, (integers(shape[axis]),)
            yield "Gather", {"axis": axis}, shape, (integers(0),)
            yield "Gather", {"axis": axis}, shape, (np.array(-1, np.int64),)
            for start, end, step in (
                (0, 99, 1),
                (-99, 99, 1),
                (0, 1, 1),
                (-1, 99, 1),
                (99, -99, -1),
                (0, 99, 5),
            ):
                yield "Slice", {}, shape, (integers(start), integers(end), integers(axis), integers(step))


def pads() -> Iterator[Case]:
    for shape in SHAPES:
        for mode in ("constant", "edge"):
            yield "Pad", {"mode": mode}, shape, (integers(*[0] * 8),)
            yield "Pad", {"mode": mode}, shape, (integers(0, 0, 0, 1, 0, 0, 0, 0),)
        yield "Pad", {"mode": "reflect"}, shape, (integers(*[0] * 8),)
        for upper in (0, 1):
            yield "Trilu", {"upper": upper}, shape, (np.array(0, np.int64),)


def windows() -> Iterator[Case]:
    for shape in SHAPES:
        channels = shape[1]
        for group in {1, channels}:
            weights = np.arange(channels * (channels // group), dtype=np.float32).reshape(channels, -1, 1, 1)
            yield "Conv", {"group": group, "pads": [0] * 4}, shape, (weights,)
            yield "Conv", {"group": group}, shape, (weights,)
            yield "ConvTranspose", {"group": group, "strides": [2, 1]}, shape, (weights,)
        for operator in ("MaxPool", "AveragePool"):
            yield operator, {"kernel_shape": [1, 1], "pads": [0] * 4}, shape, ()
            yield operator, {"kernel_shape": [1, 1], "strides": [2, 2]}, shape, ()


FAMILIES = {f.__name__: f for f in (blocks, orders, units, parts, pads, windows)}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("family", FAMILIES)
def test_views(family: str, opset: int) -> None:
    """Compare all cases at once, as the outputs of one model."""
    nodes: list[Any] = []
    inputs: dict[str, Array] = {}
    constants: dict[str, Array] = {}
    for i, (operator, attributes, shape, others) in enumerate(FAMILIES[family]()):
        name = "x" + "x".join(map(str, shape))
        inputs[name] = np.random.default_rng(len(inputs)).standard_normal(shape).astype(np.float32)
        names = [f"c{i}_{k}" for k in range(len(others))]
        constants |= dict(zip(names, others, strict=True))
        nodes.append(
            helper.make_node(operator, [name, *names], [f"y{i}"], name=f"{operator}{i}", **attributes)
        )
    outputs = [helper.make_tensor_value_info(node.output[0], onnx.TensorProto.FLOAT, None) for node in nodes]
    graph = helper.make_graph(
        nodes,
        "views",
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, x.shape) for n, x in inputs.items()],
        outputs,
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    reference: Any = ReferenceEvaluator(model)
    due = reference.run(None, inputs)
    imported = import_proto(ModelProto.FromString(model.SerializeToString()), source="m")
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        graph = read_graph(imported.module).graph
        stored = as_stored({**inputs, **imported.weights}, (*graph.inputs, *graph.weights))
        found = run_module(imported.module, stored)
    wrong = [
        f"{node.op_type} {list(node.input)} {[(a.name, helper.get_attribute_value(a)) for a in node.attribute]}"
        for node, expected in zip(nodes, due, strict=True)
        if found[node.output[0]].shape != expected.shape
        or not np.allclose(found[node.output[0]], expected, rtol=1e-5, atol=1e-5)
    ]
    assert wrong == []
