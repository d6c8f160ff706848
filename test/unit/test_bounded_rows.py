"""Rows of which only the first are valid, behind the operators that read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.bounded import Array, agree, computed, model_of
from support.engines import by_runtime

from t10.errors import UnsupportedOpError

make = helper.make_node
CHOSEN = (
    make("NonZero", ["x"], ["at"]),
    make("Squeeze", ["at", "zero"], ["rows"]),
    make("Gather", ["x", "rows"], ["chosen"]),
)
"""The elements that are not zero."""


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("value", [0, np.inf, -np.inf])
def test_extremes_of_no_rows_and_of_infinities_are_infinite(value: float, dtype: type[np.generic]) -> None:
    x = np.array([value, 0, value, 0, 0], dtype)
    nodes = [
        *CHOSEN,
        make("ReduceMax", ["chosen"], ["most"], keepdims=0),
        make("ReduceMin", ["chosen"], ["least"], keepdims=0),
    ]
    kinds: dict[str, int] = dict.fromkeys(("most", "least"), helper.np_dtype_to_tensor_dtype(x.dtype))
    agree(nodes, {"x": x}, kinds, {}, ("at", 4), zero=np.array([0]))


SCORES = np.array([-1, 0, 3, 0, 2, -5, 0, 7], np.float32)
KINDS = {"best": TensorProto.FLOAT, "of": TensorProto.INT64, "y": TensorProto.FLOAT}


def chained(
    nodes: Sequence[Any], x: Array, names: Sequence[str], bounds: Mapping[str, int], **constants: Array
) -> None:
    """Compare outputs of nodes behind others whose results are bounded; rows behind those due must be zeros."""
    kinds = {name: KINDS.get(name, TensorProto.INT64) for name in names}
    model = model_of([*CHOSEN, *nodes], {"x": x}, kinds, zero=np.array([0]), **constants)
    due, found = by_runtime(model, {"x": x}), computed(model, {"x": x}, **bounds)
    for name in names:
        made = found[name]
        for axis, extent in enumerate(due[name].shape):
            assert not np.take(made, range(extent, made.shape[axis]), axis).any()
            made = np.take(made, range(extent), axis)
        np.testing.assert_allclose(made, due[name], rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("most", [2, 4, 9])
@pytest.mark.parametrize("x", [SCORES, -SCORES, np.where(SCORES > 5, -np.inf, SCORES)])
def test_the_best_of_bounded_rows_are_valid_ones(x: Array, most: int, largest: int) -> None:
    """Of those that a threshold leaves, as in detection."""
    nodes = [
        make("Shape", ["chosen"], ["extent"]),
        make("Min", ["extent", "most"], ["k"]),
        make("TopK", ["chosen", "k"], ["best", "place"], axis=0, largest=largest),
        make("Gather", ["rows", "place"], ["of"]),
    ]
    chained(nodes, x, ("best", "of"), {"at": 8, "best": 6}, most=np.array([most]))


def test_places_of_places_are_valid_ones() -> None:
    nodes = [
        make("Sub", ["chosen", "three"], ["less"]),
        make("NonZero", ["less"], ["again"]),
        make("Squeeze", ["again", "zero"], ["second"]),
        make("Gather", ["less", "second"], ["left"]),
        make("Gather", ["rows", "second"], ["of"]),
        make("ReduceSum", ["left"], ["y"], keepdims=0),
    ]
    chained(nodes, SCORES, ("again", "of", "y"), {"at": 8, "again": 7}, three=np.array(3, np.float32))


@pytest.mark.parametrize("bound", [3, 6])
def test_conditions_on_bounded_rows_choose_valid_ones(bound: int) -> None:
    nodes = [
        make("Less", ["chosen", "three"], ["condition"]),
        make("Compress", ["rows", "condition"], ["low"], axis=0),
    ]
    chained(nodes, SCORES, ("low",), {"at": 8, "low": bound}, three=np.array(3, np.float32))


def test_boxes_of_bounded_rows_are_kept_if_they_are_valid() -> None:
    boxes = np.random.default_rng(4).uniform(0, 1, (8, 4)).astype(np.float32)
    nodes = [
        make("Gather", ["boxes", "rows"], ["chosen_boxes"], axis=0),
        make("Unsqueeze", ["chosen_boxes", "zero"], ["one"]),
        make("Unsqueeze", ["chosen", "both"], ["scores"]),
        make("NonMaxSuppression", ["one", "scores", "most", "iou"], ["kept"]),
    ]
    for x in (SCORES, np.where(SCORES > 0, -np.inf, SCORES)):
        chained(
            nodes, x, ("kept",), {"at": 8, "kept": 8},
            boxes=boxes, both=np.array([0, 1]), most=np.array([8]), iou=np.array([0.4], np.float32),
        )  # fmt: skip


@pytest.mark.parametrize("operator", ["Sum", "Mean"])
def test_sums_and_means_of_operands_and_products_of_rows(operator: str) -> None:
    nodes = [
        make(operator, ["chosen", "three", "chosen"], ["soft"]),
        make("ReduceProd", ["soft"], ["y"], keepdims=0),
    ]
    chained(nodes, SCORES, ("y",), {"at": 8}, three=np.array([3], np.float32))


def refusal_of(nodes: Sequence[Any], **bounds: int) -> UnsupportedOpError:
    inputs = {"x": SCORES, "c": SCORES > 0, "other": np.array([0, -1])}
    model = model_of([*CHOSEN, *nodes], inputs, {"y": TensorProto.FLOAT}, zero=np.array([0]))
    with pytest.raises(UnsupportedOpError, match="is not known to keep invalid rows of the bound") as caught:
        computed(model, {}, at=8, **bounds)
    return caught.value


def test_a_refusal_names_the_operator_of_the_model_and_the_bound() -> None:
    for node, names in (
        (make("Unique", ["chosen"], ["y"], name="mine"), ("Unique", "at")),
        (make("Compress", ["chosen", "c"], ["y"], name="mine", axis=0), ("Compress", "at")),
    ):
        refused = refusal_of([node], y=4)
        assert refused.operator == "mine"
        assert f"{names[0]} is not known" in refused.message
        assert f"bounded result '{names[1]}'" in refused.message


def test_places_from_elsewhere_may_count_from_the_last_row() -> None:
    nodes = [
        make("NonZero", ["other"], ["some"]),
        make("Gather", ["some", "zero"], ["none"], axis=0),
        make("Squeeze", ["none", "zero"], ["flat"]),
        make("Neg", ["flat"], ["last"]),
        make("Gather", ["chosen", "last"], ["y"], name="mine"),
    ]
    assert refusal_of(nodes, some=2).operator == "mine"


@pytest.mark.parametrize(
    ("node", "helps"),
    [
        (make("NonZero", ["chosen"], ["y"]), True),
        (make("TopK", ["chosen", "three"], ["y", "where"]), True),
        (make("Unique", ["chosen"], ["y"]), False),
        (make("CumSum", ["chosen", "none"], ["y"]), False),
    ],
)
def test_a_refusal_says_where_a_bound_helps(node: Any, helps: bool) -> None:
    inputs = {"x": SCORES}
    constants = {"three": np.array([3]), "none": np.array(0), "zero": np.array([0])}
    model = model_of(
        [*CHOSEN, node], inputs, {"y": KINDS["of" if node.op_type == "NonZero" else "y"]}, **constants
    )
    with pytest.raises(UnsupportedOpError, match="is not known to keep invalid rows") as caught:
        computed(model, {}, at=8)
    assert caught.value.hint is not None
    assert ("--bound y=N" in caught.value.hint) == helps
    if helps:
        computed(model, {"x": SCORES}, at=8, y=3)
