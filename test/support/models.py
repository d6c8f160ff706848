"""Small ONNX models as files, made where a test needs one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

onnx: Any = untyped_onnx

OPSET = 17
IR_VERSION = 9


def save(
    path: Path, nodes: list[Any], inputs: dict[str, Any], outputs: dict[str, Any], **weights: Any
) -> Path:
    """Write a model; `inputs` and `outputs` give (element type, shape) by name, `weights` arrays by name."""
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()],
        [helper.make_tensor_value_info(name, *spec) for name, spec in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.save(model, str(path))
    return path


def weights(seed: int, *shape: int, dtype: str = "float32") -> NDArray[Any]:
    """Return normal numbers that keep the size of what they are multiplied with."""
    drawn = np.random.default_rng(seed).standard_normal(shape) / np.sqrt(shape[0])
    return drawn.astype(dtype)


def mlp(path: Path, dtype: str = "float32", rows: int | str = 4) -> Path:
    """Write y = relu(x @ w0 + b0) @ w1 with `rows` rows of x, which may be a symbolic dim."""
    element = TensorProto.FLOAT16 if dtype == "float16" else TensorProto.FLOAT
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["p"], name="first"),
        helper.make_node("Add", ["p", "b0"], ["q"]),
        helper.make_node("Relu", ["q"], ["r"]),
        helper.make_node("MatMul", ["r", "w1"], ["y"], name="second"),
    ]
    return save(
        path,
        nodes,
        {"x": (element, [rows, 24])},
        {"y": (element, [rows, 10])},
        w0=weights(0, 24, 32, dtype=dtype),
        b0=weights(1, 32, dtype=dtype),
        w1=weights(2, 32, 10, dtype=dtype),
    )


def embedding(path: Path) -> Path:
    """Write y = table[ids] where mask is set, else 0: an index, a boolean and an output that is an integer."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["rows"], name="lookup"),
        helper.make_node("Cast", ["mask"], ["kept"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["kept", "last"], ["column"]),
        helper.make_node("Mul", ["rows", "column"], ["y"]),
        helper.make_node("Add", ["ids", "ids"], ["twice"]),
    ]
    return save(
        path,
        nodes,
        {"ids": (TensorProto.INT64, [2, 6]), "mask": (TensorProto.INT64, [2, 6])},
        {"y": (TensorProto.FLOAT, [2, 6, 8]), "twice": (TensorProto.INT64, [2, 6])},
        table=weights(0, 37, 8),
        last=np.array([-1], np.int64),
    )


def counted_places(path: Path) -> Path:
    """Write y = table[running sum of mask]: an index that is computed from an input, not given by it."""
    nodes = [
        helper.make_node("CumSum", ["mask", "last"], ["places"]),
        helper.make_node("Gather", ["table", "places"], ["y"], name="lookup"),
    ]
    return save(
        path,
        nodes,
        {"mask": (TensorProto.INT64, [2, 6])},
        {"y": (TensorProto.FLOAT, [2, 6, 8])},
        table=weights(0, 7, 8),
        last=np.array(1, np.int64),
    )


def without_data(path: Path) -> Path:
    """Write an mlp whose weights lie in a file that is not there."""
    model = onnx.load(str(mlp(path)))
    onnx.save(model, str(path), save_as_external_data=True, location="gone.bin", size_threshold=0)
    (path.parent / "gone.bin").unlink()
    return path


def unsupported(path: Path) -> Path:
    """Write a model with an operator whose result's shape depends on data."""
    nodes = [helper.make_node("NonZero", ["x"], ["y"], name="positions")]
    return save(path, nodes, {"x": (TensorProto.FLOAT, [4, 4])}, {"y": (TensorProto.INT64, [2, "n"])})


def too_large(path: Path) -> Path:
    """Write a model whose weight does not fit a chip of four cores."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="huge")]
    table = np.zeros((1024, 1024), np.float32)
    return save(
        path, nodes, {"x": (TensorProto.FLOAT, [1, 1024])}, {"y": (TensorProto.FLOAT, [1, 1024])}, w=table
    )
