"""`--bound NAME=N`: results of data-dependent length get N rows, and the model an output that counts the valid ones.

What is computed row by row from such rows is right in the valid rows. Followed through the model are operators
that keep rows apart; sums, maxima and scatters leave invalid rows out; all others are refused by name, as
they would mix them in. What asks for the extent of such a result gets N.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from t10.errors import InputError
from t10.frontend.fold import fold_constants
from t10.frontend.followed_rows import Follower
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.rewrites.apply import rewrite_by
from t10.frontend.rewrites.bounded import Bounds
from t10.frontend.shapes import infer_shapes

COUNT = ".count"
"""What the name of an output that counts ends in."""


def bound_results(model: Any, extents: Mapping[str, int], source: str) -> Any:
    """Return the model with results of some operators bounded; `extents` are by name of an operator or of its result.

    Raises `InputError` for a name that no such operator has, and `UnsupportedOpError` for an operator that would mix
    invalid rows into others.
    """
    if not extents:
        return model
    for name, n in extents.items():
        if n < 1:
            raise InputError(f"--bound {name}={n} (expected at least 1)")
    bounds = Bounds(extents)
    model = infer_shapes(model, source)
    while fold_constants(model) or rewrite_by(model, bounds.rules()):
        model = infer_shapes(model, source)
    for name in extents:
        if name not in bounds.used:
            raise InputError(
                f"--bound {name}: the model has no such operator or result of known extents whose length data decide",
                hint="NonZero, Compress, NonMaxSuppression, Unique without an axis, TopK, by name or by result",
            )
    _follow(model, bounds, source)
    return infer_shapes(model, source)


def _follow(model: Any, bounds: Bounds, source: str) -> None:
    """Follow rows through the model in place, and add the outputs that count."""
    graph = model.graph
    follower = Follower(model, dict(bounds.rows), source)
    nodes: list[Any] = []
    for node in graph.node:
        nodes.extend(follower.followed(node))
    outputs = {value.name for value in graph.output}
    for name in sorted(outputs & follower.rows.keys()):
        nodes = follower.filled(nodes, name)
    for name, count in bounds.counts.items():
        made = f"{name}{COUNT}"
        nodes.append(onnx.helper.make_node("Identity", [count], [made], name=made))
        graph.output.append(onnx.helper.make_tensor_value_info(made, onnx.TensorProto.INT32, []))
    replace_all(graph.node, nodes)
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(values), name) for name, values in follower.constants.items()
    )
