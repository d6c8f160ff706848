"""Models that break the rules of form: each is refused with one clear error, before native code looks at them."""

from __future__ import annotations

import copy
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from t10.cli.entry import main
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.importer import import_model, import_proto
from t10.frontend.onnx_file import prepare, read_onnx
from t10.frontend.rules import MAX_DEPTH, MAX_ELEMENTS, broken_rules
from t10.inspect import model_facts

onnx: Any = untyped_onnx
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "models"
FLOAT = TensorProto.FLOAT
node = helper.make_node


def _model(nodes: list[Any], dims: list[int] | None = None, **constants: Any) -> Any:
    """Return a model from x to y of three floats each."""
    shape = [3] if dims is None else dims
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info("y", FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


RELU = node("Relu", ["x"], ["y"], name="relu")


def _refusal(model: Any) -> str:
    """Return the error of a model, which must be its one line, and short."""
    with pytest.raises(InputError) as caught:
        import_proto(copy.deepcopy(model), source="m")
    assert len(str(caught.value)) < 700
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_keeps_the_rules_breaks_none() -> None:
    for path in sorted(EXAMPLES.glob("*.onnx")):
        if not path.name.startswith("broken"):
            assert broken_rules(read_onnx(path)) == [], path.name


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("Add", ["x", "b"], ["a"], name="first"), node("Relu", ["a"], ["b"], name="second")],
         "nodes form a cycle: 'second' -> 'first' -> 'second'"),
        ([node("Add", ["x", "y"], ["y"], name="own")], "nodes form a cycle: 'own' -> 'own'"),
        ([node("Relu", ["a"], ["y"], name="early"), node("Relu", ["x"], ["a"], name="late")],
         "Relu node 'early' reads 'a' before it is made"),
        ([node("Relu", ["nowhere"], ["y"], name="lost")], "reads 'nowhere', which nothing makes"),
        ([RELU, node("Neg", ["x"], ["y"], name="again")], "result 'y' is there twice"),
        ([node("Relu", ["x"], ["x"], name="over"), RELU], "'x' is given to the graph and made in it"),
        ([node("Relu", ["x"], ["z"], name="other")], "output 'y' is made by no node"),
        ([node("", ["x"], ["y"], name="none")], "node 'none' has no operator"),
        ([node("Relu", ["x", "x"], ["y"], name="two")], "Relu node 'two' has 2 inputs (expected 1 to 1)"),
        ([node("Relu", ["x"], ["y"], name="odd", slope=1.0)], "has the attribute 'slope', which its operator has not"),
        ([node("Concat", ["x"], ["y"], name="bare")], "Concat node 'bare' lacks the attribute 'axis'"),
        ([node("Concat", ["x"], ["y"], name="text", axis="0")], "has 'axis' of type string (expected int)"),
    ],
)  # fmt: skip
def test_graphs_that_make_no_sense_are_refused(nodes: list[Any], message: str) -> None:
    assert message in _refusal(_model(nodes))


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([2**31, 2**31], "has 4.61e+18 elements"),
        ([2**62], "has 4.61e+18 elements"),
        ([2**62, 2**62, 2**62], "elements (expected at most 1.1e+12)"),
        ([MAX_ELEMENTS + 1], "elements (expected"),
        ([1] * 65, "'x' has 65 dims"),
        ([-3], "dim 0 of input 'x' is -3"),
    ],
)
def test_absurd_shapes_are_refused(dims: list[int], message: str) -> None:
    assert message in _refusal(_model([RELU], dims))


def test_absurd_shapes_that_are_computed_are_refused() -> None:
    nodes = [
        node("Tile", ["x", "times"], ["t"], name="tile"),
        node("ReduceSum", ["t"], ["s"], keepdims=1),
        RELU,
    ]
    model = _model(nodes, times=np.array([2**60]))
    model.graph.output.append(helper.make_tensor_value_info("s", FLOAT, [1]))
    assert "'t' of shape 3458764513820540928" in _refusal(model)


def test_absurd_shapes_of_results_are_refused() -> None:
    model = _model([node("Pad", ["x", "pads"], ["y"])], pads=np.array([0, 2**41]))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert "'y' of shape 2199023255555 has" in _refusal(model)


def test_constants_are_not_grown_beyond_bounds() -> None:
    """The result is a constant, but nothing makes it to find out."""
    nodes = [
        node("ConstantOfShape", ["shape"], ["big"], name="big"),
        node("ReduceSum", ["big"], ["s"], name="sum", keepdims=0),
        node("Add", ["x", "s"], ["y"], name="add"),
    ]
    started = time.process_time()
    import_proto(_model(nodes, shape=np.array([2**18, 2**18])), source="m")
    assert time.process_time() - started < 10


@pytest.mark.parametrize("operator", ["DFT", "STFT", "frames"])
def test_matrices_of_transforms_are_bounded(operator: str) -> None:
    step, length = (1, 100) if operator == "frames" else (1 << 14, 1 << 14)
    nodes = [node("DFT", ["x"], ["y"], name="t")]
    if operator != "DFT":
        nodes = [node("STFT", ["x", "step", "", "length"], ["y"], name="t")]
    extents = [1, 1 << 20 if operator == "frames" else 1 << 14, 1]
    model = _model(nodes, extents, step=np.array(step), length=np.array(length))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    with pytest.raises(UnsupportedOpError, match=r"T of .* needs a table of .* bytes \(expected") as caught:
        import_proto(model, source="m")
    assert caught.value.operator == "t"


def _changed(**changes: Any) -> Any:
    """Return a model with fields of its one constant changed."""
    model = _model([node("Add", ["x", "w"], ["y"], name="add")], w=np.ones(3, np.float32))
    tensor = model.graph.initializer[0]
    for name, value in changes.items():
        if name == "dims":
            del tensor.dims[:]
            tensor.dims.extend(value)
        else:
            setattr(tensor, name, value)
    return model


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"raw_data": b"abc"}, "holds 3 bytes (expected 12)"),
        ({"raw_data": b""}, "holds 0 bytes (expected 12)"),
        ({"data_type": 77}, "unknown element type 77"),
        ({"data_type": 0}, "unknown element type 0"),
        ({"dims": [-3]}, "has the dim -3"),
        ({"dims": [2**60]}, "elements (expected"),
        ({"dims": [2**31, 2**31, 0]}, "elements (expected"),
    ],
)
def test_constants_that_do_not_fit_together_are_refused(changes: dict[str, Any], message: str) -> None:
    assert message in _refusal(_changed(**changes))


def test_data_in_the_field_of_another_type_is_refused() -> None:
    model = _changed()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.int64_data.extend([1, 2, 3])
    assert "holds 0 numbers (expected 3)" in _refusal(model)


def test_sparse_initializers_are_refused() -> None:
    model = _model([RELU])
    model.graph.sparse_initializer.add().dims.append(3)
    assert "sparse initializers" in _refusal(model)


@pytest.mark.parametrize(
    ("imports", "message"),
    [
        ([], "states no opset"),
        ([("", 18), ("ai.onnx", 7)], "two opsets of ai.onnx: 18 and 7"),
        ([("", 18), ("", 7)], "two opsets of ai.onnx: 18 and 7"),
        ([("", 9999)], "states opset 9999 of ai.onnx"),
        ([("", 0)], "states opset 0"),
        ([("", -3)], "states opset -3"),
        ([("", 2**40)], "states opset 1099511627776"),
    ],
)
def test_opsets_that_conflict_or_do_not_exist_are_refused(
    imports: list[tuple[str, int]], message: str
) -> None:
    model = _model([RELU])
    del model.opset_import[:]
    model.opset_import.extend(helper.make_opsetid(*each) for each in imports)
    assert message in _refusal(model)


def test_names_that_are_there_twice_are_refused() -> None:
    given = _model([RELU])
    given.graph.input.append(given.graph.input[0])
    assert "input 'x' is there twice" in _refusal(given)
    returned = _model([RELU])
    returned.graph.output.append(returned.graph.output[0])
    assert "output 'y' is there twice" in _refusal(returned)
    constant = _changed()
    constant.graph.initializer.append(constant.graph.initializer[0])
    assert "initializer 'w' is there twice" in _refusal(constant)


def test_values_without_a_type_are_refused() -> None:
    model = _model([RELU])
    model.graph.input[0].ClearField("type")
    assert "input 'x' has no type" in _refusal(model)


def _functions(depth: int, width: int, *, circle: bool) -> Any:
    """Return a model that calls f0, which calls f1 `width` times, which ..."""
    model = _model([node("f0", ["x"], ["y"], name="call", domain="local")])
    for i in range(depth):
        callee = f"f{(i + 1) % depth}" if circle or i + 1 < depth else "Relu"
        names = ["a", *(f"t{j}" for j in range(width - 1)), "b"]
        nodes = [
            node(callee, [source], [target], domain="" if callee == "Relu" else "local")
            for source, target in pairwise(names)
        ]
        imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
        model.functions.append(helper.make_function("local", f"f{i}", ["a"], ["b"], nodes, imports))
    model.opset_import.append(helper.make_opsetid("local", 1))
    return model


def test_functions_that_call_themselves_are_refused() -> None:
    assert "calls itself" in _refusal(_functions(1, 1, circle=True))
    assert "calls itself" in _refusal(_functions(5, 2, circle=True))


def test_functions_that_grow_without_bound_are_refused() -> None:
    assert "nodes with its functions expanded" in _refusal(_functions(60, 2, circle=False))
    assert import_proto(_functions(5, 2, circle=False), source="m").output_names == ("y",)


def test_functions_of_another_opset_are_refused() -> None:
    model = _functions(1, 1, circle=False)
    model.functions[0].opset_import[0].version = 9
    assert "function 'f0' is of opset 9 of ai.onnx, the model of 18" in _refusal(model)


def test_graphs_nested_too_deep_are_refused() -> None:
    inner = helper.make_graph([RELU], "inner", [], [helper.make_tensor_value_info("y", FLOAT, [3])])
    for _ in range(MAX_DEPTH + 1):
        choice = node("If", ["c"], ["y"], name="choice", then_branch=inner, else_branch=helper.make_graph(
            [RELU], "other", [], [helper.make_tensor_value_info("y", FLOAT, [3])]
        ))  # fmt: skip
        inner = helper.make_graph([choice], "outer", [], [helper.make_tensor_value_info("y", FLOAT, [3])])
    model = _model(list(inner.node))
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    assert f"nested more than {MAX_DEPTH} levels" in _refusal(model)


def test_huge_lists_and_texts_do_not_reach_the_message() -> None:
    assert "Invalid attribute perm" in _refusal(
        _model([node("Transpose", ["x"], ["y"], perm=list(range(100_000)))])
    )
    many = _model([RELU])
    for i in range(50_000):
        many.graph.node[0].attribute.add(name=f"a{i}", type=2, i=i)
    assert "has the attribute 'a0'" in _refusal(many)
    assert len(_refusal(_model([node("Relu", ["n" * 100_000], ["y"], name="m" * 100_000)]))) < 700


def test_names_that_are_not_text_are_refused(tmp_path: Path) -> None:
    data = (
        _model([node("Relu", ["x"], ["y"], name="QQQQ")])
        .SerializeToString()
        .replace(b"QQQQ", b"\xff\xfe\xfd\xfc")
    )
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(InputError, match="a name in it is not UTF-8 text"):
        import_model(tmp_path / "m.onnx")


def test_many_problems_are_told_up_to_a_bound() -> None:
    model = _model([node("Relu", [f"nowhere{i}"], ["y"], name="r") for i in range(100)])
    for i in range(100):
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(2), f"w{i}"))
        model.graph.initializer[i].dims[0] = 3
    with pytest.raises(InputError) as caught:
        import_proto(model, source="m")
    assert 2 <= len(caught.value.details) <= 20


def test_operators_that_end_the_process_in_inference_are_refused(tmp_path: Path) -> None:
    """ONNX's shape inference reads the type of an input that has none."""
    model = _model(
        [
            node("Mystery", ["x"], ["m"], name="unknown"),
            node("RegexFullMatch", ["m"], ["f"], name="regex"),
            RELU,
        ]
    )
    model.opset_import[0].version = 21
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert model_facts(tmp_path / "m.onnx").problems
    with pytest.raises(UnsupportedOpError, match="Mystery 'unknown', RegexFullMatch 'regex'"):
        import_proto(model, source="m")


@pytest.mark.parametrize("n_outputs", [2, 2**32])
def test_splits_into_another_number_of_parts_are_refused(n_outputs: int) -> None:
    """ONNX's shape inference ends the process, or asks for memory for each."""
    split = node("Split", ["x"], ["y", "b", "c"], name="split", num_outputs=n_outputs)
    assert f"has 3 outputs (expected num_outputs, {n_outputs})" in _refusal(_model([split]))


@pytest.mark.slow
def test_what_would_be_unrolled_without_bound_is_refused() -> None:
    model = _model([node("LRN", ["x"], ["y"], name="wide", size=2**32)], [1, 4, 5, 5])
    with pytest.raises(UnsupportedOpError, match="LRN would be written as more than 100000 nodes"):
        import_proto(model, source="m")


def test_constants_that_say_nothing_are_an_error_of_their_node() -> None:
    model = _model([node("CumSum", ["x", "axis"], ["y"], name="sum")], axis=np.zeros(0, np.int64))
    with pytest.raises(InputError, match="operator 'sum': attributes or constants of this CumSum node"):
        import_proto(model, source="m")


def test_both_names_of_the_domain_of_onnx_are_taken() -> None:
    model = _model(
        [node("Relu", ["x"], ["a"], name="long", domain="ai.onnx"), node("Neg", ["a"], ["y"], name="short")]
    )
    model.opset_import[0].domain = "ai.onnx"
    assert import_proto(model, source="m").output_names == ("y",)


def test_long_rows_are_inferred_without_a_record_per_element() -> None:
    """ONNX's data propagation keeps one, which took gigabytes for a row of 2^32."""
    n = 2**32
    nodes = [
        node("Cast", ["x"], ["i"], to=TensorProto.INT64),
        node("Add", ["i", "one"], ["j"]),
        node("Cast", ["j"], ["y"], to=1),
    ]
    started = time.process_time()
    import_proto(_model(nodes, [n], one=np.array([1])), source="m")
    assert time.process_time() - started < 10


def test_the_command_says_it_in_lines_and_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.onnx").write_bytes(
        _model([node("Add", ["x", "y"], ["y"], name="own")]).SerializeToString()
    )
    assert main(["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "out"), "--no-cache"]) == 2
    found = capsys.readouterr()
    assert found.err.startswith("t10: error: ")
    assert "nodes form a cycle" in found.err
    assert "Traceback" not in found.err


@pytest.mark.parametrize(
    ("kind", "attribute", "value"),
    [
        ("LayerNormalization", "axis", 2**31),
        ("Softmax", "axis", -65),
        ("GatherND", "batch_dims", -5),
        ("GatherND", "batch_dims", 2**40),
    ],
)
def test_dims_that_no_tensor_has_are_refused_before_inference_ends_the_process(
    kind: str, attribute: str, value: int
) -> None:
    others = {"LayerNormalization": ["w"], "GatherND": ["i"]}.get(kind, [])
    outputs = ["y", "mean"] if kind == "LayerNormalization" else ["y"]
    told = node(kind, ["x", *others], outputs, name="n")
    told.attribute.add(name=attribute, type=onnx.AttributeProto.INT, i=value)
    model = _model(
        [told],
        w=np.ones(3, np.float32),
        i=np.zeros((1, 1), np.int64),
    )
    assert f"{kind} node 'n' has {attribute!r} {value}" in _refusal(model)


def test_a_rule_that_is_broken_twice_is_told_once() -> None:
    deep = helper.make_graph([node("Identity", ["x"], ["o"])], "b", [], [])
    for level in range(26):
        other = deep if level < 2 else helper.make_graph([], "e", [], [])
        branch = node("If", ["c"], ["o"])
        branch.attribute.add(name="then_branch", type=onnx.AttributeProto.GRAPH, g=deep)
        branch.attribute.add(name="else_branch", type=onnx.AttributeProto.GRAPH, g=other)
        deep = helper.make_graph([branch], "b", [], [])
    model = _model([RELU, *deep.node], c=np.array(True))
    found = broken_rules(model)
    assert len([problem for problem in found if "levels deep" in problem]) == 1


def test_an_eye_of_something_without_a_type_is_refused_before_inference_ends_the_process() -> None:
    eye = node("EyeLike", ["u"], ["y"], name="eye", dtype=FLOAT)
    model = _model([node("Normalizer", ["x"], ["u"], domain="ai.onnx.ml"), eye], [3, 3])
    with pytest.raises(UnsupportedOpError, match=r"Normalizer"):
        import_proto(model, source="m")
    body = helper.make_graph([eye], "b", [], [helper.make_tensor_value_info("y", FLOAT, [3, 3])])
    branch = node("If", ["c"], ["y"])
    for name in ("then_branch", "else_branch"):
        branch.attribute.add(name=name, type=onnx.AttributeProto.GRAPH, g=body)
    nested = _model([node("Normalizer", ["x"], ["u"], domain="ai.onnx.ml"), branch], [3, 3], c=np.array(True))
    with pytest.raises(UnsupportedOpError):
        import_proto(nested, source="m")


def test_a_graph_without_outputs_and_names_without_end_are_refused() -> None:
    silent = _model([RELU])
    del silent.graph.output[:]
    assert "its graph has no output" in _refusal(silent)
    long = _model([node("Relu", ["x"], ["y"], name="n" * 20_000)])
    assert "is a name of 20,000 characters" in _refusal(long)


@pytest.mark.parametrize("damage", ["location", "type", "negative"])
def test_errors_name_the_file_they_are_of(damage: str) -> None:
    model = _model([node("Add", ["x", "w"], ["y"])], w=np.ones(3, np.float32))
    if damage == "location":
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="/etc/passwd")
    elif damage == "type":
        model.graph.input[0].ClearField("type")
    else:
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -3
    assert _refusal(model).startswith("m: ")


@pytest.mark.parametrize(
    ("kind", "values", "why"),
    [("Tile", [2**62], "overflow"), ("Tile", [-1], "negative"), ("Pad", [2**62, 2**62], "overflow")],
)
def test_results_that_cannot_be_are_told_by_their_node(kind: str, values: list[int], why: str) -> None:
    model = _model([node(kind, ["x", "s"], ["y"], name="n")], s=np.array(values))
    assert "node name: n" in _refusal(model)
    assert why in _refusal(model)


@pytest.mark.slow
def test_loading_takes_time_in_proportion_to_the_number_of_weights() -> None:
    def seconds(n: int) -> float:
        names = ["x", *(f"v{i}" for i in range(n - 1)), "y"]
        nodes = [node("Add", [a, f"w{i}"], [b]) for i, (a, b) in enumerate(pairwise(names))]
        weights: dict[str, Any] = {f"w{i}": np.zeros(20, np.float32) for i in range(n)}
        model = _model(nodes, [20], **weights)
        started = time.process_time()
        prepare(model, source="m", folder=Path())
        return time.process_time() - started

    seconds(100)
    assert min(seconds(4000) / seconds(500) for _ in range(3)) < 16


@pytest.mark.parametrize(
    "equation", [b"\xff\xfe", b"i1->i", b"i.->i", b"i>", b"......", b"i...j...->i", b"i->i->i"]
)
def test_equations_of_other_signs_are_refused_before_inference_does_not_end(equation: bytes) -> None:
    einsum = node("Einsum", ["x"], ["y"], name="e")
    einsum.attribute.add(name="equation", type=onnx.AttributeProto.STRING, s=equation)
    assert "Einsum node 'e' has the equation" in _refusal(_model([einsum]))
