"""Inverse of ONNX Runtime's domain, of stacks of small matrices of several scales."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.contributed import DOMAIN, Array, computed, model_of
from support.engines import by_runtime

from t10.errors import UnsupportedOpError


def model(x: Array, kind: int) -> Any:
    node = helper.make_node("Inverse", ["x"], ["y"], name="node", domain=DOMAIN)
    return model_of(node, {"x": x}, {"y": kind}, {})


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 5), (2, 3, 4, 4), (16, 16)])
@pytest.mark.parametrize("scale", [0, 3])
def test_inverses(shape: tuple[int, ...], scale: float) -> None:
    """The first element is 0 if there are others: without a choice of rows it would be divided by."""
    random = np.random.default_rng(shape[-1])
    x = (random.standard_normal(shape) * 10 ** random.uniform(-scale, scale, shape)).astype(np.float32)
    if shape[-1] > 1:
        x[..., 0, 0] = 0
    of = model(x, TensorProto.FLOAT)
    found, due = computed(of, {"x": x})["y"], by_runtime(of, {"x": x})["y"]
    assert np.abs(found - due).max() <= 2e-5 * np.abs(due).max()


def test_inverses_of_halves_are_computed_in_single() -> None:
    x = np.array([[0, 2, 0], [4, 1, 0], [0, 0, 0.5]], np.float16)
    found = computed(model(x, TensorProto.FLOAT16), {"x": x})["y"]
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, np.linalg.inv(x.astype(np.float32)), rtol=1e-3)


@pytest.mark.parametrize("shape", [(17, 17), (3, 4), (3,)])
def test_matrices_without_a_rule_are_refused(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    with pytest.raises(UnsupportedOpError, match="Inverse is of matrices of more than 16 rows") as caught:
        computed(model(x, TensorProto.FLOAT), {"x": x})
    assert caught.value.operator == "node"
