"""If whose condition data decide: both branches are computed, and one result is chosen, as ONNX Runtime does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from support.engines import by_runtime

import t10
from t10.errors import MissingConstantError

Array = NDArray[Any]
RANDOM = np.random.default_rng(3)
NESTED = """g (float[3, 4] x, bool[1] c) => (float[n, m] y) {
    y = If (c) <
        then_branch: graph = one () => (float[i, j] p) { p = Relu (x) },
        else_branch: graph = other () => (float[k, l] q) {
            d = If (c) <
                then_branch: graph = never () => (float[3, 4] r) { r = Exp (x) },
                else_branch: graph = always () => (float[3, 4] s) { s = Neg (x) }
            >
            q = Abs (d)
        }
    >
}"""
TWO_RESULTS = """g (float[3, 4] x, bool[1] c) => (float[3, 4] y, bool[3, 4] b) {
    zero = Constant <value: tensor = float {0}> ()
    y, b = If (c) <
        then_branch: graph = one () => (float[3, 4] p, bool[3, 4] pb) { p = Log (x) pb = Less (x, zero) },
        else_branch: graph = other () => (float[3, 4] q, bool[3, 4] qb) { q = Neg (x) qb = Greater (x, zero) }
    >
}"""
UNREAD = """g (float[3, 4] x, bool[1] c) => (float[3, 4] y) {
    y, t = If (c) <
        then_branch: graph = one () => (float[3, 4] p, float[3, 4] pt) { p = Exp (x) pt = Neg (x) },
        else_branch: graph = other () => (float[3, 4] q, float[4, 3] qt) { q = Neg (x) qt = Transpose (x) }
    >
}"""
"""Of different shapes are results that nothing reads."""
IN_A_LOOP = """g (float[3, 4] x, bool[1] c) => (float[3, 4] y) {
    n = Constant <value: tensor = int64 {3}> ()
    y = Loop (n, , x) <
        body: graph = step (int64 i, bool go, float[3, 4] v) => (bool on, float[3, 4] w) {
            on = Identity (go)
            w = If (c) <
                then_branch: graph = one () => (float[3, 4] p) { p = Add (v, x) },
                else_branch: graph = other () => (float[3, 4] q) { q = Mul (v, x) }
            >
        }
    >
}"""
"""What a step makes is read by the branches of the next step alone."""

OUTER_CONSTANTS = """g (float[3, 4] x, bool[1] c) => (float[3, 4] y)
        <int64[1] axes = {0}, int64[2] ends = {0, 1}, int64[3] shape = {1, 3, 4}> {
    wide = Reshape (x, shape)
    y = If (c) <
        then_branch: graph = one () => (float[] p) { t = Neg (wide) p = Squeeze (t, axes) },
        else_branch: graph = other () => (float[] q) {
            q = If (c) <
                then_branch: graph = never () => (float[] r) { r = Squeeze (wide, axes) },
                else_branch: graph = always () => (float[] s) { u = Unsqueeze (wide, ends) s = Squeeze (u) }
            >
        }
    >
}"""
"""The shapes of the branches' results depend on constants outside."""


@pytest.mark.parametrize("text", [NESTED, TWO_RESULTS, UNREAD, IN_A_LOOP, OUTER_CONSTANTS])
def test_results_of_both_branches_are_chosen_from(text: str, tmp_path: Path) -> None:
    model: Any = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {text}')
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    compiled = t10.compile(path, "test-16", program=False)
    x: Array = RANDOM.standard_normal((3, 4)).astype(np.float32)
    for condition in (True, False):
        inputs = {"x": x, "c": np.array([condition])}
        found = compiled.run(inputs)
        for name, due in by_runtime(model, inputs).items():
            np.testing.assert_allclose(found[name], due, rtol=1e-5, atol=1e-6, err_msg=name)


def test_branches_of_different_shapes_need_a_constant(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18]>
        g (float[3, 4] x, bool c) => (float[n] y) {
            y = If (c) <
                then_branch: graph = one () => (float[12] p) {
                    flat = Constant <value: tensor = int64[1] {12}> ()
                    p = Reshape (x, flat)
                },
                else_branch: graph = other () => (float[4] q) {
                    axis = Constant <value: tensor = int64[1] {0}> ()
                    q = ReduceSum <keepdims: int = 0> (x, axis)
                }
            >
        }""")
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(MissingConstantError) as caught:
        t10.compile(path, "test-16", program=False)
    assert "results of one static shape" in (caught.value.hint or "")
