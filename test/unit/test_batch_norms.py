"""A batch normalisation that stands apart from its convolution is part of its weights once it is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from support.engines import by_runtime

import t10
from t10.frontend.importer import import_proto

HEAD = '<ir_version: 8, opset_import: ["": 17]> g (float[2,3,6,6] x) => (float[2,8,4,4] y'
CONV = "c = Conv (x, w, b)"
NORM = "y = BatchNormalization <epsilon: float = 0.01> (c, scale, bias, mean, var)"
EXTENTS = {"w": (8, 3, 3, 3), "b": (8,), "scale": (8,), "bias": (8,), "mean": (8,), "var": (8,)}


def model(text: str, **changed: Any) -> Any:
    found: Any = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    for name, shape in EXTENTS.items():
        values = rng.uniform(0.5, 1.5, shape).astype(np.float32) * (
            1 if name == "var" else rng.choice([-1, 1], shape)
        )
        given = np.asarray(changed.get(name, values), np.float32)
        found.graph.initializer.append(numpy_helper.from_array(given, name))
    return found


def n_operations(module: Any) -> int:
    return str(module).count("linalg.generic") + str(module).count("linalg.conv")


@pytest.mark.parametrize("conv", [CONV, "c = Conv (x, w)", "c = Conv <strides = [1, 1]> (x, w, b)"])
def test_it_is_one_convolution(conv: str) -> None:
    of = model(f"{HEAD}) {{ {conv} {NORM} }}")
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 6)).astype(np.float32)
    (expected,) = by_runtime(of, {"x": x}).values()
    imported = import_proto(of, source="m")
    assert n_operations(imported.module) == 1
    found = t10.compile(imported, "test-4").run({"x": x})["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (f"{HEAD}, float[2,8,4,4] c) {{ {CONV} {NORM} }}", {}),  # the sum alone is an output, too
        (f"{HEAD}) {{ {CONV} {NORM} }}", {"var": np.full(8, -1)}),  # no number
        (
            f"{HEAD}, float[8,3,3,3] other) {{ {CONV} {NORM} other = Identity (w) }}",
            {},
        ),  # not its weights alone
    ],
)
def test_what_others_read_stays(text: str, changed: dict[str, Any]) -> None:
    of = model(text, **changed)
    before = {tensor.name: numpy_helper.to_array(tensor).copy() for tensor in of.graph.initializer}
    imported = import_proto(of, source="m")
    assert n_operations(imported.module) > 1
    for name in {"w"} & imported.weights.keys():
        np.testing.assert_array_equal(imported.weights[name], before[name])
