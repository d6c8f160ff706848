"""Rewritten operators compute what ONNX's reference implementation computes; the models are of one node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from support.linalg_numpy import run_module

from t10.errors import MissingConstantError, UnsupportedOpError
from t10.frontend.importer import import_proto
from t10.passes.fuse import Fuse

Array = NDArray[Any]
helper: Any = onnx.helper  # some of its functions are typed in part only
RANDOM = np.random.default_rng(11)


def draw(*shape: int, dtype: Any = np.float32) -> Array:
    return RANDOM.standard_normal(shape).astype(dtype)


def model(
    node: Any, inputs: Mapping[str, Array], kind: int, shape: tuple[int, ...], **constants: Array
) -> Any:
    """Return a model of one node with the output y, in the newest opset."""
    known = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, known(x.dtype), x.shape) for name, x in inputs.items()],
        [helper.make_tensor_value_info("y", kind, shape)],
        initializer=[numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [
        helper.make_opsetid("", onnx.defs.onnx_opset_version()),
        helper.make_opsetid("ai.onnx.preview", 1),
    ]
    return helper.make_model(graph, opset_imports=opsets)


def computed(of: Any, inputs: Mapping[str, Array]) -> Array:
    """Return what the imported and fused model computes, interpreted."""
    imported = import_proto(onnx.ModelProto.FromString(of.SerializeToString()), source="m")
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        return run_module(imported.module, {**inputs, **imported.weights})["y"]


def agree(of: Any, inputs: Mapping[str, Array]) -> None:
    """Compare the imported model with the reference implementation."""
    reference: Any = ReferenceEvaluator(of)
    (expected,) = reference.run(None, dict(inputs))
    found = computed(of, inputs)
    np.testing.assert_allclose(found.view(expected.dtype), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_determinants(n: int) -> None:
    x = draw(2, n, n)
    found = computed(
        model(helper.make_node("Det", ["x"], ["y"]), {"x": x}, TensorProto.FLOAT, (2,)), {"x": x}
    )
    np.testing.assert_allclose(found, np.linalg.det(x), rtol=1e-4, atol=1e-4)


def test_determinants_of_large_matrices_are_refused() -> None:
    x = draw(12, 12)
    with pytest.raises(UnsupportedOpError, match=r"Det.* of more than 6 rows"):
        computed(model(helper.make_node("Det", ["x"], ["y"]), {"x": x}, TensorProto.FLOAT, ()), {"x": x})


@pytest.mark.parametrize("factor", ["alpha", "beta"])
def test_fractions_of_integers_are_refused(factor: str) -> None:
    inputs = {name: np.ones((2, 2), np.int32) for name in "abc"}
    node = helper.make_node("Gemm", ["a", "b", "c"], ["y"], **{factor: 0.5})
    with pytest.raises(UnsupportedOpError, match=f"{factor} = 0.5"):
        import_proto(model(node, inputs, TensorProto.INT32, (2, 2)), source="m")
    whole = helper.make_node("Gemm", ["a", "b", "c"], ["y"], **{factor: 3.0})
    agree(model(whole, inputs, TensorProto.INT32, (2, 2)), inputs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", ""]])
def test_a_product_without_a_third_operand_is_scaled(dtype: Any, names: list[str]) -> None:
    inputs = {"a": (4 * draw(5, 3)).astype(dtype), "b": (4 * draw(2, 5)).astype(dtype)}
    node = helper.make_node("Gemm", names, ["y"], alpha=-3.0, beta=7.0, transA=1, transB=1)
    agree(model(node, inputs, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), (3, 2)), inputs)


def test_ignored_classes_may_be_infinite() -> None:
    inputs = {"x": np.array([[1, -2], [np.inf, 3]], np.float32), "t": np.array([1, 0])}
    node = helper.make_node("NegativeLogLikelihoodLoss", ["x", "t"], ["y"], ignore_index=0)
    agree(model(node, inputs, TensorProto.FLOAT, ()), inputs)


def test_slopes_are_not_rounded_to_f16() -> None:
    x = np.array([-65504, -3, 5], np.float16)
    node = helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.1)
    found = computed(model(node, {"x": x}, TensorProto.FLOAT16, (3,)), {"x": x})
    np.testing.assert_array_equal(found, np.array([-6552, -0.3, 5], np.float16))


def test_products_of_f16_go_beyond_its_range() -> None:
    x = np.array([[300, 400, 1e-3, 2e-2]], np.float16)
    node = helper.make_node("ReduceProd", ["x"], ["y"], keepdims=0)
    found = computed(model(node, {"x": x}, TensorProto.FLOAT16, ()), {"x": x})
    np.testing.assert_array_equal(found, np.float16(np.prod(x, dtype=np.float64)))


def test_running_means_of_a_batch_may_be_infinite() -> None:
    x = draw(2, 3, 4)
    x[0, 1, 2] = np.inf
    inputs = {"x": x, **{name: np.ones(3, np.float32) for name in ("scale", "bias", "mean", "var")}}
    node = helper.make_node("BatchNormalization", [*inputs], ["n", "y", "v"], training_mode=1)
    agree(model(node, inputs, TensorProto.FLOAT, (3,)), inputs)


@pytest.mark.parametrize("k", [-2, 0, 1, 9])
def test_diagonals(k: int) -> None:
    x = draw(3, 5)
    node = helper.make_node("EyeLike", ["x"], ["y"], k=k, dtype=TensorProto.INT32)
    agree(model(node, {"x": x}, TensorProto.INT32, (3, 5)), {"x": x})


@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 3, 2, 4, 5)])
def test_grids_of_an_affine_map(size: tuple[int, ...], aligned: int) -> None:
    n = len(size) - 2
    theta = draw(2, n, n + 1)
    node = helper.make_node("AffineGrid", ["theta", "size"], ["y"], align_corners=aligned)
    shape = (2, *size[2:], n)
    agree(
        model(node, {"theta": theta}, TensorProto.FLOAT, shape, size=np.array(size, np.int64)),
        {"theta": theta},
    )


def test_grids_need_a_constant_size() -> None:
    theta, size = draw(2, 2, 3), np.array((2, 3, 4, 5), np.int64)
    node = helper.make_node("AffineGrid", ["theta", "size"], ["y"])
    with pytest.raises(MissingConstantError, match="AffineGrid needs constants for its size") as raised:
        computed(model(node, {"theta": theta, "size": size}, TensorProto.FLOAT, (2, 4, 5, 2)), {})
    assert raised.value.inputs == ("size",)


@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel"])
@pytest.mark.parametrize("samples", [1, 3])
def test_regions_of_images(mode: str, samples: int) -> None:
    """Some regions hang over the edges of the image, one lies outside."""
    inputs = {
        "x": draw(2, 3, 6, 7),
        "regions": np.array([[0, 0, 4, 4], [1.5, 2, 12, 9], [-6, -5, 2, 3], [30, 30, 40, 50]], np.float32),
        "batch": np.array([0, 1, 1, 0], np.int64),
    }
    node = helper.make_node(
        "RoiAlign", list(inputs), ["y"], output_height=2, output_width=3, sampling_ratio=samples,
        spatial_scale=0.75, coordinate_transformation_mode=mode,
    )  # fmt: skip
    agree(model(node, inputs, TensorProto.FLOAT, (4, 3, 2, 3)), inputs)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({}, "takes as many samples as a region is large: sampling_ratio is 0"),
        ({"sampling_ratio": 2, "mode": "max"}, "has mode max .expected avg."),
    ],
)
def test_regions_that_have_no_rule_are_refused_by_their_reason(
    attributes: dict[str, Any], reason: str
) -> None:
    inputs = {"x": draw(1, 1, 4, 4), "regions": draw(1, 4), "batch": np.array([0], np.int64)}
    node = helper.make_node("RoiAlign", list(inputs), ["y"], **attributes)
    with pytest.raises(UnsupportedOpError, match=f"RoiAlign {reason}"):
        computed(model(node, inputs, TensorProto.FLOAT, (1, 1, 1, 1)), inputs)


@pytest.mark.parametrize(("groups", "kinds"), [(1, 1), (2, 1), (1, 2)])
def test_convolutions_whose_windows_are_deformed(groups: int, kinds: int) -> None:
    inputs = {
        "x": draw(2, 4, 5, 6),
        "w": draw(2, 4 // groups, 3, 2),
        "offset": draw(2, kinds * 3 * 2 * 2, 3, 3),
        "b": draw(2),
        "mask": draw(2, kinds * 3 * 2, 3, 3),
    }
    node = helper.make_node(
        "DeformConv", list(inputs), ["y"], group=groups, offset_group=kinds, pads=[1, 0, 1, 1],
        strides=[2, 2], dilations=[1, 2], kernel_shape=[3, 2],
    )  # fmt: skip
    agree(model(node, inputs, TensorProto.FLOAT, (2, 2, 3, 3)), inputs)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_choices_by_constant_conditions(axis: int | None) -> None:
    x = draw(3, 4)
    condition = np.array([False, True, True])
    node = helper.make_node("Compress", ["x", "chosen"], ["y"], axis=axis)
    shape = np.compress(condition, x, axis=axis).shape
    agree(model(node, {"x": x}, TensorProto.FLOAT, shape, chosen=condition), {"x": x})
    with pytest.raises(MissingConstantError, match="one slice per condition that holds") as raised:
        computed(model(node, {"x": x, "chosen": condition}, TensorProto.FLOAT, shape), {})
    assert raised.value.inputs == ("chosen",)


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize(("shape", "axis"), [((2, 3, 5, 4), -2), ((2, 5, 4), 1), ((2, 3, 5), 2)])
def test_caches_are_written_from_a_row_of_each_batch_on(shape: tuple[int, ...], axis: int, mode: str) -> None:
    written = list(shape)
    written[axis] = 2
    inputs = {"past": draw(*shape), "new": draw(*written)}
    inputs["at"] = np.array([1, 4 if mode == "circular" else 3], np.int64)
    node = helper.make_node("TensorScatter", list(inputs), ["y"], axis=axis, mode=mode)
    expected = inputs["past"].copy()
    for batch, first in enumerate(inputs["at"]):
        for step in range(2):
            place: list[Any] = [slice(None)] * len(shape)
            place[0], place[axis] = batch, (first + step) % 5
            source = list(place)
            source[axis] = step
            expected[tuple(place)] = inputs["new"][tuple(source)]
    found = computed(model(node, inputs, TensorProto.FLOAT, shape), inputs)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("found", "to"), [(np.int8, np.uint8), (np.uint8, np.int8), (np.uint32, np.int32)])
def test_integers_keep_their_bits(found: Any, to: Any) -> None:
    bounds = np.iinfo(found)
    x = np.array([bounds.min, 0, 1, bounds.max], found)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    of = model(helper.make_node("BitCast", ["x"], ["y"], to=kind), {"x": x}, kind, (4,))
    signed = np.dtype(f"i{x.itemsize}")
    assert computed(of, {"x": x.view(signed)}).view(to).tolist() == x.view(to).tolist()


def test_the_previewed_attention_is_its_function_body() -> None:
    inputs = {name: draw(1, 2, 4, 8) for name in "qkv"}
    node = helper.make_node("FlexAttention", list("qkv"), ["y"], domain="ai.onnx.preview")
    scores = inputs["q"] @ inputs["k"].swapaxes(-1, -2) / np.sqrt(np.float32(8))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ inputs["v"]
    found = computed(model(node, inputs, TensorProto.FLOAT, (1, 2, 4, 8)), inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [np.uint8, np.int32])
@pytest.mark.parametrize("attributes", [{"is_causal": 1}, {"left_window_size": 1}, {}])
def test_a_mask_of_integers_is_that_of_floats(kind: Any, attributes: Any) -> None:
    """The function body of ONNX makes integers of -infinity, which wrap or are 0."""
    inputs = {name: draw(1, 2, 4, 8) for name in "qkv"}
    inputs["m"] = (np.arange(16).reshape(4, 4) * 5 % 9 - (0 if kind is np.uint8 else 4)).astype(kind)
    node = helper.make_node("Attention", list("qkvm"), ["y"], **attributes)
    plain = {**inputs, "m": inputs["m"].astype(np.float32)}
    of = [model(node, given, TensorProto.FLOAT, (1, 2, 4, 8)) for given in (plain, inputs)]
    reference: Any = ReferenceEvaluator(of[0])
    (expected,) = reference.run(None, plain)
    np.testing.assert_allclose(computed(of[1], inputs), expected, rtol=1e-5, atol=1e-5)


def test_only_the_shape_of_what_a_shape_is_taken_of_counts() -> None:
    """The pads decide how long the padded rows are, the rows themselves do not."""
    nodes = [
        helper.make_node("Pad", ["x", "pads"], ["wide"]),
        helper.make_node("Shape", ["wide"], ["extents"]),
        helper.make_node("Expand", ["one", "extents"], ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]),
        helper.make_tensor_value_info("pads", TensorProto.INT64, [2]),
        helper.make_tensor_value_info("one", TensorProto.FLOAT, [1]),
    ]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    with pytest.raises(MissingConstantError) as raised:
        import_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), source="m")
    assert raised.value.inputs == ("pads",)


CORNERS = np.array([-np.inf, -4, -2.5, -1, -0.0, 0.0, 0.5, 3, np.inf, np.nan], np.float32)


@pytest.mark.parametrize(
    ("operator", "options", "constants", "expected"),
    [
        ("LeakyRelu", {"alpha": -0.5}, {}, [np.inf, 2, 1.25, 0.5, -0.0, 0.0, 0.5, 3, np.inf, np.nan]),
        (
            "Mod",
            {"fmod": 1},
            {"b": np.array(-2, np.float32)},
            [np.nan, -0.0, -0.5, -1, -0.0, 0.0, 0.5, 1, np.nan, np.nan],
        ),
    ],
)
def test_corners_are_exact_to_the_sign_of_zero(
    operator: str, options: dict[str, float], constants: dict[str, Array], expected: list[float]
) -> None:
    node = helper.make_node(operator, ["x", *constants], ["y"], **options)
    of = model(node, {"x": CORNERS}, TensorProto.FLOAT, CORNERS.shape, **constants)
    found = computed(of, {"x": CORNERS})
    np.testing.assert_array_equal(found, expected)
    is_zero = found == 0
    np.testing.assert_array_equal(np.signbit(found[is_zero]), np.signbit(expected)[is_zero])


def test_gelu_by_tanh_is_that_of_onnx() -> None:
    x = np.linspace(-6, 6, 241, dtype=np.float32)
    node = helper.make_node("Gelu", ["x"], ["y"], approximate="tanh")
    found = computed(model(node, {"x": x}, TensorProto.FLOAT, x.shape), {"x": x})
    wide = x.astype(np.float64)
    due = 0.5 * wide * (1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)))
    np.testing.assert_allclose(found, due, rtol=2e-6)


@pytest.mark.parametrize("p", [1, 2])
def test_rows_without_length_stay_zero_when_normalized(p: int) -> None:
    x = np.array([[0, 0], [3, -4]], np.float32)
    node = helper.make_node("LpNormalization", ["x"], ["y"], p=p)
    found = computed(model(node, {"x": x}, TensorProto.FLOAT, x.shape), {"x": x})
    np.testing.assert_allclose(found, x / [[1], [7 if p == 1 else 5]], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.int32])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_shifts_by_the_width_or_more_leave_the_sign(dtype: Any, direction: str) -> None:
    width = 8 * np.dtype(dtype).itemsize
    inputs = {"x": np.array([-8, 8, -1, -8], dtype), "n": np.array([width, width + 1, 100, -1], dtype)}
    node = helper.make_node("BitShift", ["x", "n"], ["y"], direction=direction)
    found = computed(model(node, inputs, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), (4,)), inputs)
    assert found.tolist() == ([0, 0, 0, 0] if direction == "LEFT" else [-1, 0, -1, -1])
