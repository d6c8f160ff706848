"""Attention over a cache computes what ONNX Runtime computes, and a decoder layer of its operators on both engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.contributed import DOMAIN, Array, Drawn, agree, computed, model_of
from support.engines import by_runtime, on_simulators

from t10.errors import MissingConstantError, UnsupportedOpError


def of_groups(draw: Drawn, *, padded: bool) -> tuple[dict[str, Array | None], dict[str, Any]]:
    """Return inputs and attributes of a GroupQueryAttention; prompts may end in padding."""
    batch, n_kv, group, half, size = (
        draw.extent(1, 2),
        draw.extent(1, 2),
        draw.extent(1, 3),
        8,
        draw.choice(16, 32),
    )
    n, length = n_kv * group, draw.extent(1, 4)
    names = ("q", "k", "v", "pk", "pv", "lengths", "total", "cos", "sin", "places", "scores", "sink")
    inputs: dict[str, Array | None] = dict.fromkeys(names)
    is_first = draw.coin()
    past = 0 if is_first else draw.extent(1, 5)
    batch = 1 if past and length > 1 else batch
    total = past + length
    room = total + draw.extent(0, 3) if padded else past
    if room or draw.coin():
        inputs["pk"], inputs["pv"] = (draw.array(batch, n_kv, max(room, 1), size) for _ in range(2))
    if is_first and not padded:
        inputs["pk"] = inputs["pv"] = None
    if draw.coin():
        inputs["q"] = draw.array(batch, length, (n + 2 * n_kv) * size)
    else:
        inputs["q"] = draw.array(batch, length, n * size)
        inputs["k"], inputs["v"] = (draw.array(batch, length, n_kv * size) for _ in range(2))
    inputs["lengths"] = np.full(batch, total - 1, np.int32)
    if batch > 1:
        least = 1 if is_first else length
        inputs["lengths"] = np.array([total - 1, draw.random.integers(least, total + 1) - 1], np.int32)
    attributes: dict[str, Any] = {"num_heads": n, "kv_num_heads": n_kv}
    if draw.coin():
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(draw.coin())}
        table = draw.random.uniform(0, 6, (24, half)).astype(np.float32)
        inputs["cos"], inputs["sin"] = np.cos(table), np.sin(table)
        if draw.coin():
            inputs["places"] = np.repeat(np.arange(3, 3 + length)[None], batch, 0)
    attributes |= draw.choice(
        {}, {"local_window_size": 2}, {"softcap": 0.8}, {"smooth_softmax": 1}, {"scale": 0.4}
    )
    if draw.coin():
        inputs["scores"] = draw.array(draw.choice(1, batch), draw.choice(1, n), length, total)
    if draw.coin():
        inputs["sink"] = None if "smooth_softmax" in attributes else draw.array(n)
    attributes["qk_output"] = draw.choice(0, 1, 2)
    return inputs, attributes


@pytest.mark.sampled(12)
@pytest.mark.parametrize("padded", [False, True], ids=["grown", "fixed"])
@pytest.mark.parametrize("fixed", [False, True], ids=["lengths", "constant_lengths"])
@pytest.mark.parametrize("seed", range(12))
def test_group_query_attention(seed: int, fixed: bool, padded: bool) -> None:
    inputs, attributes = of_groups(Drawn(seed), padded=padded)
    lengths, q = inputs["lengths"], inputs["q"]
    assert lengths is not None
    assert q is not None
    constants = {"total": np.array(lengths.max() + 1, np.int32)}
    if fixed:
        constants["lengths"] = lengths
        inputs["lengths"] = None
    outputs = "y k_out v_out qk_out" if attributes["qk_output"] else "y k_out v_out"
    agree("GroupQueryAttention", inputs, outputs, constants=constants, attributes=attributes)


def test_a_token_that_is_not_finite_leaves_the_rows_of_others_in_the_cache() -> None:
    draw, shape = Drawn(5), (1, 1, 3, 16)
    k, v = draw.array(1, 2, 16), draw.array(1, 2, 16)
    k[0, 1, 0], v[0, 1, 3] = np.inf, np.nan
    inputs = {"q": draw.array(1, 2, 16), "k": k, "v": v, "pk": draw.array(*shape), "pv": draw.array(*shape)}
    agree(
        "GroupQueryAttention",
        inputs | {"lengths": np.array([4], np.int32), "total": None},
        "y k_out v_out",
        constants={"total": np.array(5, np.int32)},
        attributes={"num_heads": 1, "kv_num_heads": 1},
    )


def test_a_total_length_that_is_computed_must_be_fixed() -> None:
    inputs, attributes = of_groups(Drawn(3), padded=False)
    given = {name: x for name, x in inputs.items() if x is not None} | {"total": np.array(4, np.int32)}
    names = [name if name in given else "" for name in inputs]
    node = helper.make_node("GroupQueryAttention", names, ["y"], name="attend", domain=DOMAIN, **attributes)
    with pytest.raises(MissingConstantError, match="total_sequence_length") as caught:
        computed(model_of(node, given, {"y": TensorProto.FLOAT}, {}), given)
    assert caught.value.inputs == ("total",)


def test_a_form_without_a_rule_is_refused_by_name() -> None:
    inputs, attributes = of_groups(Drawn(3), padded=False)
    given = {name: x for name, x in inputs.items() if x is not None}
    names = [name if name in given else "" for name in inputs]
    constants = {"total": np.array(4, np.int32)}
    names[6] = "total"
    node = helper.make_node(
        "GroupQueryAttention", names, ["y"], domain=DOMAIN, sliding_window_cache=1, **attributes
    )
    with pytest.raises(
        UnsupportedOpError, match=r"com.microsoft.GroupQueryAttention .*a form that has no rule"
    ):
        computed(model_of(node, given, {"y": TensorProto.FLOAT}, constants), given)


def layer(dtype: Any) -> tuple[Any, dict[str, Array]]:
    """Return a step of a decoder of ONNX Runtime's operators, with a cache, and its inputs."""
    draw = Drawn(0, dtype)
    width, n, size = 32, 2, 16
    kind, make = helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), helper.make_node
    table = draw.random.uniform(0, 6, (16, size // 2))
    weights: dict[str, Array] = {
        "g": draw.array(width), "cos": np.cos(table).astype(dtype), "sin": np.sin(table).astype(dtype),
        "qkv": draw.random.integers(0, 256, (2 * width, 2, 8)).astype(np.uint8),
        "scale": (draw.random.uniform(0.01, 0.05, (2 * width, 2))).astype(dtype),
        "o": draw.array(width, width) / 6, "total": np.array(6, np.int32),
    }  # fmt: skip
    packed: dict[str, Any] = {"K": width, "N": 2 * width, "bits": 4, "block_size": 16, "domain": DOMAIN}
    query = ["z", "", "", "pk", "pv", "lengths", "total", "cos", "sin"]
    heads: dict[str, Any] = {"num_heads": n, "kv_num_heads": 1, "do_rotary": 1, "domain": DOMAIN}
    nodes = [
        make("SimplifiedLayerNormalization", ["x", "g"], ["n"], axis=-1, epsilon=1e-5),
        make("MatMulNBits", ["n", "qkv", "scale"], ["z"], **packed),
        make("GroupQueryAttention", query, ["a", "pk_out", "pv_out"], **heads),
        make("MatMul", ["a", "o"], ["p"]),
        make("SkipSimplifiedLayerNormalization", ["p", "x", "g"], ["m", "", "", "s"], domain=DOMAIN),
        make("QuickGelu", ["m"], ["u"], domain=DOMAIN, alpha=1.0),
        make("FusedMatMul", ["u", "o"], ["v"], domain=DOMAIN, transB=1, alpha=0.5),
        make("Add", ["v", "s"], ["y"]),
    ]
    inputs = {
        "x": draw.array(1, 1, width), "pk": draw.array(1, 1, 8, size), "pv": draw.array(1, 1, 8, size),
        "lengths": np.array([5], np.int32),
    }  # fmt: skip
    kinds: dict[str, int] = dict.fromkeys(("y", "pk_out", "pv_out"), kind)
    model = model_of(nodes[0], inputs, kinds, weights)
    model.graph.node.extend(nodes[1:])
    return model, inputs


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["f32", "f16"])
def test_a_decoder_layer_on_both_engines(dtype: Any, tmp_path: Path) -> None:
    model, inputs = layer(dtype)
    due = by_runtime(
        layer(np.float32)[0],
        {n: x.astype(np.float32) if x.dtype == np.float16 else x for n, x in inputs.items()},
    )
    tolerance = 5e-2 if dtype == np.float16 else 2e-4
    for engine, found in on_simulators(model, inputs, tmp_path).items():
        for name, expected in due.items():
            assert found[name].dtype == dtype
            np.testing.assert_allclose(
                found[name], expected, rtol=tolerance, atol=tolerance, err_msg=f"{engine} {name}"
            )
