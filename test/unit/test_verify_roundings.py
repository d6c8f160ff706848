"""`t10 verify` where an output differs: it says if roundings alone move it as far in the model itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from support import models

from t10.attack.judging import Judge
from t10.cli import main
from t10.reference import OnnxRuntime
from t10.sim import scalar_eval
from t10.tolerances import RELATIVE

HALF = TensorProto.FLOAT16
SENSITIVE = "roundings on the way move it by"


def half_of_tanh(x: NDArray[Any]) -> NDArray[Any]:
    return (np.tanh(x) / 2).astype(x.dtype)


def exp_and_a_quarter(x: NDArray[Any]) -> NDArray[Any]:
    return np.exp(x) + x.dtype.type(0.25)


def verified(path: Path, capsys: pytest.CaptureFixture[str], n_seeds: int = 1) -> tuple[int, str]:
    words = ["--chip", "test-4", "--no-cache", "--engine", "plan", "--seeds", str(n_seeds)]
    code = main(["verify", str(path), *words])
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


APART = "(float16[1, 3, 32] q, float16[1, 3, 32] k, float16[1, 3, 32] v) => (float16[1, 3, 32] y)"
CACHED = """(float16[1, 3, 32] q, float16[1, 3, 16] k, float16[1, 3, 16] v, float16[1, 2, 2, 8] pk,
    float16[1, 2, 2, 8] pv) => (float16[1, 3, 32] y, float16[1, 2, 5, 8] a, float16[1, 2, 5, 8] b)
    <int32[1] last = {4}, int32 total = {5}>"""
HIDING = {
    "Attention": (APART, "y = Attention <q_num_heads = 4, kv_num_heads = 4> (q, k, v)", ""),
    "MultiHeadAttention": (APART, "y = com.microsoft.MultiHeadAttention <num_heads = 4> (q, k, v)", ""),
    "GroupQueryAttention": (
        CACHED,
        """y, a, b = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2>
            (q, k, v, pk, pv, last, total)""",
        "",
    ),
    "function": (
        APART,
        "y = local.weighed (q, k, v)",
        """<domain: "local", opset_import: ["" : 23]> weighed (q, k, v) => (y) {
            t = Transpose <perm = [0, 2, 1]> (k)  s = MatMul (q, t)  w = Softmax (s)  y = MatMul (w, v) }""",
    ),
}


@pytest.mark.parametrize("hiding", HIDING)
def test_scores_that_overflow_inside_an_operator_say_nothing(
    hiding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ends, body, function = HIDING[hiding]
    domains = '"" : 23, "com.microsoft" : 1, "local" : 1'
    model: Any = onnx.parser.parse_model(
        f"<ir_version: 10, opset_import: [{domains}]> g {ends} {{ {body} }} {function}"
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    code, text = verified(path, capsys, n_seeds=3)
    assert code == 0, text
    assert "magnitudes up to 6e+04, magnitudes up to 1e+03: the model overflows" in " ".join(text.split())


def test_what_is_wrong_inside_an_operator_is_found_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, body, _ = HIDING["MultiHeadAttention"]
    model: Any = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 23, "com.microsoft" : 1]> g {ends} {{ {body} }}'
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    monkeypatch.setitem(scalar_eval.PLAIN, "math.exp", exp_and_a_quarter)
    assert verified(path, capsys)[0] == 1


def test_roundings_inside_an_operator_move_its_result() -> None:
    """Scores are rounded to f16 before the softmax; seen from outside, nothing on the way to the result is."""
    ends, body, _ = HIDING["Attention"]
    model: Any = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]> g {ends} {{ {body} }}')
    rng = np.random.default_rng(2)
    inputs = {name: (rng.standard_normal((1, 3, 32)) * 2).astype(np.float16) for name in "qkv"}
    judge = Judge(OnnxRuntime(model, Path("m.onnx")), RELATIVE["f16"])
    assert 2**-12 < judge.moved_by_roundings(inputs, "y") < 2**-7
