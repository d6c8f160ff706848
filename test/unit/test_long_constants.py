"""Constants of more than 16 elements stand outside of the text of operations, and every engine gets their values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import t10
from t10.backend import run_on_tiles
from t10.dialect.elements import elements
from t10.dialect.mlir import ir, new_context
from t10.frontend.importer import import_model
from t10.passes.pipeline import compile_module
from t10.passes.registry import make, run

onnx: Any = untyped_onnx

INDICES = (np.arange(64, dtype=np.int64) * 7) % 24
LONG = re.compile(r"dense<[^>]{60,}>")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return a gather by 64 constant indices and a scale by 64 constant integers: neither is a weight of the model."""
    scale = np.arange(64, dtype=np.int32) - 30
    nodes = [
        helper.make_node("Gather", ["x", "indices"], ["rows"], axis=1, name="pick"),
        helper.make_node("Mul", ["rows", "scale"], ["y"], name="scaled"),
    ]
    graph = helper.make_graph(
        nodes,
        "picked",
        [helper.make_tensor_value_info("x", TensorProto.INT32, [4, 24])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [4, 64])],
        [numpy_helper.from_array(INDICES, "indices"), numpy_helper.from_array(scale, "scale")],
    )
    path = tmp_path / "model.onnx"
    made: Any = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(made.SerializeToString())
    return path


def expected(model: Path, x: Any) -> Any:
    """Return what ONNX Runtime computes."""

    session: Any = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


@pytest.mark.parametrize("engine", ["plan", "iss"])
def test_values_travel_beside_the_module_and_survive_a_reload(
    model: Path, tmp_path: Path, engine: Any
) -> None:
    executable = t10.compile(model, chip="test-4")
    assert not LONG.search(executable.module)
    assert "dense_resource" not in executable.module
    assert sorted(value.shape for value in executable.weights.values()) == [(64,), (64,)]
    assert executable.module == t10.compile(model, chip="test-4").module
    x = np.arange(96, dtype=np.int32).reshape(4, 24) - 50
    executable.save(tmp_path / "out")
    for each in (executable, t10.Executable.load(tmp_path / "out")):
        if engine == "plan":
            found = each.run({"x": x})
        else:
            found = run_on_tiles(each, {"x": x}).outputs
        np.testing.assert_array_equal(found["y"], expected(model, x))


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64", "i1", "i8", "i32", "i64"])
def test_resources_hold_every_bit_and_read_back_from_text(dtype: str) -> None:
    kind = f"tensor<3x7x{dtype}>"
    rows = [[(7 * i + j) % 2 if dtype == "i1" else 7 * i + j - 8 for j in range(7)] for i in range(3)]
    literal = str([[f"{n}.0" if dtype[0] == "f" else n for n in row] for row in rows]).replace("'", "")
    text = f"func.func @f() -> {kind} {{\n  %c = arith.constant dense<{literal}> : {kind}\n  return %c : {kind}\n}}"
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        run(make("t10-outline-constants"), module)
        printed = str(module)
    assert "dense_resource<constant>" in printed
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(printed)
        assert str(module) == printed
        constant = module.body.operations[0].regions[0].blocks[0].operations[0]
        np.testing.assert_array_equal(elements(constant.attributes["value"], dtype), rows)


def test_a_module_that_holds_constants_is_planned_with_their_values(model: Path) -> None:
    from t10.chip import load_chip
    from t10.frontend.importer import import_proto

    lifted = import_model(model)
    assert sorted(lifted.weights) == ["constant0", "constant1"]
    held = import_proto(onnx.ModelProto.FromString(model.read_bytes()), source="model")
    compiled = compile_module(held.module, load_chip("test-4"))
    assert not LONG.search(compiled.text)
    found = sorted(value.tobytes() for value in compiled.constants.values())
    assert found == sorted(value.tobytes() for value in lifted.weights.values())
