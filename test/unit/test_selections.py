"""TopK, ArgMax, ArgMin and Hardmax become comparisons and reductions that compute what ONNX Runtime computes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from support.linalg_numpy import run_module

from t10.backend import run_on_tiles
from t10.driver import Executable, compile
from t10.errors import InputError, UnsupportedOpError
from t10.frontend import ranks
from t10.frontend.importer import import_proto
from t10.frontend.tournament import PER_PAIR, PER_SELECTED, issue_slots, stages
from t10.passes.fuse import Fuse
from t10.passes.read_graph import read_graph

Array = NDArray[Any]
helper: Any = onnx.helper  # some of its functions are typed in part only
ONNX_TYPE = {
    "float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "int32": TensorProto.INT32,
    "int64": TensorProto.INT64, "uint8": TensorProto.UINT8,
}  # fmt: skip


def _model(nodes: list[Any], x: Array, outputs: Mapping[str, int], opset: int = 18, **constants: Any) -> Any:
    """Return a model of one input; shapes of the outputs are inferred."""
    given = helper.make_tensor_value_info("x", ONNX_TYPE[str(x.dtype)], x.shape)
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", [given], results, initializer=tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def _top_k(x: Array, k: int, *, opset: int = 18, **options: int) -> Any:
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"], name="top", **options)
    kinds = {"v": ONNX_TYPE[str(x.dtype)], "i": TensorProto.INT64}
    return _model([node], x, kinds, opset, k=np.array([k]))


def _arg(operator: str, x: Array, *, opset: int = 18, **options: int) -> Any:
    node = helper.make_node(operator, ["x"], ["y"], name="arg", **options)
    kind = ONNX_TYPE[str(x.dtype)] if operator == "Hardmax" else TensorProto.INT64
    return _model([node], x, {"y": kind}, opset)


def _few(shape: tuple[int, ...], dtype: str = "float32", least: int = 0) -> Array:
    """Return few different values, so that most of them are equal to others."""
    return np.random.default_rng(3).integers(least, least + 6, shape).astype(dtype)


def _reference(model: Any, x: Array) -> dict[str, Array]:
    runtime: Any = onnxruntime
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"x": x}), strict=True))


def _fused(model: Any, x: Array) -> dict[str, Array]:
    """Return what the fused module computes, by an interpreter of its IR."""
    imported = import_proto(model, source="selection")
    with imported.module.context:
        Fuse().apply(imported.module)
        return run_module(imported.module, {"x": x, **imported.weights})


def _assert_equal(found: dict[str, Array], expected: dict[str, Array]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64"])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_puts_equal_elements_by_place(dtype: str, largest: int) -> None:
    x = _few((3, 21), dtype, least=-5)
    model = _top_k(x, 7, largest=largest)
    _assert_equal(_fused(model, x), _reference(model, x))


@pytest.mark.parametrize(
    ("shape", "axis", "k"), [((5, 3), 0, 4), ((2, 9, 3), 1, 9), ((2, 9, 3), -2, 1), ((8,), -1, 8)]
)
def test_top_k_over_any_axis_sorts_where_k_is_all(shape: tuple[int, ...], axis: int, k: int) -> None:
    x = _few(shape)
    model = _top_k(x, k, axis=axis)
    _assert_equal(_fused(model, x), _reference(model, x))


def test_top_k_of_infinities_and_zeros_of_both_signs() -> None:
    x = np.array([[0.0, -0.0, -np.inf, np.inf, -np.inf, 1.0, np.inf]], np.float32)
    for largest in (0, 1):
        model = _top_k(x, 6, largest=largest)
        _assert_equal(_fused(model, x), _reference(model, x))


def test_places_of_halves_are_exact_beyond_what_halves_hold() -> None:
    x = np.zeros((1, 5000), np.float16)
    x[0, [4097, 4999]] = 1
    found = _fused(_top_k(x, 2), x)
    assert found["i"].tolist() == [[4097, 4999]]
    assert _fused(_arg("ArgMax", x, axis=1, select_last_index=1), x)["y"].tolist() == [[4999]]


def test_places_are_exact_beyond_what_floats_hold() -> None:
    # 2^24 + 1 is no f32: it would become 2^24, which stands before it.
    x = np.zeros((1, 2**24 + 3), np.float32)
    x[0, 2**24 + 1] = 1
    assert _fused(_arg("ArgMax", x, axis=1), x)["y"].tolist() == [[2**24 + 1]]


@pytest.mark.parametrize("size", [4, 6, 16])
def test_stages_change_nothing_even_where_chunks_are_padded(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def two_stages(n: int, k: int, rows: int) -> tuple[int, ...]:
        assert rows == 2
        return (size, -(-n // size) * k)

    monkeypatch.setattr(ranks, "stages", two_stages)
    x = _few((2, 50), least=-9)
    x[1, 45:] = -np.inf
    for k, largest in ((3, 1), (4, 0)):
        model = _top_k(x, k, largest=largest)
        _assert_equal(_fused(model, x), _reference(model, x))


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(("axis", "keepdims", "last"), [(0, 1, 0), (-1, 0, 0), (1, 1, 1)])
def test_place_of_the_extreme(operator: str, axis: int, keepdims: int, last: int, opset: int) -> None:
    x = _few((3, 7, 4), "float16")
    model = _arg(operator, x, opset=opset, axis=axis, keepdims=keepdims, select_last_index=last)
    _assert_equal(_fused(model, x), _reference(model, x))


def test_unsigned_bytes_are_compared_unsigned() -> None:
    x = np.array([[3, 200, 127, 200]], np.uint8)
    model = _arg("ArgMax", x, axis=1)
    _assert_equal(_fused(model, x), _reference(model, x))


@pytest.mark.parametrize("axis", [0, 1])
def test_hardmax_marks_the_first(axis: int) -> None:
    x = _few((4, 9))
    model = _arg("Hardmax", x, axis=axis)
    _assert_equal(_fused(model, x), _reference(model, x))


def test_places_stay_in_the_row_where_it_holds_nans() -> None:
    x = np.full((2, 9), np.nan, np.float32)
    x[0, 3] = 1
    for place in (_fused(_top_k(x, 5), x)["i"], _fused(_arg("ArgMin", x, axis=1), x)["y"]):
        assert ((place >= 0) & (place < 9)).all()


def test_no_tensor_holds_all_pairs() -> None:
    x = np.zeros((1, 700), np.float16)
    imported = import_proto(_top_k(x, 700), source="sort")
    with imported.module.context:
        Fuse().apply(imported.module)
        graph = read_graph(imported.module).graph
    assert [spec.name for spec in graph.operators] == [
        "top.rank.key",
        "top.rank",
        "top.values",
        "top.indices",
    ]


def test_outputs_that_nothing_reads_are_not_computed() -> None:
    x = _few((2, 20))
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"], name="top")
    imported = import_proto(_model([node], x, {"i": TensorProto.INT64}, k=np.array([3])), source="indices")
    with imported.module.context:
        Fuse().apply(imported.module)
        graph = read_graph(imported.module).graph
    assert [spec.name for spec in graph.operators] == ["top.rank", "top.indices"]


@pytest.mark.parametrize("selection", ["ArgMax", "TopK"])
def test_what_is_compared_is_computed_once(selection: str) -> None:
    x = _few((2, 20))
    nodes = [helper.make_node("Exp", ["x"], ["e"], name="exp")]
    if selection == "TopK":
        nodes.append(helper.make_node("TopK", ["e", "k"], ["v", "y"], name="s"))
    else:
        nodes.append(helper.make_node("ArgMax", ["e"], ["y"], name="s"))
    imported = import_proto(_model(nodes, x, {"y": TensorProto.INT64}, k=np.array([3])), source="exp")
    with imported.module.context:
        Fuse().apply(imported.module)
        graph = read_graph(imported.module).graph
    assert [spec.name for spec in graph.operators].count("exp") == 1


def test_chunks_are_cut_where_that_saves_more_than_a_stage_costs() -> None:
    assert stages(1024, 5, 1) == (1024,)
    assert stages(1024, 1024, 1) == (1024,)
    for n, k in ((50257, 5), (50257, 50), (128256, 40)):
        sizes = stages(n, k, 1)
        assert all(size > k for size in sizes)
        left, total = n, 0
        for size in sizes:
            total += issue_slots(left, k, size)
            left = -(-left // size) * k
        assert left == k
        assert total * 100 < issue_slots(n, k, n)


def _compiled(model: Any, folder: Path) -> Executable:
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return compile(folder / "model.onnx", chip="test-16")


@pytest.mark.slow
def test_top_k_is_planned_and_runs_from_assembly(tmp_path: Path) -> None:
    x = _few((3, 37), "float16", least=-9)
    model = _top_k(x, 5)
    executable = _compiled(model, tmp_path)
    expected = _reference(model, x)
    _assert_equal(executable.run({"x": x}), expected)
    found = run_on_tiles(executable, {"x": x})
    _assert_equal(dict(found.outputs), expected)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_arg_max_is_planned_and_runs_from_assembly(dtype: str, tmp_path: Path) -> None:
    x = _few((5, 37), dtype, least=-9)
    model = _arg("ArgMax", x, axis=1, keepdims=0)
    executable = _compiled(model, tmp_path)
    expected = _reference(model, x)
    _assert_equal(executable.run({"x": x}), expected)
    found = run_on_tiles(executable, {"x": x})
    _assert_equal(dict(found.outputs), expected)


@pytest.mark.parametrize(
    ("operator", "inputs", "kind"),
    [
        ("NonZero", ["x"], TensorProto.INT64),
        ("Unique", ["x"], TensorProto.FLOAT),
        ("Compress", ["x", "c"], TensorProto.FLOAT),
    ],
)
def test_result_as_long_as_the_data_says_is_refused(operator: str, inputs: list[str], kind: int) -> None:
    x = _few((6,))
    kept = [helper.make_node("Greater", ["x", "zero"], ["c"], name="mask")]
    nodes = [*kept, helper.make_node(operator, inputs, ["y"], name="which")]
    with pytest.raises(
        UnsupportedOpError, match=rf"^model: operator 'which': {operator} makes 'y'"
    ) as caught:
        import_proto(_model(nodes, x, {"y": kind}, zero=np.array(0, np.float32)), source="model")
    assert "expected a shape known before the model runs" in str(caught.value)
    assert caught.value.hint
    assert caught.value.exit_code == 3


def test_every_such_node_is_told() -> None:
    nodes = [helper.make_node("NonZero", ["x"], [name], name=name) for name in ("first", "second")]
    kinds = {"first": TensorProto.INT64, "second": TensorProto.INT64}
    with pytest.raises(UnsupportedOpError, match="2 of 2 nodes cannot be lowered") as caught:
        import_proto(_model(nodes, _few((6,)), kinds), source="model")
    assert len(caught.value.details) == 2
    assert "operator 'first': NonZero makes 'first'" in caught.value.details[0]
    assert "operator 'second': NonZero makes 'second'" in caught.value.details[1]


def test_places_of_constants_are_folded() -> None:
    nodes = [
        helper.make_node("NonZero", ["mask"], ["where"], name="nz"),
        helper.make_node("Squeeze", ["where", "first"], ["flat"], name="flat"),
        helper.make_node("Gather", ["x", "flat"], ["y"], name="chosen"),
    ]
    x = _few((4,))
    model = _model(nodes, x, {"y": TensorProto.FLOAT}, mask=np.array([0, 1, 0, 1]), first=np.array([0]))
    assert _fused(model, x)["y"].tolist() == [x[1], x[3]]


def test_top_k_of_computed_length_is_refused() -> None:
    x = _few((6,), "int64")
    node = helper.make_node("TopK", ["x", "x"], ["v", "i"], name="top")
    with pytest.raises(UnsupportedOpError, match="operator 'top': TopK makes 'v' with as many elements"):
        import_proto(_model([node], x, {"v": TensorProto.INT64}), source="model")


@pytest.mark.parametrize(("k", "axis"), [(7, 0), (0, 0), (1, 1)])
def test_selection_that_cannot_be_is_refused(k: int, axis: int) -> None:
    model = _top_k(_few((6,)), 3)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([k]), "k"))
    model.graph.node[0].attribute.append(helper.make_attribute("axis", axis))
    with pytest.raises(InputError, match=rf"operator 'top': TopK takes {k} elements along axis {axis}"):
        import_proto(model, source="model")


def test_a_stage_takes_the_slots_of_its_padding_too() -> None:
    # Ten elements in chunks of four are twelve: per element four comparisons and two selections.
    assert issue_slots(10, 2, 4) == 12 * (PER_PAIR * 4 + PER_SELECTED * 2)


def test_an_axis_too_long_for_its_places_is_refused() -> None:
    """A file states any extent; the places along it would be written as a constant."""
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Hardmax", ["x"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, (2**31,))],
        [value("y", TensorProto.FLOAT, (2**31,))],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=8)
    with pytest.raises(UnsupportedOpError, match="selects from 2,147,483,648 elements"):
        import_proto(model, source="m")
