"""What ONNX Runtime's optimiser makes of diffusion models, which has no kernels on a CPU: compared with NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from math import erf, sqrt
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.contributed import DOMAIN, SEEDS, Array, Drawn, agree, computed, model_of
from support.engines import by_runtime

from t10.errors import UnsupportedOpError
from t10.frontend.importer import import_proto


def _made(operator: str, inputs: Mapping[str, Array], outputs: str, **attributes: Any) -> list[Array]:
    names = outputs.split(" ")
    node = helper.make_node(operator, list(inputs), names, name="node", domain=DOMAIN, **attributes)
    kind = helper.np_dtype_to_tensor_dtype(inputs["x"].dtype)
    found = computed(model_of(node, inputs, dict.fromkeys(names, kind), {}), inputs)
    return [found[name] for name in names]


def _normal(x: Array, groups: int, gamma: Array, beta: Array, epsilon: float, activation: int) -> Array:
    """Return the norm of groups of the last axis, in f64."""
    apart = x.astype(np.float64).reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    centred = apart - apart.mean((1, 3), keepdims=True)
    normal = centred / np.sqrt((centred**2).mean((1, 3), keepdims=True) + epsilon)
    made = normal.reshape(x.shape) * gamma + beta
    return made / (1 + np.exp(-made)) if activation else made


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("activation", [0, 1])
@pytest.mark.parametrize("channels_last", [0, 1])
def test_norms_of_groups(channels_last: int, activation: int, dtype: Any) -> None:
    draw = Drawn(channels_last, dtype)
    x, gamma, beta = draw.array(2, 3, 4, 6), Drawn(8).array(6), Drawn(9).array(6)
    due = _normal(x, 3, gamma, beta, 1e-2, activation)
    axes = (0, 1, 2, 3) if channels_last else (0, 3, 1, 2)
    inputs = {"x": np.ascontiguousarray(x.transpose(axes)), "gamma": gamma, "beta": beta}
    attributes = {"groups": 3, "epsilon": 1e-2, "activation": activation, "channels_last": channels_last}
    (y,) = _made("GroupNorm", inputs, "y", **attributes)
    assert y.dtype == dtype
    tolerance = 1e-5 if dtype == np.float32 else 4e-3
    np.testing.assert_allclose(y, due.transpose(axes), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("skip", [(2, 3, 4, 6), (2, 1, 1, 6), (2, 6)])
def test_norms_of_groups_of_sums(skip: tuple[int, ...]) -> None:
    draw = Drawn(3)
    x, gamma, beta, added, bias = (draw.array(*n) for n in ((2, 3, 4, 6), (6,), (6,), skip, (6,)))
    inputs = {"x": x, "gamma": gamma, "beta": beta, "skip": added, "bias": bias}
    y, total = _made("SkipGroupNorm", inputs, "y total", groups=2, epsilon=1e-5, activation=1)
    due = x + (added[:, None, None] if len(skip) == 2 else added) + bias
    np.testing.assert_allclose(total, due, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(y, _normal(due, 2, gamma, beta, 1e-5, 1), rtol=2e-5, atol=2e-5)


def test_groups_that_do_not_divide_the_channels_are_refused() -> None:
    draw = Drawn(1)
    inputs = {"x": draw.array(1, 2, 2, 6), "gamma": draw.array(6), "beta": draw.array(6)}
    node = helper.make_node("GroupNorm", list(inputs), ["y"], domain=DOMAIN, groups=4, activation=0)
    with pytest.raises(UnsupportedOpError, match="GroupNorm"):
        import_proto(model_of(node, inputs, {"y": TensorProto.FLOAT}, {}), source="m")


def test_halves_gated_by_a_gelu() -> None:
    draw = Drawn(2)
    inputs = {"x": draw.array(2, 3, 8), "bias": draw.array(8)}
    left, right = np.split(inputs["x"] + inputs["bias"], 2, axis=-1)
    (y,) = _made("BiasSplitGelu", inputs, "y")
    gelu = right * 0.5 * (1 + np.vectorize(erf)(right / sqrt(2)))
    np.testing.assert_allclose(y, left * gelu, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_convolutions_whose_channels_are_last(seed: int) -> None:
    draw = Drawn(seed)
    group, stride = draw.extent(1, 2), draw.extent(1, 2)
    x, kernel, bias = draw.array(2, 5, 6, 2 * group), draw.array(4, 3, 2, 2), draw.array(4)
    attributes: dict[str, Any] = {"pads": [1, 0, 1, 0], "strides": [stride, 1], "group": group}
    node = helper.make_node("Conv", ["x", "kernel", "bias"], ["y"], **attributes)
    turned = {
        name: np.ascontiguousarray(v.transpose(0, 3, 1, 2)) for name, v in (("x", x), ("kernel", kernel))
    }
    inputs = {**turned, "bias": bias}
    due = by_runtime(model_of(node, inputs, {"y": TensorProto.FLOAT}, {}), inputs)["y"]
    (y,) = _made("NhwcConv", {"x": x, "kernel": kernel, "bias": bias}, "y", **attributes)
    np.testing.assert_allclose(y, due.transpose(0, 2, 3, 1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("operator", ["GatherND", "Pad"])
def test_operators_that_onnx_has_by_now(operator: str) -> None:
    given = {"GatherND": np.array([[1, 0], [0, 2]]), "Pad": np.array([0, 1, 2, 0])}[operator]
    inputs = {"x": Drawn(4).array(2, 3), "given": None}
    agree(operator, inputs, "y", constants={"given": given})


def test_layouts_for_a_cpu_say_how_to_save_the_model_without_them() -> None:
    inputs = {"x": Drawn(1).array(1, 8, 4, 4)}
    node = helper.make_node("ReorderInput", ["x"], ["y"], domain="com.microsoft.nchwc")
    model = model_of(node, inputs, {"y": TensorProto.FLOAT}, {})
    model.opset_import.add(domain="com.microsoft.nchwc", version=1)
    with pytest.raises(UnsupportedOpError, match="ORT_ENABLE_EXTENDED"):
        import_proto(model, source="m")
