"""Sparse tensors of a model (sparse initializers, constants with `sparse_value`) with all their elements."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from t10.errors import InputError
from t10.frontend.protobuf_fields import all_nodes

MOST_ELEMENTS = 1 << 28
"""How many elements all sparse tensors of a model may have: a file of a few bytes may ask for any number."""

_onnx: Any = onnx  # some of its functions are typed in part only


def make_dense(model: Any, source: str) -> None:
    """Write the sparse tensors of a model as dense ones, in place; raises `InputError` for one that is none."""
    functions = [function.node for function in model.functions]
    nodes = [node for each in (model.graph.node, *functions) for node in all_nodes(each)]
    attributes = [attribute for node in nodes for attribute in node.attribute]
    bodies = [graph for attribute in attributes for graph in (attribute.g, *attribute.graphs)]
    n_elements = 0
    for graph in (model.graph, *filter(_has_sparse, bodies)):
        for sparse in graph.sparse_initializer:
            n_elements += _checked(sparse, n_elements, source)
            graph.initializer.append(_dense(sparse))
        del graph.sparse_initializer[:]
    for node in nodes:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "sparse_value":
                n_elements += _checked(attribute.sparse_tensor, n_elements, source)
                attribute.CopyFrom(onnx.helper.make_attribute("value", _dense(attribute.sparse_tensor)))


def _has_sparse(graph: Any) -> bool:
    """Return whether a graph has sparse initializers; changing one that an attribute does not hold would set it."""
    return bool(graph.sparse_initializer)


def _checked(sparse: Any, before: int, source: str) -> int:
    """Return how many elements a sparse tensor has, `before` of others are there already."""
    where = f"{source}: sparse tensor {sparse.values.name[:100]!r}"
    if onnx.TensorProto.EXTERNAL in (sparse.values.data_location, sparse.indices.data_location):
        raise InputError(f"{where} is external data (expected values within the model)")
    if sparse.values.data_type == onnx.TensorProto.STRING:
        raise InputError(f"{where} holds text (expected numbers)")
    try:
        _onnx.checker.check_sparse_tensor(sparse)
    except onnx.checker.ValidationError as error:
        raise InputError(f"{where} breaks the rules of ONNX: {' '.join(str(error).split())[:300]}") from error
    n_elements = prod(sparse.dims)
    if before + n_elements > MOST_ELEMENTS:
        raise InputError(f"{where} has {n_elements:,} elements (expected {MOST_ELEMENTS:,} in all at most)")
    return n_elements


def _dense(sparse: Any) -> Any:
    """Return a checked sparse tensor as a dense one of its name."""
    values, places = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
    dense = np.zeros(tuple(sparse.dims), values.dtype)
    dense[np.unravel_index(places, dense.shape) if places.ndim == 1 else tuple(places.T)] = values
    return numpy_helper.from_array(dense, sparse.values.name)
