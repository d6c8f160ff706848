"""Nodes of ONNX Runtime's domain of random extents, compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, helper, numpy_helper

from support.engines import by_runtime
from support.linalg_numpy import run_module
from t10.frontend.importer import import_proto
from t10.passes.fuse import Fuse

Array = NDArray[Any]
DOMAIN = "com.microsoft"
SEEDS = range(6)


class Drawn:
    """Random extents, attributes and arrays of one seed."""

    def __init__(self, seed: int, dtype: Any = np.float32) -> None:
        self.random = np.random.default_rng(seed)
        self.dtype = dtype

    def extent(self, least: int = 1, most: int = 5) -> int:
        return int(self.random.integers(least, most + 1))

    def coin(self) -> bool:
        return bool(self.random.integers(0, 2))

    def array(self, *shape: int) -> Array:
        return self.random.standard_normal(shape).astype(self.dtype)

    def mask(self, shape: tuple[int, ...], total: int) -> Array:
        """Return a mask, or ends of sequences, by which no key remains for nothing."""
        if len(shape) == 1:
            return self.random.integers(1, total + 1, shape).astype(np.int32)
        found = self.random.integers(0, 2, shape).astype(np.int32)
        found[..., 0] = 1
        return found

    def choice(self, *values: Any) -> Any:
        return values[self.random.integers(0, len(values))]


def model_of(
    node: Any,
    inputs: Mapping[str, Array],
    kinds: Mapping[str, int],
    constants: Mapping[str, Array],
    opset: int = 17,
) -> Any:
    """Return a model of one node."""
    known = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(name, known(x.dtype), x.shape) for name, x in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def computed(of: Any, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return what the imported and fused model computes, interpreted."""
    imported = import_proto(ModelProto.FromString(of.SerializeToString()), source="m")
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        return dict(run_module(imported.module, {**inputs, **imported.weights}))


def agree(
    operator: str,
    inputs: Mapping[str, Array | None],
    outputs: str,
    *,
    constants: Mapping[str, Array] | None = None,
    domain: str = DOMAIN,
    tolerance: float = 2e-5,
    attributes: Mapping[str, Any] | None = None,
) -> None:
    """Compare a node with ONNX Runtime's; of the inputs in order, None is left out."""
    fixed = dict(constants or {})
    names = [name if x is not None or name in fixed else "" for name, x in inputs.items()]
    while names and not names[-1]:
        names.pop()
    given = {name: x for name, x in inputs.items() if x is not None}
    node = helper.make_node(
        operator,
        names,
        outputs.replace("-", " ").split(" "),
        name="node",
        domain=domain,
        **(attributes or {}),
    )
    floats = next(x.dtype for x in (*given.values(), *fixed.values()) if x.dtype.kind == "f")
    kinds = {name: helper.np_dtype_to_tensor_dtype(floats) for name in node.output if name}
    model = model_of(node, given, kinds, fixed)
    due, found = by_runtime(model, given), computed(model, given)
    for name in kinds:
        expected, made = due[name], found[name]
        assert made.shape == expected.shape
        assert made.dtype == expected.dtype
        np.testing.assert_allclose(made, expected, rtol=tolerance, atol=tolerance, err_msg=name)
