"""A model with what is hidden inside its operators in sight: functions and attentions are written with others.

What a node gives does not show what overflows inside it: the scores of an attention may, and its result be of the size
of values all the same.
"""

from __future__ import annotations

from typing import Any

import onnx

from t10.arrays import Arrays
from t10.errors import T10Error
from t10.frontend.contributed import ATTENTIONS, rewrite_attentions
from t10.frontend.fixed_inputs import fix_inputs
from t10.frontend.fold import fold_constants
from t10.frontend.functions import PREVIEWED, expand_functions
from t10.frontend.opsets import plain_domain, raise_opset
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.shapes import infer_shapes, set_shapes
from t10.reference import OnnxRuntime

_FUNCTIONS = frozenset({"Attention", "LinearAttention"})
"""Operators of ONNX with scores."""
_HIDING = ATTENTIONS | {PREVIEWED, *(("", name) for name in _FUNCTIONS)}
_MOST_STORED = 1 << 16
"""Bytes of constants that may decide what is written; larger ones are left aside meanwhile."""


def written_out(runtime: OnnxRuntime, inputs: Arrays) -> OnnxRuntime:
    """Return a model with its functions and attentions written with other operators, for inputs of these extents.

    It is the one given if there are none, or none that can be written so.
    """
    model = type(runtime.model)()
    model.CopyFrom(runtime.model)
    plain_domain(model)
    if not model.functions and not any((node.domain, node.op_type) in _HIDING for node in model.graph.node):
        return runtime
    aside = [tensor for tensor in model.graph.initializer if tensor.ByteSize() > _MOST_STORED]
    try:
        model = _written(_without_constants(model, aside), runtime, inputs)
        names = {tensor.name for tensor in aside}
        replace_all(model.graph.input, [value for value in model.graph.input if value.name not in names])
        model.graph.initializer.extend(aside)
        made = OnnxRuntime(model, runtime.path, runtime.fixed)
        made.outputs(inputs)
    except T10Error:  # what cannot be written out, or then computed, is seen from outside
        return runtime
    return made


def _without_constants(model: Any, aside: list[Any]) -> Any:
    """Make constants inputs, in place."""
    graph = model.graph
    tensors = {tensor.name: tensor for tensor in aside}
    known = {value.name for value in graph.input}
    replace_all(graph.initializer, [each for each in graph.initializer if each.name not in tensors])
    for name, tensor in tensors.items():
        if name not in known:
            graph.input.append(onnx.helper.make_tensor_value_info(name, tensor.data_type, tensor.dims))
    return model


def _written(model: Any, runtime: OnnxRuntime, inputs: Arrays) -> Any:
    source = str(runtime.path)
    names = {value.name for value in model.graph.input}
    set_shapes(model, {name: array.shape for name, array in inputs.items() if name in names})
    fix_inputs(model, {name: array for name, array in runtime.fixed.items() if name in names})
    model = raise_opset(model)
    model = infer_shapes(expand_functions(model, frozenset()), source)
    model = infer_shapes(expand_functions(model, _FUNCTIONS), source)
    while any(step(model) for step in (fold_constants, rewrite_attentions)):
        model = infer_shapes(model, source)
    del model.graph.value_info[:]  # ONNX Runtime infers its own
    for node in model.graph.node:
        node.name = ""  # it takes none twice
    return model
