"""NaNs: those among the weights are told, those among inputs come out where ONNX Runtime keeps them, on all engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from support.models import save

import t10
from t10.backend import ENGINES, lowered, run_on_host, run_on_tiles, write_program
from t10.errors import InputError
from t10.frontend.importer import import_model
from t10.frontend.nan import has_nan
from t10.reference import run_onnx_runtime


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_nan_is_found_in_every_type_of_float(dtype: Any) -> None:
    values = np.array([np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 6e4], dtype)
    assert not has_nan(values)
    for sign in (1, -1):
        assert has_nan(np.append(values, np.array([sign * np.nan], dtype)))
    assert not has_nan(np.zeros((0, 3), dtype))


def test_nan_is_found_behind_the_first_chunk() -> None:
    values = np.zeros((5, 1 << 20), np.float16)
    values[4, -1] = np.nan
    assert has_nan(values)
    assert not has_nan(values[:4])


def test_integers_hold_no_nan() -> None:
    assert not has_nan(np.array([-1, 2**31 - 1], np.int32))


@pytest.mark.parametrize(("value", "is_refused"), [(np.nan, True), (np.inf, False), (-np.inf, False)])
def test_a_model_with_nan_weights_is_refused(value: float, is_refused: bool, tmp_path: Path) -> None:
    weights = np.zeros((4, 8), np.float32)
    weights[2, 3] = value
    node = helper.make_node("Add", ["x", "w"], ["y"], name="add")
    spec = (TensorProto.FLOAT, [4, 8])
    path = save(tmp_path / "m.onnx", [node], {"x": spec}, {"y": spec}, w=weights)
    if not is_refused:
        assert import_model(path).weight_names == ("w",)
        return
    with pytest.raises(InputError, match=r"weight 'w' holds 1 NaN among 32 elements, the first at 2x3"):
        import_model(path)


INF, NAN = np.inf, np.nan
SPECIALS = [0.0, 1.0, -1.5, 2.5, -0.5, 7.0, 200.0, -200.0, INF, -INF, NAN]
Case = tuple[str, str, list[str], dict[str, Any]]
EXTREMES: tuple[Case, ...] = (
    ("max", "Max", ["a", "b"], {}), ("min", "Min", ["a", "b"], {}), ("relu", "Relu", ["a"], {}),
    ("clip", "Clip", ["a", "low", "high"], {}), ("relu6", "Clip", ["a", "zero", "six"], {}),
    ("sign", "Sign", ["a"], {}), ("leaky", "LeakyRelu", ["a"], {}),
    ("threshold", "ThresholdedRelu", ["a"], {"alpha": 0.5}), ("hard", "HardSigmoid", ["a"], {}),
    ("prelu", "PRelu", ["a", "b"], {}),
    ("row", "ReduceMax", ["a"], {"axes": [1]}), ("column", "ReduceMin", ["a"], {"axes": [0]}),
    ("columns", "ReduceMax", ["a"], {"axes": [0]}), ("all", "ReduceMin", ["a"], {"axes": [0, 1]}),
    ("pool", "MaxPool", ["image"], {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [0, 1, 0, 1]}),
    ("softmax", "Softmax", ["mask"], {"axis": 1}),
)  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_every_engine_keeps_the_nans_that_onnx_runtime_keeps(dtype: Any, tmp_path: Path) -> None:
    kind = TensorProto.FLOAT16 if dtype == np.float16 else TensorProto.FLOAT
    a, b = np.meshgrid(np.array(SPECIALS, dtype), np.array(SPECIALS, dtype))
    image = np.resize(np.array(SPECIALS, dtype), (1, 2, 6, 7))
    mask: NDArray[Any] = np.full((5, 12), -INF, dtype)
    np.fill_diagonal(mask, 0)
    mask[1, 3], mask[2, 4] = NAN, INF
    inputs: dict[str, NDArray[Any]] = {"a": a, "b": b, "image": image, "mask": mask}
    nodes = [helper.make_node(op, list(names), [out], **options) for out, op, names, options in EXTREMES]
    limits = {"low": -1.5, "high": 2.5, "zero": 0.0, "six": 6.0}
    path = save(
        tmp_path / "m.onnx",
        nodes,
        {name: (kind, list(array.shape)) for name, array in inputs.items()},
        {node.output[0]: (kind, None) for node in nodes},
        **{name: np.array(value, dtype) for name, value in limits.items()},
    )
    wanted = run_onnx_runtime(path, inputs)
    for name, _, _, options in EXTREMES:
        if name in REDUCTIONS:
            wanted[name] = REDUCTIONS[name](a, axis=tuple(options["axes"]), keepdims=True)
    padded = np.pad(image, ((0, 0), (0, 0), (0, 0), (1, 1)), constant_values=dtype(-INF))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2, 3), axis=(2, 3))[:, :, ::2, ::2]
    wanted["pool"] = windows.max(axis=(-2, -1))
    check_on_every_engine(path, inputs, wanted, rtol=2e-3 if dtype == np.float16 else 2e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_extremes_behind_a_product_keep_nans(dtype: Any, tmp_path: Path) -> None:
    """Clamps and rectifiers are fused into the product's operator, maxima read it."""
    kind = TensorProto.FLOAT16 if dtype == np.float16 else TensorProto.FLOAT
    x = np.random.default_rng(0).integers(-3, 4, (9, 24)).astype(dtype)
    x[2, 5], x[4, 7], x[6, 0] = NAN, INF, -INF
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Clip", ["p", "low", "high"], ["clipped"]),
        helper.make_node("MatMul", ["x", "w2"], ["q"]),
        helper.make_node("Relu", ["q"], ["rectified"]),
        helper.make_node("ReduceMax", ["rectified"], ["largest"], axes=[1]),
    ]
    rng = np.random.default_rng(1)
    path = save(
        tmp_path / "m.onnx",
        nodes,
        {"x": (kind, [9, 24])},
        dict.fromkeys(("clipped", "rectified", "largest"), (kind, None)),
        w=rng.integers(1, 4, (24, 17)).astype(dtype),
        w2=rng.integers(1, 4, (24, 16)).astype(dtype),
        low=np.array(-20, dtype),
        high=np.array(30, dtype),
    )
    wanted = run_onnx_runtime(path, {"x": x})
    wanted["largest"] = wanted["rectified"].max(axis=1, keepdims=True)
    check_on_every_engine(path, {"x": x}, wanted)


FUNCTIONS = ("Sqrt", "Reciprocal", "Log", "Exp", "Erf", "Tanh", "Sigmoid", "Atan", "Asinh", "Acosh", "Sinh", "Cosh",
             "Sin", "Cos", "Tan", "Floor", "Ceil", "Round", "Abs", "Softplus")  # fmt: skip


REDUCTIONS = {"row": np.max, "column": np.min, "columns": np.max, "all": np.min}
"""ONNX Runtime's maxima of many elements, pools' among them, lose a NaN or not by its place: numpy's keep it."""


@pytest.mark.slow
def test_functions_at_the_ends_of_their_ranges(tmp_path: Path) -> None:
    values = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-3, -60000.0, 3e38, -3e38, 1e-40, INF, -INF, NAN]
    x = np.array(values, np.float32)
    nodes = [helper.make_node(op, ["x"], [op]) for op in FUNCTIONS]
    powers = {"half": 0.5, "minus_half": -0.5, "zero": 0.0, "minus_one": -1.0, "three": 3.0, "odd": 1.75}
    nodes += [helper.make_node("Pow", ["x", name], [f"Pow_{name}"]) for name in powers]
    nodes += [helper.make_node("Pow", ["x", "y"], ["Pow_of_two"])]
    y = np.resize(np.array([2.0, NAN, -1.0, 3.0, 0.0, INF, -INF], np.float32), x.shape)
    spec = (TensorProto.FLOAT, [len(x)])
    path = save(
        tmp_path / "m.onnx",
        nodes,
        {"x": spec, "y": spec},
        {node.output[0]: spec for node in nodes},
        **{name: np.array(value, np.float32) for name, value in powers.items()},
    )
    inputs = {"x": x, "y": y}
    check_on_every_engine(path, inputs, run_onnx_runtime(path, inputs), rtol=1e-5)


def check_on_every_engine(
    path: Path, inputs: dict[str, Any], wanted: dict[str, Any], rtol: float = 0.0
) -> None:
    """Compare NaNs, infinities and numbers of all outputs."""
    executable = t10.compile(path, chip="test-4", program=True)
    write_program(executable, lowered(executable), path.parent / "program")
    found = {
        "plan": executable.run(inputs),
        "iss": dict(run_on_tiles(executable, inputs).outputs),
        "poplar-host": run_on_host(executable, path.parent / "program", inputs),
    }
    assert set(found) == set(ENGINES)
    for engine, outputs in found.items():
        for name, expected in wanted.items():
            expected = expected.astype(outputs[name].dtype)
            np.testing.assert_allclose(outputs[name], expected, rtol, 1e-37, err_msg=f"{name} on {engine}")
