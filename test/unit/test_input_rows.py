"""Inputs that operators read through views alone: spread by whole rows where nearly all cores get some."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.models import save, weights

import t10
from t10.backend import run_on_tiles
from t10.core.chunks import chunk_slots
from t10.core.graph import TensorValue
from t10.plan.assemble import row_cores
from t10.reference import run_onnx_runtime

ROWS, COLUMNS = 183, 32


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((ROWS, COLUMNS), 61),  # three rows each; 64 cores would have 92 elements each, no whole rows
        ((3, 61, COLUMNS), 61),
        ((ROWS, 33), 64),  # rows of 33 are no even number of elements, which chunks are
        ((130, COLUMNS), 64),  # three rows each on 44 cores: too few
        ((1000,), 64),
        ((), 64),
    ],
)
def test_cores_have_whole_rows_unless_far_fewer_would(shape: tuple[int, ...], expected: int) -> None:
    assert row_cores(TensorValue("x", shape, "f16"), 64) == expected


def test_what_is_joined_by_rows_stays_where_it_lies(tmp_path: Path) -> None:
    half = TensorProto.FLOAT16
    nodes = [
        helper.make_node("MatMul", ["h", "w"], ["g"]),
        helper.make_node("Concat", ["g", "x"], ["j"], axis=1),
        helper.make_node("MatMul", ["j", "v"], ["y"]),
    ]
    arrays = {
        "w": weights(0, COLUMNS, COLUMNS, dtype="float16"),
        "v": weights(1, 64, COLUMNS, dtype="float16"),
    }
    shapes = {"h": (half, [ROWS, COLUMNS]), "x": (half, [ROWS, COLUMNS])}
    path = save(tmp_path / "m.onnx", nodes, shapes, {"y": (half, [ROWS, COLUMNS])}, **arrays)
    # In little memory weights are not everywhere, and the second product reads rows.
    executable = t10.compile(path, chip="test-64:sram_bytes=30720")
    (layout,) = [each for each in executable.plan.input_layouts if each.value == "x"]
    assert (layout.kind, layout.n_cores) == ("linear", 61)
    assert chunk_slots(ROWS * COLUMNS, layout.n_cores) == 3 * COLUMNS
    inputs = {name: weights(n, ROWS, COLUMNS, dtype="float16") for n, name in enumerate("hx", 2)}
    ran = run_on_tiles(executable, inputs)
    assert ran.cycles == executable.report().total_cycles
    expected = run_onnx_runtime(path, inputs)["y"]
    np.testing.assert_allclose(ran.outputs["y"], expected, rtol=5e-3, atol=5e-3)
