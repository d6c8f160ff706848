"""Models of one or two operators, and files that are wrong on purpose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from bundled.builder import Builder


def mlp() -> Builder:
    """Return two linear layers with a ReLU between."""
    g = Builder("mlp", "float32", seed=10)
    hidden = g.op("Relu", g.linear(g.input("x", 4, 16), "/fc1", 16, 32), name="/Relu")
    g.output("y", g.linear(hidden, "/fc2", 32, 8), 4, 8)
    return g


def conv() -> Builder:
    """Return a padded, strided convolution with bias, batch normalisation and ReLU, then an average pooling."""
    g = Builder("conv", "float32", seed=11)
    x = g.op(
        "Conv",
        g.input("x", 1, 3, 9, 9),
        g.weight("w", 4, 3, 3, 3, scale=0.2),
        name="/Conv",
        pads=[1, 1, 1, 1],
        strides=[2, 2],
    )
    scale, shift, mean = (
        g.weight(n, 4, scale=0.1, offset=o) for n, o in (("scale", 1.0), ("shift", 0.0), ("mean", 0.0))
    )
    variance = g.constant(np.full(4, 0.5, np.float32), "variance")
    x = g.op(
        "Relu", g.op("BatchNormalization", x, scale, shift, mean, variance, name="/BatchNorm"), name="/Relu"
    )
    x = g.op("AveragePool", x, name="/AveragePool", kernel_shape=[2, 2], strides=[1, 1])
    g.output("y", x, 1, 4, 4, 4)
    return g


def depthwise() -> Builder:
    """Return a depthwise convolution, a grouped one's extreme."""
    g = Builder("depthwise", "float32", seed=12)
    x = g.op(
        "Conv",
        g.input("x", 1, 4, 6, 6),
        g.weight("w", 4, 1, 3, 3, scale=0.3),
        name="/Conv",
        group=4,
        pads=[1, 1, 1, 1],
    )
    g.output("y", x, 1, 4, 6, 6)
    return g


def gather() -> Builder:
    """Return two looked-up tables added."""
    g = Builder("gather", "float32", seed=13)
    first = g.op("Gather", g.weight("a", 12, 8, scale=1.0), g.indices("i", 5, below=12), name="/a")
    second = g.op("Gather", g.weight("b", 6, 8, scale=1.0), g.indices("j", 5, below=6), name="/b")
    g.output("y", g.op("Add", first, second, name="/Add"), 5, 8)
    return g


def softmax() -> Builder:
    """Return a softmax over the last dim."""
    g = Builder("softmax", "float32", seed=14)
    g.output("y", g.op("Softmax", g.input("x", 3, 20), name="/Softmax", axis=-1), 3, 20)
    return g


def symbolic() -> Builder:
    """Return a linear layer whose batch is symbolic."""
    g = Builder("symbolic", "float32", seed=15)
    g.output("y", g.linear(g.input("x", "batch", 16), "/fc", 16, 8), "batch", 8)
    return g


def functions() -> Builder:
    """Return operators that ONNX defines by functions: Gelu, RMSNormalization, Attention, GreaterOrEqual."""
    g = Builder("functions", "float32", seed=16, opset=23)
    x = g.input("x", 1, 2, 4, 8)
    x = g.op("RMSNormalization", x, g.weight("scale", 8, scale=0.1, offset=1.0), name="/norm", axis=-1)
    x = g.op("Gelu", g.op("Attention", x, x, x, name="/attention"), name="/gelu")
    positive = g.op("GreaterOrEqual", x, g.scalar(0.0), name="/ge")
    g.output("y", g.op("Where", positive, x, g.op("Neg", x, name="/neg"), name="/where"), 1, 2, 4, 8)
    return g


def local_function() -> onnx.ModelProto:
    """Return a model that calls a function of its own."""
    g = Builder("local_function", "float32", seed=17)
    x = g.input("x", 2, 8)
    g.nodes.append(helper.make_node("Halved", [x], ["half"], name="/halved", domain="local"))
    g.output("y", "half", 2, 8)
    graph = helper.make_graph(g.nodes, g.name, g.inputs, g.outputs)
    two = helper.make_node("Constant", [], ["two"], value_float=2.0)
    body = helper.make_function(
        "local",
        "Halved",
        ["a"],
        ["b"],
        [two, helper.make_node("Div", ["a", "two"], ["b"])],
        [helper.make_opsetid("", 18)],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    model = helper.make_model(graph, opset_imports=opsets, functions=[body], producer_name="t10")
    model.ir_version = 10
    checker: Any = onnx.checker
    checker.check_model(model)
    return model


def unsupported() -> Builder:
    """Return a valid model with an operator that cannot be lowered: maxima of regions that are data."""
    g = Builder("unsupported", "float32", seed=18)
    x, regions = g.input("x", 1, 2, 8, 8), g.input("regions", 3, 5)
    g.output("y", g.op("MaxRoiPool", x, regions, name="/regions", pooled_shape=[2, 2]), 3, 2, 2, 2)
    return g


def write_broken(folder: Path, good: bytes) -> None:
    """Write files that are no models: cut in the middle, text, and empty."""
    (folder / "broken_cut.onnx").write_bytes(good[: len(good) // 3])
    (folder / "broken_text.onnx").write_text("this is not a protobuf\n")
    (folder / "broken_empty.onnx").write_bytes(b"")
