"""MoE, QAttention and NhwcMaxPool of ONNX Runtime compute what it computes, over random extents and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.contributed import DOMAIN, Array, Drawn, agree, computed, model_of
from support.engines import by_runtime

from t10.errors import UnsupportedOpError

SWIGLU: dict[str, Any] = {"activation_type": "swiglu", "swiglu_fusion": 1}
ACTIVATIONS: list[dict[str, Any]] = [
    *({"activation_type": name} for name in ("relu", "gelu", "silu", "identity")),
    SWIGLU,
    {**SWIGLU, "activation_alpha": 1.7, "activation_beta": 1.0, "swiglu_limit": 0.5},
]


def experts(draw: Drawn, attributes: dict[str, Any], n_experts: int, *, biased: bool) -> dict[str, Array]:
    """Return weights of experts, small ones: products do not cancel then."""
    width, inner = draw.extent(1, 9), draw.extent(1, 9)
    first = inner * (2 if attributes["activation_type"] == "swiglu" else 1)
    weights = {"w1": draw.array(n_experts, first, width), "w2": draw.array(n_experts, width, inner)}
    if biased:
        weights |= {"b1": draw.array(n_experts, first), "b2": draw.array(n_experts, width)}
    return weights


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("attributes", ACTIVATIONS, ids=lambda each: "-".join(map(str, each.values())))
def test_experts(attributes: dict[str, Any], seed: int) -> None:
    draw = Drawn(seed)
    n_experts, rows = draw.extent(1, 5), draw.extent(1, 6)
    weights = experts(draw, attributes, n_experts, biased=bool(seed % 2))
    shape = (1, rows) if draw.coin() else (rows,)
    inputs = {
        "x": draw.array(*shape, weights["w2"].shape[1]),
        "routes": draw.array(rows, n_experts),
        "w1": None, "b1": None, "w2": None, "b2": None,
    }  # fmt: skip
    chosen = {"k": draw.extent(1, n_experts), "normalize_routing_weights": int(draw.coin())}
    agree("MoE", inputs, "y", constants=weights, attributes={**attributes, **chosen}, tolerance=5e-5)


def test_of_experts_that_are_equally_good_the_last_are_chosen() -> None:
    draw = Drawn(3)
    attributes: dict[str, Any] = {"activation_type": "silu", "k": 2}
    weights = experts(draw, attributes, 4, biased=False)
    routes = np.array([[1, 1, 1, 1], [0, 2, 2, 2], [0, 0, 1, 0], [3, 3, 1, 3]], np.float32)
    inputs = {
        "x": draw.array(4, weights["w2"].shape[1]),
        "routes": routes,
        "w1": None,
        "b1": None,
        "w2": None,
    }
    agree("MoE", inputs, "y", constants=weights, attributes=attributes)


@pytest.mark.parametrize(
    "attributes",
    [{"activation_type": "swiglu"}, {"activation_type": "swiglu", "swiglu_fusion": 2}, {"k": 9}, {"k": 0}],
)
def test_forms_of_experts_that_have_no_rule_are_refused(attributes: dict[str, Any]) -> None:
    attributes = {"activation_type": "relu", **attributes}
    draw = Drawn(1)
    weights = experts(draw, attributes, 4, biased=False)
    inputs = {"x": draw.array(3, weights["w2"].shape[1]), "routes": draw.array(3, 4)}
    names = ["x", "routes", "w1", "", "w2"]
    node = helper.make_node("MoE", names, ["y"], name="node", domain=DOMAIN, **attributes)
    with pytest.raises(UnsupportedOpError, match=r"MoE (has swiglu_fusion|is in a form that)") as caught:
        computed(model_of(node, inputs, {"y": TensorProto.FLOAT}, weights), inputs)
    assert caught.value.operator == "node"


@pytest.mark.parametrize("form", ["plain", "mask", "causal", "past", "columns"])
def test_quantised_attention(form: str) -> None:
    """Products are small enough for ONNX Runtime, whose sums saturate on some machines."""
    draw, width, n = Drawn(len(form)), 8, 2
    x = draw.random.integers(0, 256, (2, 3, width)).astype(np.uint8)
    columns = 3 * width if form == "columns" else 1
    weights = {
        "w": draw.random.integers(-63, 64, (width, 3 * width)).astype(np.int8),
        "b": draw.array(3 * width),
        "sx": np.array(0.02, np.float32),
        "sw": (np.abs(draw.array(columns)) / 50 + 0.01).reshape(() if columns == 1 else (columns,)),
        "zx": np.array(127, np.uint8),
        "zw": np.zeros(() if columns == 1 else (columns,), np.int8),
    }
    inputs = {"x": x} | ({"m": np.array([[1, 1, 0], [1, 0, 1]], np.int32)} if form == "mask" else {})
    names = ["x", "w", "b", "sx", "sw", "m" if form == "mask" else "", "zx", "zw"]
    outputs = ["y"]
    if form == "past":
        inputs["past"] = draw.array(2, 2, n, 4, width // n)
        names.append("past")
        outputs.append("present")
    attributes: dict[str, Any] = {"num_heads": n, "unidirectional": int(form == "causal")}
    node = helper.make_node("QAttention", names, outputs, name="node", domain=DOMAIN, **attributes)
    model = model_of(node, inputs, dict.fromkeys(outputs, TensorProto.FLOAT), weights)
    due, found = by_runtime(model, inputs), computed(model, inputs)
    for name in outputs:
        np.testing.assert_allclose(found[name], due[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("seed", range(4))
def test_pools_of_images_whose_channels_are_last(seed: int, dtype: type[np.generic]) -> None:
    draw = Drawn(seed)
    rank = draw.extent(1, 3)
    shape = (draw.extent(1, 2), *(draw.extent(4, 7) for _ in range(rank)), draw.extent(1, 4))
    x = draw.random.integers(-128, 128, shape).astype(dtype)
    attributes: dict[str, Any] = {
        "kernel_shape": [draw.extent(1, 3) for _ in range(rank)],
        "strides": [draw.extent(1, 2) for _ in range(rank)],
    }
    if draw.coin():
        attributes["pads"] = [int(k > 1) * draw.extent(0, 1) for k in attributes["kernel_shape"] * 2]
    node = helper.make_node("NhwcMaxPool", ["x"], ["y"], name="node", domain=DOMAIN, **attributes)
    model = model_of(node, {"x": x}, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))}, {})
    found = computed(model, {"x": x})["y"].view(dtype)
    np.testing.assert_array_equal(found, by_runtime(model, {"x": x})["y"])
