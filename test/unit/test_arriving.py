"""A residual reaches each core only where its chunk of the sum reads it; every engine computes with what arrived."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.engines import by_runtime

import t10
from t10.backend import lowered, run_on_host, run_on_tiles, write_program
from t10.core.chunks import window_chunk
from t10.core.dtypes import size_bytes
from t10.driver import Executable

ROWS, COLUMNS, TERMS, MEMBERS = 6, 10, 64, 4


def with_residual(*, is_turned: bool) -> Any:
    """Return relu(x w + r v), or with (r v) turned."""
    elements, rng = TensorProto.FLOAT16, np.random.default_rng(3)
    first, second = (COLUMNS, ROWS) if is_turned else (ROWS, COLUMNS)
    x = helper.make_tensor_value_info("x", elements, (ROWS, TERMS))
    r = helper.make_tensor_value_info("r", elements, (first, TERMS))
    y = helper.make_tensor_value_info("y", elements, (ROWS, COLUMNS))
    weights = {"w": (TERMS, COLUMNS), "v": (TERMS, second)}
    tensors = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float16) / 8, name)
        for name, shape in weights.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["r", "v"], ["other"], "other"),
        helper.make_node("MatMul", ["x", "w"], ["product"], "product"),
        helper.make_node("Transpose" if is_turned else "Identity", ["other"], ["residual"]),
        helper.make_node("Add", ["product", "residual"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "residual", [x, r], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def compiled(model: Any, folder: Path) -> Executable:
    """Return the model on 16 cores; the product that is computed last adds the other, which is cut otherwise."""
    pins = [
        {"name": "product", "f_op": {"m": 2, "n": 5, "k": 1}},
        {"name": "other", "f_op": {"m": 2, "n": 2, "k": MEMBERS}},
    ]
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "pins.json").write_text(json.dumps({"format": "t10-pins", "version": 1, "operators": pins}))
    return t10.compile(folder / "model.onnx", "test-16", plan=folder / "pins.json", program=True)


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_residual_arrives_in_chunks(tmp_path: Path, is_turned: bool) -> None:
    model = with_residual(is_turned=is_turned)
    rng = np.random.default_rng(1)
    shapes = {"x": (ROWS, TERMS), "r": (COLUMNS if is_turned else ROWS, TERMS)}
    inputs = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}
    executable = compiled(model, tmp_path)
    _, last = executable.plan.operators
    assert last.active.plan.reduce == "scatter"
    (residual,) = [each for each in last.arrivals if each.operand == 2]
    n_read = window_chunk(ROWS // 2 * COLUMNS // 2, MEMBERS)
    assert residual.kind == "relayout"
    assert residual.received_bytes == n_read * size_bytes(
        executable.plan.graph.operators[-1].operands[2].dtype
    )
    write_program(executable, lowered(executable), tmp_path / "program")
    expected = by_runtime(model, inputs)["y"]
    for found in (
        executable.run(inputs),
        run_on_tiles(executable, inputs).outputs,
        run_on_host(executable, tmp_path / "program", inputs),
    ):
        np.testing.assert_allclose(found["y"], expected, atol=4e-3)
