"""Models of which results have a bound: what they compute, and what ONNX Runtime does in their valid rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, helper, numpy_helper

from support.engines import by_runtime
from support.linalg_numpy import run_module
from t10.frontend.importer import import_proto
from t10.passes.fuse import Fuse

Array = NDArray[Any]


def model_of(
    nodes: Sequence[Any], inputs: Mapping[str, Array], kinds: Mapping[str, int], **constants: Array
) -> Any:
    """Return a model of opset 18; of its outputs only the types are stated."""
    known = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, known(x.dtype), x.shape) for name, x in inputs.items()],
        [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def computed(of: Any, inputs: Mapping[str, Array], **bounds: int) -> dict[str, Array]:
    """Return what the imported and fused model computes, interpreted."""
    imported = import_proto(ModelProto.FromString(of.SerializeToString()), source="m", bounds=bounds)
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        return dict(run_module(imported.module, {**inputs, **imported.weights}))


def agree(
    nodes: Sequence[Any],
    inputs: Mapping[str, Array],
    kinds: Mapping[str, int],
    axes: Mapping[str, int],
    bound: tuple[str, int],
    **constants: Array,
) -> None:
    """Compare the valid rows along `axes` with ONNX Runtime's, and all of other outputs."""
    model = model_of(nodes, inputs, kinds, **constants)
    due, found = by_runtime(model, dict(inputs)), computed(model, inputs, **{bound[0]: bound[1]})
    count = int(found[f"{bound[0]}.count"])
    for name in kinds:
        expected, made = due[name], found[name]
        if name in axes:
            axis = axes[name]
            expected = np.take(expected, range(min(expected.shape[axis], bound[1])), axis)
            assert count == expected.shape[axis]
            assert made.shape[axis] == bound[1]
            rest = np.take(made, range(count, bound[1]), axis)
            assert not rest.any()
            made = np.take(made, range(count), axis)
        np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-6, err_msg=name)
