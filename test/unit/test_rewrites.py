"""Operators written with others compute what ONNX Runtime computes; what must be constant is told or determined."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator as UntypedEvaluator
from support.linalg_numpy import run_module

import t10
from t10.cli.arguments import Arguments
from t10.cli.entry import main
from t10.cli.options import constants_of
from t10.errors import InputError, MissingConstantError, UnsupportedOpError
from t10.frontend.importer import import_proto
from t10.passes.fuse import Fuse

Array = NDArray[Any]
helper: Any = onnx.helper  # some of its functions are typed in part only
evaluator: Any = UntypedEvaluator
RANDOM = np.random.default_rng(5)


def draw(*shape: int, dtype: Any = np.float32) -> Array:
    return RANDOM.standard_normal(shape).astype(dtype)


def model(
    node: Any, inputs: Mapping[str, Array], outputs: Mapping[str, Any], opset: int = 18, **constants: Any
) -> Any:
    """Return a model of one node; `outputs` gives (element type, shape or None) by name."""
    kind = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, kind(x.dtype), x.shape) for name, x in inputs.items()],
        [helper.make_tensor_value_info(name, *each) for name, each in outputs.items()],
        initializer=[numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def agree(of: Any, inputs: Mapping[str, Array], tolerance: float = 1e-5) -> None:
    """Compare the imported and fused model, interpreted, with ONNX Runtime."""
    session: Any = onnxruntime.InferenceSession(of.SerializeToString(), providers=["CPUExecutionProvider"])
    names: list[str] = [value.name for value in session.get_outputs()]
    expected: dict[str, Array] = dict(zip(names, session.run(names, dict(inputs)), strict=True))
    imported = import_proto(onnx.ModelProto.FromString(of.SerializeToString()), source="m")
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        found = run_module(imported.module, {**inputs, **imported.weights})
    for name, reference in expected.items():
        y = found[name].view(reference.dtype) if found[name].dtype.kind in "iu" else found[name]
        np.testing.assert_allclose(y, reference, rtol=tolerance, atol=tolerance, err_msg=name)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("operator", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [None, (3, 1)])
def test_recurrent_operators(operator: str, direction: str, lengths: tuple[int, ...] | None) -> None:
    steps, batch, n, hidden = 3, 2, 4, 3
    d, gates = (2 if direction == "bidirectional" else 1), {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    inputs = {
        "x": draw(steps, batch, n), "w": draw(d, gates * hidden, n), "r": draw(d, gates * hidden, hidden),
        "b": draw(d, 2 * gates * hidden), "h": draw(d, batch, hidden),
    }  # fmt: skip
    names = ["x", "w", "r", "b", "", "h"]
    if lengths is not None:
        inputs["n"], names[4] = np.array(lengths, np.int32), "n"
    if operator == "LSTM":
        inputs |= {"c": draw(d, batch, hidden), "p": draw(d, 3 * hidden)}
        names += ["c", "p"]
    options: dict[str, Any] = {"linear_before_reset": 1} if operator == "GRU" else {}
    node = helper.make_node(
        operator, names, ["y", "last"], hidden_size=hidden, direction=direction, clip=1.5, **options
    )
    agree(model(node, inputs, {"y": (1, None), "last": (1, None)}, opset=14), inputs)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Affine", {"activation_alpha": [0.5]}),
        ("ScaledTanh", {"activation_alpha": [0.5], "activation_beta": [2.0]}),
    ],
)
def test_activations_whose_numbers_have_no_default_state_them(
    name: str, given: dict[str, list[float]]
) -> None:
    inputs = {"x": draw(2, 2, 4), "w": draw(1, 3, 4), "r": draw(1, 3, 3)}
    for options in (given, {}):
        node = helper.make_node("RNN", list(inputs), ["y"], hidden_size=3, activations=[name], **options)
        of = model(node, inputs, {"y": (1, None)}, opset=14)
        if options:
            import_proto(onnx.ModelProto.FromString(of.SerializeToString()), source="m")
            continue
        with pytest.raises(UnsupportedOpError, match=rf"RNN activates by {name.lower()} without"):
            import_proto(onnx.ModelProto.FromString(of.SerializeToString()), source="m")


@pytest.mark.slow
@settings(max_examples=8)
@given(
    group=st.integers(1, 2),
    stride=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.integers(1, 2),
    pads=st.tuples(*(st.integers(0, 2) for _ in range(4))),
    more=st.integers(0, 1),
)
def test_transposed_convolutions(
    group: int, stride: tuple[int, int], dilation: int, pads: tuple[int, ...], more: int
) -> None:
    more = more if min(stride) > 1 else 0
    inputs = {"x": draw(1, 4, 5, 4), "w": draw(4, 3, 3, 2), "b": draw(3 * group)}
    node = helper.make_node(
        "ConvTranspose", ["x", "w", "b"], ["y"], group=group, strides=stride, pads=pads,
        dilations=[dilation, dilation], output_padding=[more, more],
    )  # fmt: skip
    agree(model(node, inputs, {"y": (1, None)}, opset=11), inputs, 1e-4)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_a_transposed_convolution_of_a_kernel_shorter_than_its_stride(auto_pad: str) -> None:
    inputs = {"x": draw(1, 2, 5, 5), "w": draw(2, 3, 1, 3)}
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 3], auto_pad=auto_pad)
    agree(model(node, inputs, {"y": (1, None)}), inputs, 1e-4)


@settings(max_examples=8)
@given(
    mode=st.sampled_from(["nearest", "linear", "cubic"]),
    coordinates=st.sampled_from(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]),
    scales=st.tuples(st.sampled_from([0.5, 1.0, 2.0, 2.5]), st.sampled_from([0.5, 1.0, 1.5, 3.0])),
    excludes=st.integers(0, 1),
)
def test_resizing(mode: str, coordinates: str, scales: tuple[float, float], excludes: int) -> None:
    inputs = {"x": draw(1, 2, 4, 6)}
    options = {"exclude_outside": excludes} if mode == "cubic" else {}
    node = helper.make_node(
        "Resize", ["x", "", "s"], ["y"], mode=mode, coordinate_transformation_mode=coordinates,
        nearest_mode="floor", **options,
    )  # fmt: skip
    agree(
        model(node, inputs, {"y": (1, None)}, opset=13, s=np.array([1, 1, *scales], np.float32)), inputs, 1e-4
    )


@pytest.mark.parametrize(
    ("options", "extent", "scale"),
    [
        # What is nearest hangs on the last bit of an f32.
        (
            {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
            7,
            0.6,
        ),
        (
            {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
            7,
            1.2,
        ),
        (
            {
                "mode": "nearest",
                "coordinate_transformation_mode": "asymmetric",
                "nearest_mode": "round_prefer_ceil",
            },
            4,
            1.2,
        ),
        ({"mode": "linear", "antialias": 1}, 8, 0.4),
        ({"mode": "cubic", "antialias": 1}, 8, 0.6),
        ({"mode": "linear", "coordinate_transformation_mode": "half_pixel"}, 5, 2.0),
        ({"mode": "cubic", "coordinate_transformation_mode": "align_corners"}, 5, 2.2),
    ],
)
def test_what_an_element_of_a_resized_row_is_made_of(
    options: dict[str, Any], extent: int, scale: float
) -> None:
    inputs = {"x": draw(1, 1, 4, extent)}
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], **options)
    scales = np.array([1, 1, 1, scale], np.float32)
    agree(model(node, inputs, {"y": (1, None)}, s=scales), inputs)


@pytest.mark.parametrize(
    ("scales", "is_moved"),
    [((2.0, 3.0), True), ((0.5, 0.5), True), ((1.0, 4.0), True), ((0.25, 2.0), True), ((1.5, 1.0), False)],
)
def test_what_is_nearest_is_moved_where_it_follows_a_rule(
    scales: tuple[float, float], is_moved: bool
) -> None:
    inputs = {"x": draw(2, 3, 8, 6).astype(np.float16)}
    nodes = [
        helper.make_node(
            "Resize", ["x", "", "s"], ["r"], mode="nearest", coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        helper.make_node("Abs", ["r"], ["y"]),
    ]  # fmt: skip
    of = model(nodes[0], inputs, {"y": (10, None)}, opset=18, s=np.array([1, 1, *scales], np.float32))
    of.graph.node.append(nodes[1])
    agree(of, inputs)
    imported = import_proto(onnx.ModelProto.FromString(of.SerializeToString()), source="m")
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        assert ('kind = "gather"' in str(imported.module)) != is_moved


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_extents_that_keep_their_ratio_are_rounded(policy: str) -> None:
    # Half of 7 is 4 elements, and 7 eighths of 5 are 4.
    inputs = {"x": draw(7, 5)}
    node = helper.make_node(
        "Resize", ["x", "", "", "n"], ["y"], mode="linear", keep_aspect_ratio_policy=policy
    )
    agree(model(node, inputs, {"y": (1, None)}, n=np.array([4, 4], np.int64)), inputs)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("how", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_scattering(how: str, dtype: Any) -> None:
    x, places = (draw(4, 5) * 10).astype(dtype), np.array([[0, -1, 2], [3, 1, 0]])
    inputs = {"x": x, "i": places, "u": (draw(2, 3) * 10).astype(dtype)}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=1, reduction=how)
    agree(model(node, inputs, {"y": (kind, None)}), inputs)
    inputs = {"x": x, "i": np.array([[2], [-4]]), "u": (draw(2, 5) * 10).astype(dtype)}
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=how)
    agree(model(node, inputs, {"y": (kind, None)}), inputs)


@pytest.mark.parametrize("aligned", [0, 1])
def test_cubic_samples_at_the_border_are_those_of_the_evaluator(aligned: int) -> None:
    # ONNX Runtime goes on beyond the border as if there were no end; ONNX's text takes the value of the border.
    inputs = {"x": draw(1, 2, 5, 6), "grid": draw(1, 7, 9, 2) * np.float32(1.3)}
    node = helper.make_node(
        "GridSample", ["x", "grid"], ["y"], mode="cubic", padding_mode="border", align_corners=aligned
    )
    of = model(node, inputs, {"y": (1, None)}, opset=20)
    (expected,) = evaluator(of).run(None, inputs)
    imported = import_proto(onnx.ModelProto.FromString(of.SerializeToString()), source="m")
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        found = run_module(imported.module, {**inputs, **imported.weights})
    np.testing.assert_allclose(found["y"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_blocks_of_pixels_are_channels_in_either_order(mode: str, dtype: Any) -> None:
    # Blocks of 2 by 2 in a tensor of 3 channels: the two orders differ in every channel but the first and last.
    inputs = {"x": RANDOM.integers(0, 255, (2, 12, 5, 7)).astype(dtype)}
    node = helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2, mode=mode)
    agree(model(node, inputs, {"y": (helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)}), inputs)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_quantising_there_and_back(dtype: Any, axis: int | None) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = () if axis is None else ((3, 4)[axis],)
    scale, zero = np.abs(draw(*shape)) * 0.1 + 0.01, np.full(shape, 3, dtype)
    options = {} if axis is None else {"axis": axis}
    inputs = {"x": draw(3, 4) * 9}
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], **options)
    agree(model(node, inputs, {"y": (kind, None)}, s=scale.astype(np.float32), z=zero), inputs)
    inputs = {"q": RANDOM.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (3, 4)).astype(dtype)}
    node = helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], **options)
    agree(model(node, inputs, {"y": (1, None)}, s=scale.astype(np.float32), z=zero), inputs)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_quotients_between_two_levels_and_beyond_the_last(dtype: Any, kind: Any) -> None:
    x = np.concatenate([np.arange(-600, 601) * 0.25, draw(4000) * 9]).astype(kind)
    for scale in (0.5, 0.1):
        node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])
        outputs = {"y": (helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)}
        of = model(node, {"x": x}, outputs, 19, s=kind(scale), z=dtype(3))
        imported = import_proto(of, source="m")
        with imported.module.context:
            found = run_module(imported.module, {"x": x, **imported.weights})["y"]
        # ONNX divides in the type of both: a quotient of f16 may be rounded to one halfway between two levels.
        due = np.clip(
            np.rint(x / kind(scale)).astype(np.float32) + 3, np.iinfo(dtype).min, np.iinfo(dtype).max
        )
        np.testing.assert_array_equal(found.view(dtype), due.astype(dtype))


@pytest.mark.parametrize("x", [[3, 9], [-9, -3], [0, 0], [-1, 7.3]])
def test_ranges_are_found_with_zero_in_them(x: list[float]) -> None:
    inputs = {"x": np.array(x, np.float32)}
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    agree(model(node, inputs, {"y": (2, None), "s": (1, None), "z": (2, None)}), inputs)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("dtype", "zero", "is_constant"),
    [(np.uint8, 0, True), (np.uint8, 255, True), (np.int8, 127, True), (np.int8, -128, False)],
)
def test_long_sums_of_integers_are_exact(dtype: Any, zero: int, is_constant: bool, tmp_path: Path) -> None:
    ends = np.iinfo(dtype)
    far = (
        ends.max - RANDOM.integers(0, 3, (4, 601))
        if zero <= 0
        else ends.min + RANDOM.integers(0, 3, (4, 601))
    )
    inputs, zeros = {"a": far.astype(dtype), "b": far.T.astype(dtype)}, {"za": dtype(zero), "zb": dtype(zero)}
    due = (far - zero) @ (far - zero).T
    assert (due > 2**24).all()
    assert (due.astype(np.float32) != due).any()
    inputs |= {} if is_constant else {name: np.array(value) for name, value in zeros.items()}
    node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
    of = model(node, inputs, {"y": (6, [4, 4])}, **(zeros if is_constant else {}))
    (tmp_path / "m.onnx").write_bytes(of.SerializeToString())
    found = t10.compile(tmp_path / "m.onnx", chip="test-4").run(inputs)["y"]
    np.testing.assert_array_equal(found, due)


def test_scales_are_multiplied_before_they_are_divided() -> None:
    # Their quotient is exactly one half then: every other result lies between two levels.
    scales = np.float32(0.81513757), np.float32(0.91362804)
    made = 2 * (scales[0] * scales[1])
    assert scales[0] * (scales[1] / made) != 0.5
    inputs = {"a": np.arange(-8, 8, dtype=np.int8)[:, None], "b": np.arange(-8, 8, dtype=np.int8)[None]}
    constants = {
        "sa": scales[0],
        "za": np.int8(0),
        "sb": scales[1],
        "zb": np.int8(0),
        "sy": made,
        "zy": np.int8(0),
    }
    node = helper.make_node("QLinearMatMul", ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], ["y"])
    agree(model(node, inputs, {"y": (3, None)}, 18, **constants), inputs)


def test_blocks_of_scales_are_as_long_as_they_must_be() -> None:
    q, scale = np.arange(10, dtype=np.int8).reshape(2, 5), np.array([[1, 2, 4], [8, 16, 32]], np.float32)
    node = helper.make_node("DequantizeLinear", ["q", "s"], ["y"], axis=1)
    imported = import_proto(model(node, {"q": q}, {"y": (1, [2, 5])}, 21, s=scale), source="m")
    with imported.module.context:
        found = run_module(imported.module, {"q": q, **imported.weights})["y"]
    np.testing.assert_array_equal(found, q * scale[:, [0, 0, 1, 1, 2]])


def test_bytes_without_sign_are_given_and_returned_as_such(tmp_path: Path) -> None:
    """And so they are by a program that was saved and loaded again."""
    x = np.array([0, 100, 200, 255], np.uint8)
    node = helper.make_node("Max", ["x", "y"], ["z"], name="larger")
    (tmp_path / "m.onnx").write_bytes(model(node, {"x": x, "y": x}, {"z": (2, [4])}).SerializeToString())
    executable = t10.compile(tmp_path / "m.onnx", chip="test-4")
    executable.save(tmp_path / "out")
    for each in (executable, t10.Executable.load(tmp_path / "out")):
        found = each.run({"x": x, "y": x[::-1]})["z"]
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, np.maximum(x, x[::-1]))
        with pytest.raises(InputError, match="input x has type int16, expected uint8"):
            each.run({"x": x.astype(np.int16), "y": x})


def _summing(**options: Any) -> Any:
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], name="total", **options)
    inputs = {"x": draw(3, 2, 2), "axes": np.array([1])}
    return model(node, inputs, {"y": (1, [3, 2] if "keepdims" in options else [3, 1, 2])}, opset=13)


def test_what_must_be_constant_is_told_with_the_inputs_that_would_do() -> None:
    with pytest.raises(MissingConstantError, match="ReduceSum needs constants for its axes") as caught:
        import_proto(_summing(keepdims=0), source="m")
    assert caught.value.inputs == ("axes",)
    assert "--constant axes=" in str(caught.value)


def test_an_input_that_is_fixed_is_none_any_longer() -> None:
    imported = import_proto(_summing(keepdims=0), source="m", constants={"axes": [1]})
    assert imported.input_names == ("x",)
    x = draw(3, 2, 2)
    np.testing.assert_allclose(run_module(imported.module, {"x": x})["y"], x.sum(1), rtol=1e-6)


@pytest.mark.parametrize("axes", ["1", "1,"])
def test_one_number_fixes_an_input_of_one_element(
    axes: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As does a list of it, also where ONNX Runtime is given it."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_summing(keepdims=0).SerializeToString())
    assert main(["verify", str(path), "--chip", "test-4", "--constant", f"axes={axes}", "--seeds", "1"]) == 0
    assert "verified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("constants", "message"),
    [
        ({"k": [1]}, "the model has no such input"),
        ({"axes": [[1]]}, r"has shape \[1, 1\], expected 1"),
        ({"axes": [0.5]}, "is of type float64, expected int64"),
    ],
)
def test_constants_that_do_not_fit_are_refused(constants: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        import_proto(_summing(keepdims=0), source="m", constants=constants)


def test_declared_shapes_determine_axes() -> None:
    """(3, 2, 2) summed to (3, 1, 2) leaves no choice, to (3, 2) it does."""
    imported = import_proto(_summing(), source="m")
    x = draw(3, 2, 2)
    found = run_module(imported.module, {"x": x, "axes": np.array([1])})["y"]
    np.testing.assert_allclose(found, x.sum(1, keepdims=True), rtol=1e-6)


def test_constants_on_the_command_line(tmp_path: Path) -> None:
    np.save(tmp_path / "k.npy", np.array([[1, 2]]))
    words = ("a=1,2", "b=3", "c=-1.5", "d=4,", f"e={tmp_path / 'k.npy'}", "f=")
    found = constants_of(Arguments(command="compile", constants=words))
    assert {name: (x.tolist(), x.shape) for name, x in found.items()} == {
        "a": ([1, 2], (2,)), "b": (3, ()), "c": (-1.5, ()), "d": ([4], (1,)), "e": ([[1, 2]], (1, 2)), "f": ([], (0,)),
    }  # fmt: skip
    for bad in ("x", "=1", "x=a", f"x={tmp_path / 'absent.npy'}"):
        with pytest.raises(InputError):
            constants_of(Arguments(command="compile", constants=(bad,)))


def test_types_that_cannot_be_lowered_are_refused_by_name() -> None:
    text = "g (bfloat16[2] x) => (bfloat16[2] y) { y = Identity (x) }"
    of: Any = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> {text}')
    with pytest.raises(UnsupportedOpError, match="of element type bfloat16"):
        import_proto(of, source="m")


def test_old_opsets_are_raised() -> None:
    """Opset 6 has attributes for what later ones have inputs for, and weights that are inputs."""
    inputs = {"x": draw(2, 3, 4)}
    node = helper.make_node("Unsqueeze", ["x"], ["y"], axes=[0])
    old = model(node, inputs, {"y": (1, [1, 2, 3, 4])}, opset=6)
    old.ir_version = 3
    imported = import_proto(old, source="m")
    np.testing.assert_array_equal(run_module(imported.module, inputs)["y"], inputs["x"][None])


@pytest.mark.parametrize("pads", [[-(2**31), 0, 2**62, 0], [0, 0, -4, 0]])
def test_windows_that_make_no_sense_are_not_written_out(pads: list[int]) -> None:
    node = helper.make_node("MaxPool", ["x"], ["y", "z"], kernel_shape=[5, 5], pads=pads)
    made = model(
        node,
        {"x": draw(1, 1, 5, 5)},
        {"y": (onnx.TensorProto.FLOAT, None), "z": (onnx.TensorProto.INT64, None)},
    )
    with pytest.raises((InputError, UnsupportedOpError)):
        import_proto(made, source="m")


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("is_node", [False, True])
def test_no_axes_squeeze_all_dims_of_extent_1(opset: int, is_node: bool) -> None:
    """As in ONNX Runtime; ONNX's inference takes out none."""
    axes = "" if is_node else "<int64[0] axes = {}>"
    made = "axes = Constant <value: tensor = int64[0] {}> ()" if is_node else ""
    text = f"g (float[1, 3, 1] x) => (float[n] y) {axes} {{ {made} z = Squeeze (x, axes) y = Neg (z) }}"
    of = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> {text}')
    agree(of, {"x": draw(1, 3, 1)})
