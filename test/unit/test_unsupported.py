"""One run tells every node of a model that cannot be compiled: unknown, of wrong types, not lowered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from t10.cli.entry import main
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.importer import import_proto
from t10.frontend.rewrites.rules import rules
from t10.frontend.unsupported import unsupported

FLOAT = TensorProto.FLOAT
node = helper.make_node
value = helper.make_tensor_value_info


def _model(nodes: list[Any], inputs: list[Any], outputs: list[Any], **constants: Any) -> Any:
    tensors = [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializer=tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def _every_kind() -> Any:
    """Return a model with a node of every reason to be refused, a fine one, and one behind a refused one."""
    nodes = [
        node("Foo", ["x"], ["f"], name="custom", domain="com.acme"),
        node("Relu", ["f"], ["behind"], name="behind"),
        node("Bar", ["x"], ["b"], name="unknown"),
        node("NonZero", ["x"], ["nz"], name="as_data_says"),
        node("StringNormalizer", ["text"], ["so"], name="text_op"),
        node("MaxRoiPool", ["image", "rois"], ["d"], name="no_lowering", pooled_shape=[2, 2]),
        node("ReverseSequence", ["q", "lengths"], ["l"], name="loop"),
        node("Relu", ["x"], ["y"], name="fine"),
    ]
    inputs = [
        value("x", FLOAT, [3]),
        value("text", TensorProto.STRING, [3]),
        value("image", FLOAT, [1, 1, 4, 4]),
        value("rois", FLOAT, [1, 5]),
        value("q", FLOAT, [2, 2, 4]),
        value("lengths", TensorProto.INT64, [2]),
    ]
    outputs = [
        *(value(name, FLOAT, [3]) for name in ("behind", "b", "y")),
        value("d", FLOAT, [1, 1, 2, 2]),
        value("nz", TensorProto.INT64, [1, None]),
        value("so", TensorProto.STRING, [3]),
        value("l", FLOAT, [2, 2, 4]),
    ]
    return _model(nodes, inputs, outputs)


@pytest.fixture
def without_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a ReverseSequence to torch-mlir, which makes a loop of it."""
    monkeypatch.delitem(rules(), "ReverseSequence")


@pytest.mark.usefixtures("without_rule")
def test_every_reason_is_in_one_list() -> None:
    with pytest.raises(
        UnsupportedOpError, match=r"^model\.onnx: 5 of 8 nodes and 1 input cannot be lowered"
    ) as caught:
        import_proto(_every_kind(), source="model.onnx")
    expected = {
        "custom": "operator 'custom': com.acme.Foo is of domain 'com.acme'",
        "unknown": "operator 'unknown': Bar is no operator of ONNX",
        "as_data_says": "operator 'as_data_says': NonZero makes 'nz' with one column per element",
        "text": "input 'text' is of element type string",
        "no_lowering": "operator 'no_lowering': MaxRoiPool is not lowered",
        "loop": "operator 'loop': ReverseSequence becomes scf.for",
    }
    assert len(caught.value.details) == len(expected)
    for name, reason in expected.items():
        line = next(line for line in caught.value.details if f"'{name}'" in line)
        assert line.startswith(f"model.onnx: {reason}")
        assert line.endswith(")"), "every line ends with what would help"
    assert not any("'fine'" in line or "'behind'" in line for line in caught.value.details)


@pytest.mark.usefixtures("without_rule")
def test_the_command_prints_the_list_and_ends_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(_every_kind().SerializeToString())
    assert main(["compile", str(path), "-o", str(tmp_path / "out"), "--chip", "test-4", "--no-cache"]) == 3
    first, *lines = capsys.readouterr().err.splitlines()
    assert "5 of 8 nodes and 1 input cannot be lowered: com.acme.Foo 'custom', Bar 'unknown'" in first
    assert len(lines) == 6
    assert not (tmp_path / "out").exists()


def test_a_single_node_is_told_in_one_line() -> None:
    model = _model(
        [node("Bar", ["x"], ["y"], name="unknown")], [value("x", FLOAT, [3])], [value("y", FLOAT, [3])]
    )
    with pytest.raises(
        UnsupportedOpError, match=r"^m: operator 'unknown': Bar is no operator of ONNX"
    ) as caught:
        import_proto(model, source="m")
    assert caught.value.details == ()
    assert caught.value.hint


def test_what_stands_behind_an_unknown_value_is_not_listed() -> None:
    """These have rules that depend on what they read."""
    nodes = [
        node("Bar", ["x"], ["b"], name="unknown"),
        node("DequantizeLinear", ["b", "scale", "zero"], ["d"]),
        node("FusedMatMul", ["d", "d"], ["p"], domain="com.microsoft"),
        node("Det", ["p"], ["e"]),
        node("Max", ["b", "zero"], ["m"]),
        node("Relu", ["e"], ["y"]),
    ]
    constants = {"scale": np.float32(0.5), "zero": np.uint8(3)}
    outputs = [value("y", FLOAT, []), value("m", TensorProto.UINT8, [3, 3])]
    model = _model(nodes, [value("x", FLOAT, [3, 3])], outputs, **constants)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(UnsupportedOpError, match="operator 'unknown': Bar is no operator of ONNX") as caught:
        import_proto(model, source="m")
    assert caught.value.details == ()


def test_what_is_shaped_by_a_result_without_bound_is_not_listed() -> None:
    """Bounded, it has an extent. A loop of so many steps needs a bound of its own."""
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("Tanh", ["v"], ["w"])],
        "step",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("v", FLOAT, [3])],
        [value("on", TensorProto.BOOL, []), value("w", FLOAT, [3])],
    )
    nodes = [
        node("NonZero", ["x"], ["at"], name="places"),
        node("Squeeze", ["at", "zero"], ["rows"]),
        node("Gather", ["x", "rows"], ["chosen"]),
        node("Shape", ["chosen"], ["shape"]),
        node("Expand", ["two", "shape"], ["wide"], name="wide"),
        node("Mul", ["wide", "chosen"], ["y"]),
        node("Concat", ["shape", "one"], ["column"], axis=0),
        node("Reshape", ["chosen", "column"], ["z"], name="column"),
        node("Loop", ["shape", "", "x"], ["last"], name="steps", body=body),
    ]
    constants = {"zero": np.array([0]), "one": np.array([1]), "two": np.array([2], np.float32)}
    outputs = [value("y", FLOAT, ["n"]), value("z", FLOAT, ["n", 1]), value("last", FLOAT, [3])]
    model = _model(nodes, [value("x", FLOAT, [3])], outputs, **constants)
    with pytest.raises(UnsupportedOpError, match=r"2 of . nodes .*: NonZero 'places', Loop 'steps'$"):
        import_proto(model, source="m")


@pytest.mark.slow
def test_selections_beside_what_is_refused_are_not_listed() -> None:
    """The loop over the experts of a mixture: its NonZero is refused, and the TopK that chose them is not."""
    nodes = [
        node("TopK", ["x", "two"], ["best", "chosen"], name="router"),
        node("Equal", ["chosen", "first"], ["mask"]),
        node("NonZero", ["mask"], ["y"], name="rows"),
    ]
    constants = {"two": np.array([2]), "first": np.array(0)}
    model = _model(nodes, [value("x", FLOAT, [4, 3])], [value("y", TensorProto.INT64, None)], **constants)
    with pytest.raises(UnsupportedOpError, match="operator 'rows': NonZero makes") as caught:
        import_proto(model, source="m")
    assert caught.value.details == ()


def test_an_operator_newer_than_the_stated_opset_is_told() -> None:
    model = _model(
        [node("Gelu", ["x"], ["y"], name="gelu")], [value("x", FLOAT, [3])], [value("y", FLOAT, [3])]
    )
    with pytest.raises(UnsupportedOpError, match="Gelu is not in opset 18, which the model states"):
        import_proto(model, source="m")


def test_unknown_operators_inside_functions_are_told() -> None:
    body = helper.make_function(
        "local", "wrapped", ["x"], ["y"],
        [node("Mystery", ["x"], ["m"], name="inner"), node("Relu", ["m"], ["y"])],
        [helper.make_opsetid("", 18)],
    )  # fmt: skip
    model = _model(
        [node("wrapped", ["x"], ["y"], name="outer", domain="local")],
        [value("x", FLOAT, [3])],
        [value("y", FLOAT, [3])],
    )
    model.functions.append(body)
    model.opset_import.append(helper.make_opsetid("local", 1))
    with pytest.raises(UnsupportedOpError, match="Mystery is no operator of ONNX"):
        import_proto(model, source="m")


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (node("RandomUniformLike", ["x"], ["y"]), "RandomUniformLike draws random numbers"),
        (node("Dropout", ["x", "", "training"], ["y"]), "Dropout drops elements at random"),
        (node("Det", ["x"], ["y"]), "Det is of matrices of more than 6 rows"),
    ],
)
def test_forms_without_a_rule_are_refused_by_what_they_are(refused: Any, why: str) -> None:
    shape = [] if refused.op_type == "Det" else [7, 7]
    model = _model(
        [refused], [value("x", FLOAT, [7, 7])], [value("y", FLOAT, shape)], training=np.array(True)
    )
    with pytest.raises(UnsupportedOpError, match=f"operator 'y': {why}") as caught:
        import_proto(model, source="m")
    assert caught.value.hint
    assert "rewrite it with" not in caught.value.hint, "what would help is said for the operator itself"


def test_steps_of_training_and_other_domains_are_refused_by_name() -> None:
    nodes = [
        node("Relu", ["x"], ["y"]),
        node("Gradient", ["x", "y"], ["g"], domain="ai.onnx.preview.training", xs=["x"], y="y"),
        node("Binarizer", ["x"], ["b"], domain="ai.onnx.ml"),
    ]
    model = _model(nodes, [value("x", FLOAT, [3])], [value(name, FLOAT, [3]) for name in "gby"])
    model.opset_import.extend(
        helper.make_opsetid(domain, version)
        for domain, version in (("ai.onnx.preview.training", 1), ("ai.onnx.ml", 1))
    )
    with pytest.raises(UnsupportedOpError) as caught:
        import_proto(model, source="m")
    training, other = caught.value.details
    assert "ai.onnx.preview.training.Gradient is a step of training" in training
    assert "ai.onnx.ml.Binarizer is of the domain 'ai.onnx.ml', of which nothing is lowered" in other


def test_values_that_are_no_tensors_and_results_without_elements_are_told() -> None:
    sequence = helper.make_tensor_sequence_value_info("s", FLOAT, [3])
    nodes = [node("SequenceAt", ["s", "i"], ["y"])]
    model = _model(nodes, [sequence], [value("y", FLOAT, [3])], i=np.array(0))
    with pytest.raises(InputError, match=r"input 's' is of type sequence \(expected a tensor\) \(give"):
        import_proto(model, source="m")
    bounds = {"start": np.array([3]), "end": np.array([3])}
    model = _model(
        [node("Slice", ["x", "start", "end"], ["y"])],
        [value("x", FLOAT, [3])],
        [value("y", FLOAT, None)],
        **bounds,
    )
    with pytest.raises(InputError, match=r"dim 0 of output 'y' is 0 .*it has no elements: leave it out"):
        import_proto(model, source="m")


def test_nodes_of_fused_exports_say_how_to_export_without() -> None:
    model = _model(
        [node("FusedMatMul", ["x", "x"], ["y"], name="fused", domain="com.microsoft")],
        [value("x", FLOAT, [3, 3])],
        [value("y", FLOAT, [3, 3])],
    )
    with pytest.raises(UnsupportedOpError, match="without the fusions of ONNX Runtime"):
        import_proto(model, source="m")


@pytest.mark.parametrize(
    ("operator", "hint"),
    [
        ("Attention", "without the fusions"),
        ("MatMulBnb4", "leave this operator out of the quantisation"),
        ("DynamicQuantizeLSTM", "leave this operator out of the quantisation"),
        ("Rfft", "ONNX has no such operator"),
    ],
)
def test_operators_of_onnx_runtime_say_where_they_come_from(operator: str, hint: str) -> None:
    of = node(operator, ["x"], ["y"], domain="com.microsoft")
    assert hint in unsupported(of, "m", "is not read").hint


def test_an_attention_that_rotates_says_so() -> None:
    of = node("Attention", ["x", "w"], ["y"], domain="com.microsoft", num_heads=2, do_rotary=1)
    model = _model(
        [of],
        [value("x", FLOAT, [1, 3, 8])],
        [value("y", FLOAT, [1, 3, 8])],
        w=np.eye(8, 24, dtype=np.float32),
    )
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    with pytest.raises(UnsupportedOpError, match="Attention has do_rotary = 1"):
        import_proto(model, source="m")


def test_very_many_nodes_are_counted_and_the_list_stays_short() -> None:
    nodes = [node("Bar", ["x"], [f"y{i}"], name=f"n{i}") for i in range(1000)]
    model = _model(nodes, [value("x", FLOAT, [3])], [value(f"y{i}", FLOAT, [3]) for i in range(1000)])
    with pytest.raises(UnsupportedOpError, match="1000 of 1000 nodes cannot be lowered") as caught:
        import_proto(model, source="m")
    assert len(caught.value.details) <= 201
    assert caught.value.details[-1] == "and 800 more"
    assert len(str(caught.value)) < 2000
