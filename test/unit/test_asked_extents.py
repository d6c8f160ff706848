"""Extents of bounded results: a model that computes with one gets the count, what one shapes has valid rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper
from support.engines import by_runtime
from support.linalg_numpy import run_module

from t10.errors import UnsupportedOpError
from t10.frontend.importer import import_proto
from t10.passes.fuse import Fuse

Array = NDArray[Any]
make = helper.make_node
CONSTANTS: dict[str, Array] = {
    **{name: np.array([i]) for i, name in enumerate(("zero", "one", "two"))},
    **{f"{name}_": np.array(i) for i, name in enumerate(("zero", "one", "two"))},
    "minus": np.array([-1]),
    "half": np.array(0.5, np.float32),
    "width": np.array([3]),
}
ROWS = (
    make("NonZero", ["mask"], ["at"]),
    make("Transpose", ["at"], ["rows"], perm=[1, 0]),
    make("GatherND", ["x", "rows"], ["v"]),
)
"""v has the shape (count, 3)."""
COUNT = (make("Shape", ["v"], ["s"]), make("Gather", ["s", "zero"], ["n"]))
FLOATS = (make("Cast", ["n"], ["f"], to=TensorProto.FLOAT),)


def model_of(nodes: Sequence[Any], kind: int) -> Any:
    inputs = {"mask": (TensorProto.FLOAT, [6]), "x": (TensorProto.FLOAT, [6, 3])}
    graph = helper.make_graph(
        [*ROWS, *nodes],
        "g",
        [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(value, name) for name, value in CONSTANTS.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def computed(model: Any, inputs: dict[str, Array]) -> dict[str, Array]:
    imported = import_proto(ModelProto.FromString(model.SerializeToString()), source="m", bounds={"at": 5})
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        return dict(run_module(imported.module, {**inputs, **imported.weights}))


def agree(nodes: Sequence[Any], kind: int) -> None:
    """Compare with ONNX Runtime for several counts; an output of rows is compared in those that are valid."""
    model = model_of(nodes, kind)
    for count in (1, 2, 5):
        x = np.random.default_rng(count).standard_normal((6, 3)).astype(np.float32)
        inputs: dict[str, Array] = {"mask": np.arange(6, 0, -1) <= count, "x": x}
        inputs["mask"] = inputs["mask"].astype(np.float32)
        due, found = by_runtime(model, inputs)["y"], computed(model, inputs)["y"]
        if due.shape != found.shape:
            assert not found[count:].any()
            found = found[:count]
        np.testing.assert_allclose(found, due, rtol=1e-5, err_msg=f"{count} rows")


@pytest.mark.parametrize(
    "nodes",
    [
        [*COUNT, make("Identity", ["n"], ["y"])],
        [make("Shape", ["v"], ["y"])],
        [make("Size", ["v"], ["y"])],
        [make("Size", ["at"], ["y"])],
        [make("Shape", ["v"], ["y"], start=0, end=1)],
        [*COUNT, make("Mul", ["n", "two"], ["m"]), make("Add", ["m", "one"], ["y"])],
        [*COUNT, make("Mod", ["n", "two"], ["y"])],
    ],
    ids=["count", "shape", "size", "size_of_places", "part", "linear", "computed"],
)
def test_a_model_may_compute_with_a_count(nodes: list[Any]) -> None:
    agree(nodes, TensorProto.INT64)


def test_a_mean_divides_by_the_count() -> None:
    total = make("ReduceSum", ["v", "zero"], ["t"], keepdims=0)
    agree([total, *COUNT, *FLOATS, make("Div", ["t", "f"], ["y"])], TensorProto.FLOAT)


def test_extents_that_are_known_stay_constants() -> None:
    width = [make("Shape", ["v"], ["s"]), make("Gather", ["s", "one"], ["n"]), *FLOATS]
    root = [make("Sqrt", ["f"], ["r"]), make("Mul", ["v", "r"], ["y"])]
    agree([*width, *root], TensorProto.FLOAT)


SHAPED = {
    "Expand": [make("Expand", ["half", "n"], ["e"])],
    "ExpandRows": [
        make("Concat", ["n", "width"], ["to"], axis=0),
        make("Expand", ["half", "to"], ["w"]),
        make("ReduceMax", ["w", "one"], ["e"], keepdims=0),
    ],
    "ConstantOfShape": [
        make("ConstantOfShape", ["n"], ["e"], value=numpy_helper.from_array(np.array([2], np.float32)))
    ],
    "Range": [
        make("Squeeze", ["n"], ["end"]),
        make("Range", ["zero_", "end", "one_"], ["i"]),
        make("Cast", ["i"], ["e"], to=TensorProto.FLOAT),
    ],
    "Where": [
        make("Equal", ["n", "minus"], ["is_minus"]),
        make("Where", ["is_minus", "one", "n"], ["to"]),
        make("Expand", ["half", "to"], ["e"]),
    ],
}


@pytest.mark.parametrize("is_sum", [False, True])
@pytest.mark.parametrize("form", SHAPED)
def test_what_a_count_shapes_has_valid_rows(form: str, is_sum: bool) -> None:
    reader = make("ReduceSum", ["e", "zero"], ["y"]) if is_sum else make("Neg", ["e"], ["y"])
    agree([*COUNT, *SHAPED[form], reader], TensorProto.FLOAT)


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [make("Mul", ["n", "n"], ["q"]), make("ConstantOfShape", ["q"], ["y"])],
            "ConstantOfShape 'y' makes rows",
        ),
        ([make("Tile", ["half_row", "n"], ["y"])], "Tile 'y' makes rows of what Shape says"),
    ],
)
def test_what_is_not_linear_in_a_count_is_refused(nodes: list[Any], message: str) -> None:
    row = make("Reshape", ["half", "one"], ["half_row"])
    with pytest.raises(UnsupportedOpError, match=message) as caught:
        computed(model_of([*COUNT, row, *nodes], TensorProto.FLOAT), {})
    assert caught.value.operator == "s"
