"""GELU written out does not overflow where its result does not, on any engine, wherever its half stands."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.engines import on_simulators

LAST = "p = Mul (x, s) y = Mul (p, half)"
WAYS = {
    "a half behind all": LAST,
    "all by two": "p = Mul (s, x) y = Div (p, two)",
    "a half before": "h = Mul (half, x) y = Mul (h, s)",
    "half of the sum": "h = Mul (s, half) y = Mul (x, h)",
    "read twice": f"{LAST.replace('y =', 'q =')} y = Add (q, s)",
}


@pytest.mark.parametrize("kind", ["float16", "float"])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_large_values_pass_gelu(way: str, kind: str, tmp_path: Path) -> None:
    dtype, large = (np.float16, 6e4) if kind == "float16" else (np.float32, 3e38)
    text = f"""<ir_version: 9, opset_import: ["": 18]> g ({kind}[1, 9] x) => ({kind}[1, 9] y) {{
        d = Div (x, root) e = Erf (d) s = Add (e, one) {way} }}"""
    model = onnx.parser.parse_model(text)
    for name, value in {"half": 0.5, "one": 1.0, "two": 2.0, "root": 1.4142135}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, dtype), name))
    x = np.array([[large, -large, large / 1.5, 300, -300, 1, -1, 0.1, 0]]).astype(dtype)
    wide = x.astype(np.float64)
    gate = 1.0 + np.array([[math.erf(value / math.sqrt(2.0)) for value in wide[0]]])
    expected = wide * gate / 2.0 + (gate if "Add" in way else 0.0)
    for engine, found in on_simulators(model, {"x": x}, tmp_path, "test-4").items():
        np.testing.assert_allclose(found["y"], expected, rtol=2e-3, atol=1e-3, err_msg=engine)
