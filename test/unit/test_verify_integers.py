"""`t10 verify` where ONNX Runtime gives other integers than it should: powers that overflow, sums that saturate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support import models
from support.contributed import DOMAIN, model_of
from support.engines import saturates

from t10.cli.entry import main

FLOAT, INT32, INT64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64


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


ZERO, SCALE = np.uint8(3), np.float32(0.01)
FACTORS = {
    "a": np.full((3, 64), 250, np.uint8),
    "b": np.full((64, 5), 120, np.int8),
    "s": np.asarray(SCALE),
    "z": np.asarray(ZERO),
    "o": np.asarray(np.float32(0.5)),
    "t": np.asarray(np.int8(0)),
}


@pytest.mark.parametrize(
    ("operator", "names", "kind"),
    [
        ("MatMulIntegerToFloat", "a b s s z t", FLOAT),
        ("QGemm", "a s z b s t - o z", TensorProto.UINT8),
    ],
)
def test_products_with_constants_do_not_saturate(
    operator: str, names: str, kind: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [name.strip("-") for name in names.split()]
    node = helper.make_node(operator, given, ["y"], domain=DOMAIN)
    constants = {name: array for name, array in FACTORS.items() if name != "a"}
    model = model_of(node, {"a": FACTORS["a"]}, {"y": kind}, constants)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    assert main(["verify", str(path), "--chip", "test-4", "--seeds", "1"]) == 0, capsys.readouterr().out


def test_dequantised_products_do_not_saturate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ONNX Runtime makes integer products of these."""
    make = helper.make_node
    nodes = [
        make("QuantizeLinear", ["x", "s", "z"], ["q"]),
        make("DequantizeLinear", ["q", "s", "z"], ["d"]),
        make("DequantizeLinear", ["b", "s", "t"], ["w"]),
        make("MatMul", ["d", "w"], ["m"]),
        make("QuantizeLinear", ["m", "o", "z"], ["n"]),
        make("DequantizeLinear", ["n", "o", "z"], ["y"]),
    ]
    stored = {name: array for name, array in FACTORS.items() if name != "a"}
    path = models.save(tmp_path / "m.onnx", nodes, {"x": (FLOAT, [3, 64])}, {"y": (FLOAT, [3, 5])}, **stored)
    given = tmp_path / "in.npz"
    np.savez(given, x=np.full((3, 64), 2.4, np.float32))
    assert main(["verify", str(path), "--chip", "test-4", "--inputs", str(given)]) == 0, (
        capsys.readouterr().out
    )


def test_computed_products_that_saturate_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = helper.make_node("MatMulIntegerToFloat", ["a", "b", "s", "s"], ["y"], name="sums", domain=DOMAIN)
    inputs = {name: FACTORS[name] for name in ("a", "b")}
    path, given = tmp_path / "m.onnx", tmp_path / "in.npz"
    path.write_bytes(model_of(node, inputs, {"y": FLOAT}, {"s": FACTORS["s"]}).SerializeToString())
    np.savez(given, a=inputs["a"], b=inputs["b"])
    code = main(["verify", str(path), "--chip", "test-4", "--inputs", str(given)])
    told = "MatMulIntegerToFloat 'sums': ONNX Runtime adds products of uint8 and int8 in 16 bits"
    assert (code, told in capsys.readouterr().out) == ((1, True) if saturates() else (0, False))


def test_packed_weights_are_compared_in_single_precision(tmp_path: Path) -> None:
    """Accuracy level 4 lets ONNX Runtime round the other factor to 8 bits."""
    random = np.random.default_rng(0)
    constants = {
        "b": random.integers(0, 256, (16, 2, 16)).astype(np.uint8),
        "s": random.uniform(0.01, 0.05, (16, 2)).astype(np.float32),
    }
    sizes: dict[str, Any] = {"K": 64, "N": 16, "bits": 4, "block_size": 32, "accuracy_level": 4}
    node = helper.make_node("MatMulNBits", ["a", "b", "s"], ["y"], domain=DOMAIN, **sizes)
    path = tmp_path / "m.onnx"
    model = model_of(node, {"a": np.zeros((2, 64), np.float32)}, {"y": FLOAT}, constants)
    path.write_bytes(model.SerializeToString())
    assert main(["verify", str(path), "--chip", "test-4", "--seeds", "1"]) == 0
