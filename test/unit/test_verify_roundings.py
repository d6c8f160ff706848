"""`t10 verify` where an output differs: it says if roundings alone move it as far in the model itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from support import models

from t10.cli import main
from t10.sim import scalar_eval

HALF = TensorProto.FLOAT16
SENSITIVE = "roundings on the way move it by"


def half_of_tanh(x: NDArray[Any]) -> NDArray[Any]:
    return (np.tanh(x) / 2).astype(x.dtype)


def verified(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["verify", str(path), "--chip", "test-4", "--no-cache", "--engine", "plan", "--seeds", "1"])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_a_difference_that_roundings_alone_make_is_told_as_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A layer norm of two elements that are almost equal magnifies their last bits."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("LayerNormalization", ["h", "scale"], ["y"], axis=-1),
    ]
    stored = {"w": models.weights(0, 17, 2, dtype="float16"), "scale": np.ones(2, np.float16)}
    path = models.save(
        tmp_path / "m.onnx", nodes, {"x": (HALF, [2048, 17])}, {"y": (HALF, [2048, 2])}, **stored
    )
    code, text = verified(path, capsys)
    assert code == 1
    assert f"y on seed 0: standard normal: {SENSITIVE}" in text


def test_a_wrong_operation_is_no_matter_of_roundings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Tanh", ["h"], ["y"]),
    ]
    stored = {"w": models.weights(0, 16, 8, dtype="float16")}
    path = models.save(tmp_path / "m.onnx", nodes, {"x": (HALF, [24, 16])}, {"y": (HALF, [24, 8])}, **stored)
    assert verified(path, capsys)[0] == 0
    monkeypatch.setitem(scalar_eval.PLAIN, "math.tanh", half_of_tanh)
    code, text = verified(path, capsys)
    assert code == 1
    assert SENSITIVE not in text
