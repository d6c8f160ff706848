"""Imported and fused modules compute what ONNX Runtime computes: proved by an interpreter of their IR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from support import models
from support.linalg_numpy import run_module

from t10.core.stored import as_stored
from t10.dialect.mlir import passmanager, walk
from t10.frontend.imported import ImportedModel
from t10.frontend.importer import import_model, import_proto
from t10.passes.fuse import Fuse
from t10.passes.read_graph import read_graph

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
ARCHITECTURES = ("bert", "vit", "resnet18", "nerf", "opt", "llama2", "retnet")
SMALL = ("mlp", "conv", "depthwise", "gather", "softmax", "functions", "local_function", "external")
ALL = (*(f"{name}_{kind}" for name in ARCHITECTURES for kind in ("fp32", "fp16")), *SMALL)
TOLERANCE_BY_TYPE = {"float32": 1e-4, "float16": 5e-3}


def _reference(path: Path, inputs: dict[str, Any]) -> dict[str, Any]:
    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def _inputs(stem: str) -> dict[str, Any]:
    with np.load(MODELS / f"{stem}.npz") as data:
        return {name.removeprefix("in."): data[name] for name in data.files}


def _generalized(imported: ImportedModel) -> Any:
    """Return the imported module with named operations as generics: the interpreter knows no others."""
    pipeline = "builtin.module(func.func(linalg-generalize-named-ops))"
    passmanager.PassManager.parse(pipeline, context=imported.module.context).run(imported.module.operation)
    return imported.module


def _assert_close(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert found[name].shape == value.shape
        error = np.abs(found[name].astype(np.float64) - value.astype(np.float64)).max()
        assert error <= TOLERANCE_BY_TYPE[str(value.dtype)] * np.abs(value.astype(np.float64)).max(), name


@pytest.mark.parametrize("stem", ALL)
def test_imported_module_equals_onnxruntime(stem: str) -> None:
    imported = import_model(MODELS / f"{stem}.onnx")
    inputs = _inputs(stem)
    with imported.module.context:
        found = run_module(_generalized(imported), {**inputs, **imported.weights})
    _assert_close(found, _reference(MODELS / f"{stem}.onnx", inputs))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("stem", ALL)
def test_fused_module_equals_onnxruntime(stem: str) -> None:
    imported = import_model(MODELS / f"{stem}.onnx")
    inputs = _inputs(stem)
    with imported.module.context:
        Fuse().apply(imported.module)
        assert imported.module.operation.verify()
        graph = read_graph(imported.module).graph
        stored = as_stored({**inputs, **imported.weights}, (*graph.inputs, *graph.weights))
        found = run_module(imported.module, stored)
    _assert_close(found, _reference(MODELS / f"{stem}.onnx", inputs))


@pytest.mark.sampled(6)
@pytest.mark.parametrize("stem", ALL)
def test_fusing_twice_changes_nothing(stem: str) -> None:
    imported = import_model(MODELS / f"{stem}.onnx")
    with imported.module.context:
        Fuse().apply(imported.module)
        once = str(imported.module)
        assert Fuse.is_done(imported.module)
        Fuse().apply(imported.module)
    assert str(imported.module) == once


def test_chains_of_any_length_are_fused_in_pieces() -> None:
    """Expressions are bounded: what walks over them is recursive, and code for them needs registers."""
    n = 700
    nodes = [
        helper.make_node("Relu" if i % 2 else "Neg", [f"t{i}"], [f"t{i + 1}"], name=f"n{i}") for i in range(n)
    ]
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("t0", TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info(f"t{n}", TensorProto.FLOAT, [3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    imported = import_proto(model, source="chain")
    with imported.module.context:
        Fuse().apply(imported.module)
        names = [op.operation.name for op in walk(imported.module)]
    assert 3 <= names.count("linalg.generic") <= 20


def test_reshapes_of_results_with_extents_of_1_are_split(tmp_path: Path) -> None:
    """A depthwise convolution keeps an axis of extent 1 for its width; the reshape splits the channels beside it."""
    path = models.save(
        tmp_path / "split.onnx",
        [
            helper.make_node("Conv", ["x", "w"], ["s"], group=12),
            helper.make_node("Reshape", ["s", "shape"], ["v"]),
            helper.make_node("Transpose", ["v"], ["u"], perm=[0, 1, 2, 4, 3]),
            helper.make_node("MatMul", ["v", "u"], ["y"]),
        ],
        {"x": (TensorProto.FLOAT, [1, 12, 5, 1])},
        {"y": (TensorProto.FLOAT, [1, 2, 6, 3, 3])},
        w=models.weights(0, 12, 1, 3, 1),
        shape=np.array([1, 2, 6, 3, 1], np.int64),
    )
    inputs = {"x": models.weights(1, 1, 12, 5, 1)}
    imported = import_model(path)
    with imported.module.context:
        Fuse().apply(imported.module)
        graph = read_graph(imported.module).graph
        stored = as_stored({**inputs, **imported.weights}, (*graph.inputs, *graph.weights))
        found = run_module(imported.module, stored)
    _assert_close(found, _reference(path, inputs))
