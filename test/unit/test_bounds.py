"""Results of data-dependent length, with a fixed extent: valid rows are ONNX Runtime's, the rest is filled."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper
from support.bounded import agree, computed, model_of
from support.engines import by_runtime

import t10
from t10.attack.bounded import bounded
from t10.backend import run_on_tiles
from t10.cli.entry import main
from t10.core.graph import TensorValue
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.importer import import_proto
from t10.passes.fuse import Fuse
from t10.reference import OnnxRuntime

if TYPE_CHECKING:
    from t10.core.graph import Graph

Array = NDArray[Any]
RANDOM = np.random.default_rng(5)
make = helper.make_node
INT64, FLOAT = TensorProto.INT64, TensorProto.FLOAT


@pytest.mark.parametrize("bound", [3, 12])
@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 1, 5)])
def test_places_that_are_not_zero(shape: tuple[int, ...], bound: int) -> None:
    x = RANDOM.integers(0, 2, shape).astype(np.float32)
    agree([make("NonZero", ["x"], ["y"])], {"x": x}, {"y": INT64}, {"y": 1}, ("y", bound))


@pytest.mark.parametrize("operator", ["NonZero", "Compress"])
def test_extents_that_an_output_states_are_those_of_the_bound(operator: str) -> None:
    """A traced export states what its example had."""
    x, more = np.array([0, 2, 0, 4], np.float32), ["c"] if operator == "Compress" else []
    model = model_of([make(operator, ["x", *more], ["y"])], {"x": x}, {}, c=x > 0)
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, [4]))
    del model.graph.initializer[:]
    kind, shape = (FLOAT, [2]) if more else (INT64, [1, 2])
    model.graph.output.append(helper.make_tensor_value_info("y", kind, shape))
    found = computed(model, {"x": x, "c": x > 0}, y=3)["y"]
    np.testing.assert_array_equal(found.reshape(-1), [2, 4, 0] if more else [1, 3, 0])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_slices_that_a_condition_chooses(axis: int | None) -> None:
    x, condition = RANDOM.standard_normal((5, 4)).astype(np.float32), np.array([True, False, True, True])
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    node = make("Compress", ["x", "c"], ["y"], **attributes)
    agree([node], {"x": x, "c": condition}, {"y": FLOAT}, {"y": axis or 0}, ("y", 5))


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_different_elements(is_sorted: int, dtype: Any) -> None:
    x = RANDOM.integers(-3, 4, (3, 5)).astype(dtype)
    node = make("Unique", ["x"], ["y", "first", "inverse", "n"], sorted=is_sorted)
    kinds = {
        "y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype)),
        "first": INT64,
        "inverse": INT64,
        "n": INT64,
    }
    model = model_of([node], {"x": x}, kinds)
    due, found = by_runtime(model, {"x": x}), computed(model, {"x": x}, y=9)
    count = int(found["y.count"])
    assert count == due["y"].shape[0]
    np.testing.assert_array_equal(found["inverse"], due["inverse"])
    for name in ("y", "first", "n"):
        np.testing.assert_array_equal(found[name][:count], due[name], err_msg=name)
        assert not found[name][count:].any()


@pytest.mark.parametrize("k", [1, 3])
def test_a_computed_number_of_largest_elements(k: int) -> None:
    x = RANDOM.standard_normal((3, 6)).astype(np.float32)
    nodes = [make("TopK", ["x", "k"], ["y", "at"], axis=1)]
    inputs = {"x": x, "k": np.array([k])}
    agree(nodes, inputs, {"y": FLOAT, "at": INT64}, {"y": 1, "at": 1}, ("y", 4))


def boxes(n: int) -> Array:
    """Return corners of boxes that overlap, some of them flipped."""
    low = RANDOM.uniform(0, 1, (2, n, 2))
    return np.concatenate([low, low + RANDOM.uniform(-0.6, 0.6, (2, n, 2))], 2).astype(np.float32)


@pytest.mark.parametrize("center", [0, 1])
@pytest.mark.parametrize("most", [2, 100])
def test_boxes_that_are_kept(center: int, most: int) -> None:
    given = boxes(8) if not center else np.abs(boxes(8))
    inputs = {"boxes": given, "scores": RANDOM.uniform(0, 1, (2, 3, 8)).astype(np.float32)}
    nodes = [make("NonMaxSuppression", ["boxes", "scores", "m", "iou", "s"], ["y"], center_point_box=center)]
    constants = {"m": np.array([most]), "iou": np.array([0.3], np.float32), "s": np.array([0.2], np.float32)}
    agree(nodes, inputs, {"y": INT64}, {"y": 0}, ("y", 48), **constants)


@pytest.mark.parametrize("seed", range(3))
def test_boxes_of_negative_extents_suppress_nothing(seed: int) -> None:
    random = np.random.default_rng(seed)
    inputs = {
        "boxes": random.standard_normal((1, 10, 4)).astype(np.float32),
        "scores": random.uniform(0, 1, (1, 2, 10)).astype(np.float32),
    }
    nodes = [make("NonMaxSuppression", ["boxes", "scores", "m", "iou"], ["y"], center_point_box=1)]
    constants = {"m": np.array([10]), "iou": np.array([0.3], np.float32)}
    agree(nodes, inputs, {"y": INT64}, {"y": 0}, ("y", 20), **constants)


@pytest.mark.parametrize("threshold", [None, -np.inf, np.finfo(np.float32).min, -1.0])
def test_boxes_of_the_lowest_scores_are_kept(threshold: float | None) -> None:
    scores = RANDOM.uniform(-2, 1, (1, 3, 8)).astype(np.float32)
    scores[0, 0], scores[0, 1, 2], scores[0, 2, 5] = -np.inf, np.finfo(np.float32).min, -np.inf
    more = [] if threshold is None else ["s"]
    nodes = [make("NonMaxSuppression", ["boxes", "scores", "m", "iou", *more], ["y"])]
    constants = {"m": np.array([8]), "iou": np.array([0.6], np.float32)}
    if threshold is not None:
        constants["s"] = np.array([threshold], np.float32)
    agree(nodes, {"boxes": boxes(8)[:1], "scores": scores}, {"y": INT64}, {"y": 0}, ("y", 24), **constants)


def test_operators_of_a_pick_have_few_operands() -> None:
    """Searching the plans of one of twelve operands took 20 s."""
    inputs = {"boxes": boxes(8)[:1], "scores": RANDOM.uniform(0, 1, (1, 2, 8)).astype(np.float32)}
    nodes = [make("NonMaxSuppression", ["boxes", "scores", "m", "iou"], ["y"])]
    constants = {"m": np.array([3]), "iou": np.array([0.3], np.float32)}
    model = model_of(nodes, inputs, {"y": INT64}, **constants)
    imported = import_proto(model, source="m", bounds={"y": 6})
    counts: list[int] = []
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        walk_operations(imported.module.operation, counts)
    assert max(counts) <= 8


def walk_operations(operation: Any, counts: list[int]) -> None:
    """Count the operands of operators on tensors."""
    for region in operation.regions:
        for block in region.blocks:
            for each in block.operations:
                if each.operation.name.startswith("linalg."):
                    counts.append(len(each.operation.operands))
                walk_operations(each.operation, counts)


EXPERTS = (
    make("NonZero", ["mask"], ["at"]),
    make("Transpose", ["at"], ["rows"], perm=[1, 0]),
    make("GatherND", ["x", "rows"], ["chosen"]),
    make("MatMul", ["chosen", "w"], ["made"]),
    make("Relu", ["made"], ["act"]),
)


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_rows_go_where_they_come_from(reduction: str) -> None:
    """A mixture of experts: invalid rows are scattered nowhere."""
    mask, x = np.array([0, 1, 0, 1, 1], np.float32), RANDOM.standard_normal((5, 3)).astype(np.float32)
    nodes = [
        *EXPERTS,
        make("ScatterND", ["x", "rows", "act"], ["y"], reduction=reduction),
        make("ReduceSum", ["act", "zero"], ["total"], keepdims=0),
        make("ReduceMax", ["act", "zero"], ["most"], keepdims=1),
        make("Softmax", ["act"], ["soft"], axis=1),
    ]
    w = RANDOM.standard_normal((3, 3)).astype(np.float32)
    kinds = {"y": FLOAT, "total": FLOAT, "most": FLOAT, "soft": FLOAT}
    agree(nodes, {"mask": mask, "x": x}, kinds, {"soft": 0}, ("at", 4), w=w, zero=np.array([0]))


def test_images_regions_and_matrices_of_rows_stay_apart() -> None:
    images, wanted = (
        RANDOM.standard_normal((5, 2, 6, 6)).astype(np.float32),
        np.array([1, 0, 1, 1, 0], np.float32),
    )
    nodes = [
        make("Cast", ["wanted"], ["c"], to=TensorProto.BOOL),
        make("Compress", ["x", "c"], ["z"], axis=0),
        make("Conv", ["z", "w"], ["conv"], pads=[1, 1, 1, 1]),
        make("BatchNormalization", ["conv", "one", "half", "half", "one"], ["norm"]),
        make("MaxPool", ["norm"], ["pool"], kernel_shape=[2, 2], strides=[2, 2]),
        make("GlobalAveragePool", ["pool"], ["mean"]),
        make("TopK", ["mean", "two"], ["best", "which"], axis=1),
        make("Transpose", ["pool"], ["turned"], perm=[0, 1, 3, 2]),
        make("MatMul", ["pool", "turned"], ["gram"]),
        make("ReduceMean", ["gram", "last"], ["average"], keepdims=0),
        make("ArgMax", ["average"], ["place"], axis=1, keepdims=0),
        make("Expand", ["mean", "shape"], ["wide"]),
        make("Reshape", ["mean", "flat"], ["regions"]),
        make("Mul", ["place", "none"], ["of"]),
        make(
            "RoiAlign", ["x", "regions", "of"], ["aligned"], output_height=2, output_width=2, sampling_ratio=1
        ),
    ]
    kinds: dict[str, int] = dict.fromkeys(
        ("norm", "pool", "mean", "best", "gram", "average", "wide", "aligned"), FLOAT
    )
    axes: dict[str, int] = dict.fromkeys((*kinds, "place"), 0)
    agree(
        nodes, {"x": images, "wanted": wanted}, {**kinds, "place": TensorProto.INT64}, axes, ("z", 4),
        w=RANDOM.standard_normal((4, 2, 3, 3)).astype(np.float32),
        one=np.ones(4, np.float32), half=np.full(4, 0.5, np.float32), two=np.array([2]), last=np.array([2, 3]),
        shape=np.array([1, 4, 2, 3]), flat=np.array([-1, 4]), none=np.array([0]),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [("Softmax", {"axis": 0}), ("ReduceMean", {}), ("CumSum", {}), ("LpNormalization", {})],
)
def test_what_mixes_rows_is_refused(operator: str, attributes: dict[str, Any]) -> None:
    others = ["zero"] if operator in ("ReduceMean", "CumSum") else []
    nodes = [*EXPERTS, make(operator, ["act", *others], ["y"], name="mixer", **attributes)]
    mask, x = np.ones(5, np.float32), np.ones((5, 3), np.float32)
    model = model_of(
        nodes, {"mask": mask, "x": x}, {"y": FLOAT}, w=np.eye(3, dtype=np.float32), zero=np.array(0)
    )
    with pytest.raises(UnsupportedOpError, match=f"{operator} is not known to keep invalid rows") as caught:
        computed(model, {}, at=4)
    assert caught.value.operator == "mixer"


def test_statistics_of_a_batch_and_regions_the_other_way_round_are_refused() -> None:
    images, wanted = np.ones((5, 4, 4, 4), np.float32), np.ones(5, np.float32)
    compress = [
        make("Cast", ["wanted"], ["c"], to=TensorProto.BOOL),
        make("Compress", ["x", "c"], ["z"], axis=0),
    ]
    trained = [
        make("BatchNormalization", ["z", "one", "one", "one", "one"], ["y"], name="mixer", training_mode=1)
    ]
    turned = [
        make("ReduceMax", ["z", "last"], ["boxes"], keepdims=0),
        make("Transpose", ["boxes"], ["regions"], perm=[1, 0]),
        make("RoiAlign", ["x", "regions", "of"], ["y"], name="mixer"),
    ]
    for nodes in (trained, turned):
        model = model_of(
            [*compress, *nodes], {"x": images, "wanted": wanted}, {"y": FLOAT},
            one=np.ones(4, np.float32), last=np.array([2, 3]), of=np.zeros(4, np.int64),
        )  # fmt: skip
        with pytest.raises(UnsupportedOpError, match="is not known to keep invalid rows") as caught:
            computed(model, {}, z=4)
        assert caught.value.operator == "mixer"


def test_no_axes_are_all_axes_of_rows() -> None:
    mask, x = np.array([0, 1, 0, 1, 1], np.float32), RANDOM.standard_normal((5, 3)).astype(np.float32)
    nodes = [*EXPERTS, make("ReduceSum", ["act", "none"], ["y"], keepdims=0)]
    w = RANDOM.standard_normal((3, 3)).astype(np.float32)
    agree(nodes, {"mask": mask, "x": x}, {"y": FLOAT}, {}, ("at", 4), w=w, none=np.array([], np.int64))


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("kept", [0, 2])
def test_extremes_of_truth_values_skip_invalid_rows(operator: str, kept: int, tmp_path: Path) -> None:
    x, condition = np.full((4, 2), operator == "ReduceMin"), np.arange(4) < kept
    x[0] = ~x[0] if kept else x[0]
    nodes = [make("Compress", ["x", "c"], ["z"], axis=0), make(operator, ["z", "first"], ["y"], keepdims=0)]
    kind = TensorProto.BOOL
    model = model_of(nodes, {"x": x, "c": condition}, {"y": kind}, first=np.array([0]))
    model.opset_import[0].version = 20
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    found = t10.compile(path, "test-4", bounds={"z": 3}).run({"x": x, "c": condition})["y"]
    np.testing.assert_array_equal(found, [(operator == "ReduceMax") == bool(kept)] * 2)


def test_a_bound_says_why_an_operator_has_none() -> None:
    x, most = boxes(4)[:1], np.array([2])
    inputs = {"x": x, "s": np.ones((1, 1, 4), np.float32), "m": most}
    nodes = [
        make("NonMaxSuppression", ["x", "s", "m"], ["kept"], name="nms"),
        make("Relu", ["x"], ["y"], name="r"),
        make("NonZero", ["c"], ["z"]),
    ]
    model = model_of(nodes, inputs, {"kept": INT64, "y": FLOAT, "z": INT64}, c=np.ones(3, np.float32))
    with pytest.raises(UnsupportedOpError, match=r"--bound kept: .* max_output_boxes_per_class") as caught:
        computed(model, inputs, kept=3)
    assert caught.value.operator == "nms"
    with pytest.raises(InputError, match=r"Relu takes no bound \(expected Compress, "):
        computed(model, inputs, r=3)
    with pytest.raises(InputError, match="NonZero reads constants only"):
        computed(model, inputs, z=3)


def test_a_bound_of_nothing_is_refused() -> None:
    x = np.ones(3, np.float32)
    model = model_of([make("NonZero", ["x"], ["y"])], {"x": x}, {"y": INT64})
    with pytest.raises(InputError, match="no such operator or result"):
        computed(model, {"x": x}, z=4)
    for n in (0, 1 << 62):
        with pytest.raises(InputError, match=rf"--bound y={n} \(expected at least 1, at most 67,108,864\)"):
            computed(model, {"x": x}, y=n)
    with pytest.raises(UnsupportedOpError, match="--bound y=N"):
        computed(model, {"x": x})


@pytest.mark.slow
def test_the_command_bounds_and_both_engines_agree(tmp_path: Path) -> None:
    inputs = {"boxes": boxes(6)[:1], "scores": RANDOM.uniform(0, 1, (1, 2, 6)).astype(np.float32)}
    nodes = [
        make("NonMaxSuppression", ["boxes", "scores", "m", "iou"], ["kept"]),
        make("Slice", ["kept", "two", "three", "one"], ["at"]),
        make("Squeeze", ["at", "one"], ["row"]),
        make("Squeeze", ["boxes", "zero"], ["flat"]),
        make("Gather", ["flat", "row"], ["y"], axis=0),
    ]
    constants = {name: np.array([i]) for i, name in enumerate(("zero", "one", "two", "three"))}
    constants |= {"m": np.array([3]), "iou": np.array([0.4], np.float32)}
    model = model_of(nodes, inputs, {"y": FLOAT}, **constants)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    out = str(tmp_path / "out")
    assert main(["compile", str(path), "--chip", "test-16", "--bound", "kept=6", "-o", out, "--quiet"]) == 0
    due = by_runtime(model, inputs)["y"]
    executable = t10.compile(path, "test-16", bounds={"kept": 6}, program=True)
    for found in (executable.run(inputs), dict(run_on_tiles(executable, inputs).outputs)):
        assert int(found["kept.count"]) == len(due)
        np.testing.assert_array_equal(found["y"][: len(due)], due)
        assert not found["y"][len(due) :].any()


def places_of(x: Array, path: Path) -> Path:
    """Write a model of the elements that are not zero, by place and doubled."""
    nodes = [
        make("NonZero", ["x"], ["at"], name="where"),
        make("Transpose", ["at"], ["rows"], perm=[1, 0]),
        make("GatherND", ["x", "rows"], ["chosen"]),
        make("Add", ["chosen", "chosen"], ["y"]),
    ]
    path.write_bytes(model_of(nodes, {"x": x}, {"y": FLOAT, "rows": INT64}).SerializeToString())
    return path


@pytest.mark.parametrize(("bound", "n_valid"), [(9, 5), (3, 3)], ids=["all", "cut-off"])
def test_references_have_the_extents_of_bounds(bound: int, n_valid: int, tmp_path: Path) -> None:
    x = np.array([[0, 2, 0, 3], [5, 0, 7, 0], [0, 0, -1, 0]], np.float32)
    model = ModelProto.FromString(places_of(x, tmp_path / "m.onnx").read_bytes())
    outputs = {"y": ("f32", (bound,)), "rows": ("i64", (bound, 2)), "where.count": ("i32", ())}
    graph = SimpleNamespace(
        signature=((), tuple(TensorValue(name, shape, kind) for name, (kind, shape) in outputs.items()))
    )
    runtime = OnnxRuntime(model, tmp_path / "m.onnx")
    made = bounded(runtime, {"x": x}, {"where": bound}, cast("Graph", graph))
    assert made.cut_off({"where": bound}) == (
        "" if bound >= 5 else "the model made 5 rows, --bound where=3 keeps 3"
    )
    due = made.outputs
    assert due["where.count"] == n_valid
    np.testing.assert_array_equal(due["y"], np.pad(2 * x[x != 0][:n_valid], (0, bound - n_valid)))
    assert due["rows"].tolist()[:n_valid] == np.argwhere(x)[:n_valid].tolist()
    with pytest.raises(InputError, match="nothing to compare its count with"):
        bounded(runtime, {"x": x}, {"other": bound}, cast("Graph", graph))


@pytest.mark.slow
def test_bounded_results_are_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Against the model itself on random inputs, and against another one, which squares what this one doubles."""
    x = np.array([1, 0, 2, 3], np.float32)[None]
    model, other, given = places_of(x, tmp_path / "m.onnx"), tmp_path / "other.onnx", tmp_path / "in.npz"
    changed = ModelProto.FromString(model.read_bytes())
    changed.graph.node[3].op_type = "Mul"
    other.write_bytes(changed.SerializeToString())
    np.savez(given, x=x)
    verify = ["verify", str(model), "--chip", "test-4", "--bound", "at=4"]
    assert main([*verify]) == 0
    assert "at.count" in capsys.readouterr().out
    assert main([*verify, "--inputs", str(given), "--reference", str(other)]) == 1
    assert "differs" in capsys.readouterr().out


@pytest.mark.slow
def test_what_a_bound_cuts_off_is_not_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, given = places_of(np.ones((1, 8), np.float32), tmp_path / "m.onnx"), tmp_path / "in.npz"
    verify = ["verify", str(model), "--chip", "test-4", "--inputs", str(given), "--bound", "at=3"]
    for n_rows, code in ((3, 0), (8, 1)):
        np.savez(given, x=(np.arange(8) < n_rows).astype(np.float32)[None])
        assert main(verify) == code
    assert "FAILED: the model made 8 rows, --bound at=3 keeps 3 (on the given" in capsys.readouterr().out


def test_parts_of_a_bounded_model_are_not_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(places_of(np.ones((1, 2), np.float32), tmp_path / "m.onnx"))
    assert main(["verify", model, "--bound", "at=2", "--layers"]) == 2
    assert "--bound does not go with --layers" in capsys.readouterr().err


def test_operators_of_a_bounded_model_have_fronts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(places_of(np.ones((1, 2), np.float32), tmp_path / "m.onnx"))
    assert main(["pareto", model, "--chip", "test-4", "--bound", "at=2"]) == 0
    assert "where" in capsys.readouterr().out


def test_the_command_says_how_large_a_bound_may_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = places_of(np.ones((1, 2), np.float32), tmp_path / "m.onnx")
    assert main(["compile", str(path), "--chip", "test-4", "--bound", f"at={1 << 62}", "-o", "out"]) == 2
    assert "expected NAME=N, N of at most 9 digits" in capsys.readouterr().err
