"""The stand-in for onnx-mlir writes what onnx-mlir wrote, and what it writes of operator tests is imported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_mlir_nodes
import onnx_mlir_text
import pytest
from support.onnx_text import function_text, model_of

from t10.conformance.cases import Case, DataSet
from t10.errors import UnsupportedOpError
from t10.frontend.importer import import_proto

TEXTS = Path(__file__).resolve().parents[1] / "e2e" / "Inputs" / "onnx_mlir"
_onnx: Any = onnx  # some of its functions are typed in part only
ALIKE = (
    "cnn_legacy", "mixed_dynamo", "mlp_dynamo", "unet_dynamo", "x_attr_kinds", "x_const_kinds", "x_custom_ms",
    "x_custom_op", "x_init_as_input", "x_loop_if", "x_seq_io",
)  # fmt: skip


@pytest.mark.parametrize("name", ALIKE)
def test_it_writes_the_operations_that_onnx_mlir_wrote(name: str) -> None:
    real = (TEXTS / f"{name}.basic.mlir").read_text(encoding="utf-8")
    made = onnx_mlir_text.emitted(_onnx.load(str(TEXTS / f"{name}.onnx")), name)
    assert _operations(made) == _operations(real)
    assert _signature(made) == _signature(real)


def _operations(text: str) -> list[tuple[str, int]]:
    """Return the operations with the numbers of their operands."""
    found = re.findall(r'"?onnx\.([A-Z]\w*)"?(?:\(([^)]*)\))?', text)
    return sorted((name, len(operands.split(","))) for name, operands in found)


def _signature(text: str) -> str:
    line = next(line for line in text.splitlines() if "func.func" in line)
    return re.sub(r'onnx\.dim_params = "[^"]*unk__\d+[^"]*", ', "", " ".join(line.split()))


def case_of(text: str, *inputs: np.ndarray) -> Case:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 26]>\ng {text}')
    return Case("node/it", model, (DataSet(inputs, ()),), 0, 0)


@pytest.mark.parametrize(
    ("text", "inputs", "given"),
    [
        # An operator that the dialect does not have is Custom of no domain.
        (
            "(float[3] x) => (float[3] y) { a = Constant <value = int64 {0}> () y = CumProd (x, a) }",
            (np.ones(3, np.float32),),
            (),
        ),
        # One that is a function is its body.
        ("(float[3] x) => (float[3] y) { y = Swish (x) }", (np.ones(3, np.float32),), ()),
        # Axes that are an input are fixed; an input without elements, of which only the type counts, is given as such.
        (
            "(float[3,2] x, int64[1] axes) => (float[3] y) { y = ReduceMax <keepdims = 0> (x, axes) }",
            (np.ones((3, 2), np.float32), np.array([1])),
            ("axes",),
        ),
        (
            "(float[3] x, float16[0] like) => (float16[3] y) { y = CastLike (x, like) }",
            (np.ones(3, np.float32), np.zeros(0, np.float16)),
            ("like=0",),
        ),
        (
            "(uint64[3] x, uint16[3] z) => (uint64[3] y, uint16[3] w) { y = Max (x, x) w = Add (z, z) }",
            (),
            (),
        ),
        (
            "(float[2,3,4,8] q) => (float[2,3,4,8] y) { y = Attention (q, q, q) }",
            (np.ones((2, 3, 4, 8), np.float32),),
            (),
        ),
    ],
)
def test_operators_are_imported_as_they_are_from_onnx(
    text: str, inputs: tuple[np.ndarray, ...], given: tuple[str, ...], tmp_path: Path
) -> None:
    row = onnx_mlir_nodes.measured(case_of(text, *inputs), tmp_path)
    assert row is not None
    assert (row.text, row.direct, row.given) == ("", "", given)


def test_models_that_onnx_mlir_does_not_read_are_left_out(tmp_path: Path) -> None:
    assert (
        onnx_mlir_nodes.measured(case_of("(uint2[4] x) => (uint2[4] y) { y = Identity (x) }"), tmp_path)
        is None
    )


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            '"onnx.LabelEncoder"(%arg0) <{keys_int64s = [1], values_int64s = [2]}>',
            "ai.onnx.ml.LabelEncoder works on",
        ),
        ('"onnx.Frobnicate"(%arg0)', "onnx-mlir.Frobnicate is of domain 'onnx-mlir'"),
        (
            '"onnx.Custom"(%arg0) <{function_name = "Frobnicate"}> {domain_name = ""}',
            "onnx-mlir.Frobnicate is of domain 'onnx-mlir'",
        ),
    ],
)
def test_what_no_domain_has_is_refused_by_name(operation: str, message: str) -> None:
    kind = "tensor<3xi64>"
    body = f"%0 = {operation} : ({kind}) -> {kind}\nreturn %0 : {kind}"
    with pytest.raises(UnsupportedOpError, match=message):
        import_proto(model_of(function_text(body, f"%arg0: {kind}", kind)), source="m")
