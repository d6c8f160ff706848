"""Constant folding on the ONNX graph: what shapes and indices are computed from is computed now."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from t10.frontend.protobuf_fields import replace_all
from t10.frontend.shapes import settle
from t10.frontend.weights import stays_constant

_NEVER = frozenset(
    {
        "RandomNormal",
        "RandomUniform",
        "RandomNormalLike",
        "RandomUniformLike",
        "Multinomial",
        "Bernoulli",
        "If",
        "Loop",
        "Scan",
    }
)

_GROWS = frozenset(
    {
        *(
            "AveragePool",
            "BlackmanWindow",
            "CenterCropPad",
            "Col2Im",
            "ConstantOfShape",
            "Conv",
            "ConvInteger",
        ),
        *("ConvTranspose", "DFT", "DeformConv", "Einsum", "Expand", "EyeLike", "GridSample", "HammingWindow"),
        *("HannWindow", "ImageDecoder", "LpPool", "MaxPool", "MaxUnpool", "MelWeightMatrix", "OneHot", "Pad"),
        *("QLinearConv", "Range", "Resize", "STFT", "Tile", "Upsample"),
    }
)
"""Operators whose result may be of any size, whatever their inputs: evaluated only if it is known to be small."""

_MOST = 1 << 20
_UNKNOWN = (1 << 62,)


def fold_constants(model: Any) -> bool:
    """Replace nodes whose inputs are small constants, and Shape and Size of static values, by initializers.

    Returns whether there were any: what they made constant may let shape inference find more.
    Only results small enough to stay constants are folded. An operator the evaluator refuses is left as it is.
    """
    graph = model.graph
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer if _is_small(tensor)}
    shapes = _static_shapes(graph)
    kept: list[Any] = []
    made: dict[str, NDArray[np.generic]] = {}
    for node in graph.node:
        values = evaluate(model, node, known, shapes)
        if values is None:
            kept.append(node)
            continue
        for name, value in values.items():
            known[name] = made[name] = value
    if not made:
        return False
    replace_all(graph.node, kept)
    graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in made.items())
    for output in graph.output:
        if output.name in made:
            # ONNX infers no shape for an output that no node makes, and then none behind it.
            settle(output, made[output.name].shape)
    stale = [value for value in graph.value_info if value.name not in made]
    replace_all(graph.value_info, stale)
    return True


def _is_small(tensor: Any) -> bool:
    return tensor.data_type != onnx.TensorProto.STRING and stays_constant(
        tensor.data_type, tuple(tensor.dims)
    )


def _static_shapes(graph: Any) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if not value.type.tensor_type.HasField("shape"):
            continue
        dims = value.type.tensor_type.shape.dim
        if all(dim.HasField("dim_value") for dim in dims):
            shapes[value.name] = tuple(dim.dim_value for dim in dims)
    shapes |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    return shapes


def evaluate(
    model: Any, node: Any, known: dict[str, NDArray[np.generic]], shapes: dict[str, tuple[int, ...]]
) -> dict[str, NDArray[np.generic]] | None:
    """Return the values of a node's outputs by name, None if they are not constants or not small."""
    if node.op_type in ("Shape", "Size") and node.domain == "" and node.input[0] in shapes:
        return {node.output[0]: _shape_of(node, shapes[node.input[0]])}
    if node.op_type in _NEVER or node.domain not in ("", "ai.onnx"):
        return None
    if any(name and name not in known for name in node.input) or not any(node.input):
        return None
    if node.op_type in _GROWS and not all(
        prod(shapes.get(name, _UNKNOWN)) <= _MOST for name in node.output if name
    ):
        return None
    values = run_node(model, node, known)
    if values is None:
        return None
    for value in values.values():
        if value.dtype == object or not stays_constant(
            onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        ):
            return None
    return values


def _shape_of(node: Any, shape: tuple[int, ...]) -> NDArray[np.generic]:
    if node.op_type == "Size":
        return np.array(int(np.prod(shape, dtype=np.int64)), np.int64)
    bounds = {attribute.name: attribute.i for attribute in node.attribute}
    return np.array(shape[bounds.get("start", 0) : bounds.get("end", len(shape))], np.int64)


def run_node(
    model: Any, node: Any, known: dict[str, NDArray[np.generic]]
) -> dict[str, NDArray[np.generic]] | None:
    """Return what one node makes of constants, by ONNX's reference implementation; None if it has none for it."""
    names = list(dict.fromkeys(name for name in node.input if name))
    outputs = [name for name in node.output if name]
    graph = onnx.helper.make_graph(
        [node],
        "fold",
        [
            onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(known[n].dtype), None)
            for n in names
        ],
        [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in outputs],
    )
    single = onnx.helper.make_model(
        graph, opset_imports=list(model.opset_import), ir_version=model.ir_version
    )
    try:
        evaluator: Any = ReferenceEvaluator(single)
        # Infinities and NaN are values like others here: numpy's warnings are not for who compiles a model.
        with np.errstate(all="ignore"):
            results = evaluator.run(None, {name: known[name] for name in names})
    except Exception:
        return None
    if not all(isinstance(value, np.ndarray | np.generic) for value in results):
        return None
    return {name: np.asarray(value) for name, value in zip(outputs, results, strict=True)}
