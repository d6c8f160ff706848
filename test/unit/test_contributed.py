"""Operators of ONNX Runtime for transformers compute what ONNX Runtime computes, over random extents and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.contributed import DOMAIN, SEEDS, Array, Drawn, agree, computed, model_of
from support.engines import by_runtime, saturates

from t10.errors import UnsupportedOpError


@pytest.mark.parametrize("operator", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
@pytest.mark.parametrize("seed", SEEDS)
def test_norms_of_sums(operator: str, seed: int) -> None:
    draw = Drawn(seed)
    shape, width = (draw.extent(), draw.extent()), draw.extent(1, 9)
    inputs = {
        "x": draw.array(*shape, width),
        "skip": draw.array(*shape, width),
        "gamma": draw.array(width),
        "beta": draw.array(width) if draw.coin() else None,
        "bias": draw.array(width) if draw.coin() else None,
    }
    if operator != "SkipLayerNormalization":
        del inputs["beta"]
    outputs = draw.choice("y", "y   sum", "y mean inv", "y  inv sum")
    attributes = {"epsilon": float(draw.choice(1e-5, 1e-2))}
    agree(operator, inputs, outputs, attributes=attributes, tolerance=2e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_simplified_layer_norm(seed: int) -> None:
    draw = Drawn(seed)
    shape = [draw.extent() for _ in range(draw.extent(1, 4))]
    axis = draw.choice(-1, int(draw.random.integers(0, len(shape))))
    inputs = {"x": draw.array(*shape), "scale": draw.array(*shape[axis:])}
    attributes = {"axis": axis, "epsilon": 1e-3}
    agree("SimplifiedLayerNormalization", inputs, "y", domain="", attributes=attributes, tolerance=1e-4)


@pytest.mark.parametrize("operator", ["BiasGelu", "FastGelu", "Gelu", "QuickGelu"])
def test_activations(operator: str) -> None:
    draw = Drawn(5)
    inputs = {"x": 3 * draw.array(2, 3, 8)}
    if operator in ("BiasGelu", "FastGelu"):
        inputs["bias"] = draw.array(8)
    attributes = {"alpha": 1.3} if operator == "QuickGelu" else {}
    agree(operator, inputs, "y", attributes=attributes)


@pytest.mark.parametrize("upper", [0, 1])
def test_triangles(upper: int) -> None:
    agree("Trilu", {"x": Drawn(7).array(2, 4, 6)}, "y", attributes={"upper": upper})


@pytest.mark.parametrize("seed", range(16))
def test_fused_products(seed: int) -> None:
    draw = Drawn(seed)
    m, k, n, batch = draw.extent(), draw.extent(), draw.extent(), (draw.extent(), draw.extent())
    flags = {name: int(draw.coin()) for name in ("transA", "transB")}
    a, b = draw.array(*batch, m, k), draw.array(*batch, k, n)
    a = a.swapaxes(-1, -2) if flags["transA"] else a
    b = b.swapaxes(-1, -2) if flags["transB"] else b
    if draw.coin():
        flags["transBatchA"] = 1
        a = np.moveaxis(a, -2, 0)
    if draw.coin():
        flags["transBatchB"] = 1
        b = np.moveaxis(b, -2, 0)
    inputs = {"a": np.ascontiguousarray(a), "b": np.ascontiguousarray(b)}
    agree("FusedMatMul", inputs, "y", attributes={"alpha": float(draw.choice(1.0, 0.3)), **flags})


@pytest.mark.parametrize("seed", range(16))
def test_multi_head_attention(seed: int) -> None:
    draw = Drawn(seed)
    batch, n, size, length = draw.extent(1, 3), draw.extent(1, 3), draw.extent(1, 4), draw.extent()
    keys, v_size, past = draw.extent(), draw.extent(1, 4), 0
    form = draw.choice("apart", "cached", "past")
    inputs: dict[str, Array | None] = dict.fromkeys(("q", "k", "v", "bias", "mask", "scores", "pk", "pv"))
    inputs["q"] = draw.array(batch, length, n * size)
    if form == "cached":
        v_size = size
        inputs["k"], inputs["v"] = draw.array(batch, n, keys, size), draw.array(batch, n, keys, size)
    else:
        v_size = size if form == "past" else v_size
        keys = length if form == "past" else keys
        inputs["k"], inputs["v"] = draw.array(batch, keys, n * size), draw.array(batch, keys, n * v_size)
    if form == "past":
        past = draw.extent()
        inputs["pk"], inputs["pv"] = draw.array(batch, n, past, size), draw.array(batch, n, past, size)
    if draw.coin() and form != "cached":
        inputs["bias"] = draw.array(2 * n * size + n * v_size)
    total = past + keys
    if draw.coin():
        inputs["mask"] = draw.mask(draw.choice((batch,), (batch, total), (batch, length, total)), total)
    if draw.coin():
        inputs["scores"] = draw.array(draw.choice(1, batch), draw.choice(1, n), length, total)
    attributes: dict[str, Any] = {"scale": 0.7} if draw.coin() else {}
    attributes["unidirectional"] = int(form == "past" and draw.coin())
    outputs = "y pk_out pv_out" if form == "past" else "y"
    agree("MultiHeadAttention", inputs, outputs, attributes={"num_heads": n, **attributes})


@pytest.mark.parametrize(("length", "keys"), [(2, 5), (5, 2), (3, 3)])
def test_a_query_sees_keys_up_to_its_own_place(length: int, keys: int) -> None:
    draw = Drawn(3)
    inputs = {"q": draw.array(2, length, 8), "k": draw.array(2, keys, 8), "v": draw.array(2, keys, 8)}
    agree("MultiHeadAttention", inputs, "y", attributes={"num_heads": 2, "unidirectional": 1})


@pytest.mark.parametrize("form", ["queries, keys and values", "keys and values"])
def test_packed_heads_are_those_apart(form: str) -> None:
    draw = Drawn(2)
    q, k, v = (draw.array(2, 3, 2, 1, 4) for _ in range(3))
    apart = {name: x.reshape(2, 3, 8) for name, x in (("q", q), ("k", k), ("v", v))}
    if form == "keys and values":
        packed = {"q": apart["q"], "k": np.concatenate([k, v], 3)}
    else:
        packed = {"q": np.concatenate([q, k, v], 3)}
    kinds, made = {"y": TensorProto.FLOAT}, list[Array]()
    for inputs, compute in ((apart, by_runtime), (packed, computed)):
        node = helper.make_node("MultiHeadAttention", list(inputs), ["y"], domain=DOMAIN, num_heads=2)
        made.append(compute(model_of(node, inputs, kinds, {}), inputs)["y"])
    np.testing.assert_allclose(made[1], made[0], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("seed", range(16))
def test_attention_with_projections(seed: int) -> None:
    draw = Drawn(seed)
    batch, n, size, length, width = (
        draw.extent(1, 3),
        draw.extent(1, 3),
        draw.extent(1, 4),
        draw.extent(),
        draw.extent(),
    )
    v_size, past = size, 0
    attributes: dict[str, Any] = {"unidirectional": int(draw.coin())}
    inputs: dict[str, Array | None] = {"x": draw.array(batch, length, width)}
    has_past = draw.coin()
    if not has_past and draw.coin():
        v_size = draw.extent(1, 4)
        attributes["qkv_hidden_sizes"] = [n * size, n * size, n * v_size]
    inputs["w"] = draw.array(width, 2 * n * size + n * v_size)
    inputs["bias"] = draw.array(2 * n * size + n * v_size)
    inputs |= dict.fromkeys(("mask", "past", "scores"))
    if has_past:
        past = draw.extent()
        inputs["past"] = draw.array(2, batch, n, past, size)
    total = past + length
    if draw.coin():
        shape = draw.choice((batch,), (2 * batch,), (batch, total), (batch, length, total))
        inputs["mask"] = draw.mask(shape, total)
        if shape == (2 * batch,):
            inputs["mask"][batch:] = draw.random.integers(0, inputs["mask"][:batch])
    if draw.coin() and not has_past:
        inputs["scores"] = draw.array(draw.choice(1, batch), draw.choice(1, n), length, total)
    outputs = "y present" if has_past else "y"
    agree("Attention", inputs, outputs, attributes={"num_heads": n, **attributes})


@pytest.mark.parametrize("seed", SEEDS)
def test_rotary_embedding(seed: int) -> None:
    draw = Drawn(seed)
    batch, n, length, half = draw.extent(1, 3), draw.extent(1, 3), draw.extent(), draw.extent(1, 4)
    size = 2 * half
    attributes: dict[str, Any] = {"interleaved": int(draw.coin())}
    x = draw.array(batch, n, length, size) if draw.coin() else draw.array(batch, length, n * size)
    if x.ndim == 3:
        attributes["num_heads"] = n
    table = draw.random.uniform(0, 6, (9, half)).astype(np.float32)
    one = draw.coin()
    at = np.array([draw.extent(0, 4)]) if one else draw.random.integers(0, 9, (batch, length))
    inputs = {"x": x, "at": at.astype(np.int64), "cos": np.cos(table), "sin": np.sin(table)}
    agree("RotaryEmbedding", inputs, "y", attributes=attributes)


@pytest.mark.parametrize(
    ("bits", "zeros"),
    [(2, "none"), (2, "packed"), (4, "none"), (4, "packed"), (4, "floats"), (8, "none"), (8, "packed")],
)
@pytest.mark.parametrize("rows", [40, 48], ids=["part_of_a_block", "whole_blocks"])
def test_products_with_packed_weights(bits: int, zeros: str, rows: int) -> None:
    draw = Drawn(bits)
    block, columns = 16, 24
    blocks = -(-rows // block)
    inputs: dict[str, Array | None] = {
        "a": draw.array(2, 3, rows),
        "b": None,
        "s": None,
        "z": None,
        "g": None,
        "c": None,
    }
    constants = {
        "b": draw.random.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8),
        "s": draw.random.uniform(0.01, 0.1, (columns, blocks)).astype(np.float32),
    }
    if zeros == "packed":
        constants["z"] = draw.random.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8)
    if zeros == "floats":
        constants["z"] = draw.random.uniform(0, 2**bits, (columns, blocks)).astype(np.float32)
    if bits == 4:
        constants["c"] = draw.array(columns)
    attributes = {"K": rows, "N": columns, "bits": bits, "block_size": block}
    agree(
        "MatMulNBits",
        inputs,
        "y",
        constants=constants,
        tolerance=2e-4 if bits < 8 else 2e-3,
        attributes=attributes,
    )


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("zeros", [False, True])
def test_rows_of_packed_tables(bits: int, zeros: bool) -> None:
    draw = Drawn(bits)
    at = draw.random.integers(0, 20, (2, 3)).astype(np.int64)
    inputs: dict[str, Array | None] = {"t": None, "at": at, "s": None, "z": None}
    constants = {
        "t": draw.random.integers(0, 256, (20, 64 * bits // 8)).astype(np.uint8),
        "s": draw.random.uniform(0.01, 0.1, (20, 4)).astype(np.float32),
    }
    if zeros:
        constants["z"] = draw.random.integers(0, 256, (20, 4 * bits // 8)).astype(np.uint8)
    attributes = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    agree("GatherBlockQuantized", inputs, "y", constants=constants, attributes=attributes)


def test_embeddings() -> None:
    draw = Drawn(0)
    words, segments = (draw.random.integers(0, n, (2, 4)).astype(np.int32) for n in (20, 2))
    tables = {"word": draw.array(20, 8), "place": draw.array(6, 8), "segment": draw.array(2, 8)}
    scales = {"gamma": draw.array(8), "beta": draw.array(8)}
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    inputs = {"words": words, "segments": segments, **tables, **scales, "mask": mask}
    node = helper.make_node("EmbedLayerNormalization", list(inputs), ["y", "n"], domain=DOMAIN, epsilon=1e-5)
    model = model_of(node, inputs, {"y": TensorProto.FLOAT, "n": TensorProto.INT32}, {})
    due, found = by_runtime(model, inputs), computed(model, inputs)
    np.testing.assert_allclose(found["y"], due["y"], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found["n"], due["n"])


@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu", "Tanh", "Clip", "HardSigmoid"])
def test_fused_convolutions(activation: str) -> None:
    draw = Drawn(1)
    params = {"LeakyRelu": [0.3], "Clip": [-0.2, 0.4], "HardSigmoid": [0.3, 0.4]}.get(activation)
    attributes: dict[str, Any] = {"activation_params": params} if params else {}
    inputs = {"x": draw.array(1, 2, 5, 5), "w": draw.array(3, 2, 3, 3), "b": draw.array(3)}
    attributes |= {"activation": activation, "pads": [1] * 4, "kernel_shape": [3, 3]}
    agree("FusedConv", inputs, "y", attributes=attributes)


@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu", "Sigmoid"])
def test_fused_gemms(activation: str) -> None:
    draw = Drawn(1)
    alpha = {"activation_alpha": 0.3} if activation == "LeakyRelu" else {}
    inputs = {"x": draw.array(4, 3), "w": draw.array(5, 3), "b": draw.array(5)}
    attributes = {"activation": activation, "transB": 1, "alpha": 0.5, **alpha}
    agree("FusedGemm", inputs, "y", attributes=attributes)


def test_a_softmax_of_sums() -> None:
    draw = Drawn(1)
    inputs = {"x": draw.array(2, 3, 4, 4), "mask": draw.array(2, 1, 1, 4)}
    node = helper.make_node("BiasSoftmax", ["x", "mask"], ["y"], domain=DOMAIN, axis=3, is_inner_broadcast=0)
    powers = np.exp(inputs["x"] + inputs["mask"])
    found = computed(model_of(node, inputs, {"y": TensorProto.FLOAT}, {}), inputs)
    np.testing.assert_allclose(found["y"], powers / powers.sum(-1, keepdims=True), rtol=1e-5)


def product_as_floats(arrays: dict[str, Array]) -> Array:
    """Return a product of integers with its scales, in exact sums; floats are quantised by their own range."""
    a, b = arrays["a"], arrays["b"].astype(np.int64)
    scale, zero = arrays.get("sa"), arrays.get("za")
    if scale is None or zero is None:
        low, high = min(a.min(), 0), max(a.max(), 0)
        scale = np.float32(high - low) / np.float32(255)
        zero = np.clip(np.rint(-low / scale), 0, 255)
        a = np.clip(np.rint(a / scale) + zero, 0, 255)
    sums = (a.astype(np.int64) - int(zero)) @ (b - arrays["zb"].astype(np.int64))
    result: Array = (sums * (scale * arrays["sb"]) + arrays["c"]).astype(np.float32)
    return result


@pytest.mark.parametrize("operator", ["DynamicQuantizeMatMul", "MatMulIntegerToFloat"])
def test_integer_products_as_floats(operator: str) -> None:
    """By numpy; and by ONNX Runtime, where its sums of such products are right."""
    draw = Drawn(4)
    b = draw.random.integers(-128, 128, (8, 5)).astype(np.int8)
    scales, zeros = draw.random.uniform(0.01, 0.1, 5).astype(np.float32), np.zeros(5, np.int8)
    constants = {"b": b, "sb": scales, "zb": zeros, "c": draw.array(5)}
    given = {"a": draw.array(3, 8)}
    if operator == "MatMulIntegerToFloat":
        constants |= {"sa": np.array(0.02, np.float32), "za": np.array(120, np.uint8)}
        given = {"a": draw.random.integers(0, 256, (3, 8)).astype(np.uint8)}
    order = [name for name in ("a", "b", "sa", "sb", "za", "zb", "c") if name in given or name in constants]
    node = helper.make_node(operator, order, ["y"], name="node", domain=DOMAIN)
    found = computed(model_of(node, given, {"y": TensorProto.FLOAT}, constants), given)
    np.testing.assert_allclose(found["y"], product_as_floats(given | constants), rtol=2e-5, atol=2e-5)
    if not saturates():
        agree(operator, given | dict.fromkeys(order[1:]), "y", constants=constants)


def test_refusals_say_what_was_expected() -> None:
    draw = Drawn(0)
    q, mask = draw.array(1, 3, 32), np.ones((1, 1, 3, 3), np.int32)
    heads = helper.make_node(
        "MultiHeadAttention", ["q", "q", "q", "", "m"], ["y"], domain=DOMAIN, num_heads=2
    )
    with pytest.raises(
        UnsupportedOpError, match=r"a mask 'm' of extents 1x1x3x3 \(expected at most 3"
    ) as caught:
        computed(model_of(heads, {"q": q, "m": mask}, {"y": TensorProto.FLOAT}, {}), {})
    assert "attention_bias" in str(caught.value.hint)
    constants: dict[str, Array] = {"b": np.zeros((8, 2, 8), np.uint8), "s": np.ones((8, 2), np.float32)}
    constants["g"] = np.zeros(32, np.int32)
    sizes: dict[str, Any] = {"K": 32, "N": 8, "bits": 4, "block_size": 16, "domain": DOMAIN}
    product = helper.make_node("MatMulNBits", ["q", "b", "s", "", "g"], ["y"], **sizes)
    with pytest.raises(
        UnsupportedOpError, match=r"MatMulNBits has g_idx 'g' \(expected weights in the order"
    ):
        computed(model_of(product, {"q": q}, {"y": TensorProto.FLOAT}, constants), {})
