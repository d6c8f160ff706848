"""`t10 verify` where ONNX Runtime gives other integers than it should: powers that overflow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from support import models

from t10.cli.entry import main

INT32, INT64 = TensorProto.INT32, TensorProto.INT64


@pytest.mark.parametrize("exponents", [INT32, INT64])
def test_powers_that_overflow_are_those_of_the_evaluator(
    exponents: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of random exponents most make more than int32 holds; ONNX Runtime has the least integer there."""
    inputs = {"x": (INT32, [40]), "p": (exponents, [40])}
    path = models.save(
        tmp_path / "m.onnx", [helper.make_node("Pow", ["x", "p"], ["y"])], inputs, {"y": (INT32, [40])}
    )
    assert main(["verify", str(path), "--chip", "test-4"]) == 0
    text = capsys.readouterr().out
    assert "as ONNX's reference evaluator has it: y[" in text


def test_constant_powers_that_overflow_are_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = models.save(
        tmp_path / "m.onnx",
        [helper.make_node("Pow", ["x", "p"], ["y"])],
        {"x": (INT32, [40])},
        {"y": (INT32, [40])},
        p=np.array(77, np.int32),
    )
    assert main(["verify", str(path), "--chip", "test-4"]) == 0
    assert "as ONNX's reference evaluator has it: y[" in capsys.readouterr().out
