"""A small detector in the manner of YOLO v8, with its suppression of boxes in the graph, as exporters write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

CLASSES, BINS, SUPPRESSION = 3, 4, "/model.22/NonMaxSuppression"


class _Writer:
    """Nodes and random weights of a graph."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.stored: list[Any] = []

    def op(
        self, kind: str, *inputs: Any, n: int = 1, name: str = "", output: str = "", **options: Any
    ) -> Any:
        """Write a node; arrays among its inputs are stored."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        title = name or f"{kind}_{len(self.nodes)}"
        made = [output or f"{title}.{i}" for i in range(n)]
        self.nodes.append(helper.make_node(kind, names, made, name=title, **options))
        return made[0] if n == 1 else made

    def constant(self, values: Any) -> str:
        name = f"c{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(values, name))
        return name

    def conv(self, x: str, n: int, m: int, kernel: int = 3, stride: int = 1, *, is_last: bool = False) -> str:
        """Write a convolution with SiLU behind it."""
        weights = self.random.standard_normal((m, n, kernel, kernel)) * (2 / (n * kernel**2)) ** 0.5
        bias = self.random.standard_normal(m) * (0.5 if is_last else 0.1)
        pads, strides = [kernel // 2] * 4, [stride] * 2
        y = self.op("Conv", x, weights.astype("f4"), bias.astype("f4"), pads=pads, strides=strides)
        return y if is_last else self.op("Mul", y, self.op("Sigmoid", y))

    def c2f(self, x: str, n: int, m: int) -> str:
        """Write a block of YOLO v8: half of the channels go through a bottleneck, all of them are joined."""
        left, right = self.op("Split", self.conv(x, n, m, 1), n=2, axis=1, num_outputs=2)
        near = self.conv(self.conv(right, m // 2, m // 2), m // 2, m // 2)
        joined = self.op("Concat", left, right, self.op("Add", right, near), axis=1)
        return self.conv(joined, m // 2 * 3, m, 1)

    def reshape(self, x: str, *shape: int) -> str:
        return self.op("Reshape", x, np.array(shape))


def detector(size: int = 32, most: int = 4, seed: int = 0) -> Any:
    """Return a model of an image; `detections` are rows of box, score and class with a data-dependent count."""
    w = _Writer(seed)
    near = w.c2f(w.conv(w.conv("image", 3, 8, stride=2), 8, 16, stride=2), 16, 16)
    far = w.c2f(w.conv(near, 16, 16, stride=2), 16, 16)
    pooled = [far]
    for _ in range(2):
        pooled.append(w.op("MaxPool", pooled[-1], kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1]))
    far = w.conv(w.op("Concat", *pooled, axis=1), 48, 16, 1)
    up = w.op("Resize", far, "", np.array([1, 1, 2, 2], "f4"), mode="nearest", nearest_mode="floor",
              coordinate_transformation_mode="asymmetric")  # fmt: skip
    near = w.c2f(w.op("Concat", up, near, axis=1), 32, 16)
    boxes, scores = _heads(w, [(near, size // 4), (far, size // 8)])
    limits = (np.array([most]), np.array([0.5], "f4"), np.array([0.4], "f4"))
    kept = w.op("NonMaxSuppression", boxes, scores, *limits, name=SUPPRESSION)
    kind, place = (
        w.op("Squeeze", w.op("Slice", kept, np.array([i]), np.array([i + 1]), np.array([1])), np.array([1]))
        for i in (1, 2)
    )
    corners = w.op("Gather", w.op("Squeeze", boxes, np.array([0])), place, axis=0)
    of_each = w.op("Transpose", w.op("Squeeze", scores, np.array([0])), perm=[1, 0])
    rows = w.op("Concat", *(w.op("Unsqueeze", each, np.array([1])) for each in (place, kind)), axis=1)
    score = w.op("Unsqueeze", w.op("GatherND", of_each, rows), np.array([1]))
    number = w.op("Unsqueeze", w.op("Cast", kind, to=TensorProto.FLOAT), np.array([1]))
    w.op("Concat", corners, score, number, axis=1, output="detections")
    graph = helper.make_graph(
        w.nodes,
        "detector",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 3, size, size))],
        [helper.make_tensor_value_info("detections", TensorProto.FLOAT, ("n", 6))],
        w.stored,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _heads(w: _Writer, levels: Sequence[tuple[str, int]]) -> tuple[str, str]:
    """Write boxes [1, n, 4] as distributions over distances, and scores [1, classes, n] of all levels."""
    distances = [w.reshape(w.conv(x, 16, 4 * BINS, 1, is_last=True), 1, 4 * BINS, -1) for x, _ in levels]
    scores = [w.reshape(w.conv(x, 16, CLASSES, 1, is_last=True), 1, CLASSES, -1) for x, _ in levels]
    grids = [np.stack(np.meshgrid(*[np.arange(n) + 0.5] * 2)).reshape(2, -1) for _, n in levels]
    strides = np.concatenate([np.full(n * n, 4.0 * 2**i) for i, (_, n) in enumerate(levels)])
    bins = w.reshape(w.op("Concat", *distances, axis=2), 1, 4, BINS, strides.size)
    shares = w.op("Softmax", w.op("Transpose", bins, perm=[0, 2, 1, 3]), axis=1)
    level = np.arange(BINS, dtype="f4").reshape(1, BINS, 1, 1)
    sides = w.reshape(w.op("Conv", shares, level), 1, 4, strides.size)
    low, high = w.op("Split", sides, n=2, axis=1, num_outputs=2)
    at = np.concatenate(grids, 1)[None].astype("f4")
    corners = w.op("Concat", w.op("Sub", at, low), w.op("Add", high, at), axis=1)
    boxes = w.op("Transpose", w.op("Mul", corners, strides.astype("f4")), perm=[0, 2, 1])
    return boxes, w.op("Sigmoid", w.op("Concat", *scores, axis=2))
