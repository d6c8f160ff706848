"""Text of onnx-mlir around a few operations, and the ONNX model it stands for."""

from __future__ import annotations

from typing import Any

from t10.dialect.mlir import ir, new_context
from t10.frontend.onnx_dialect import to_onnx
from t10.frontend.onnx_text import normalize

_FUNCTION = "module {{\nfunc.func @main_graph({arguments}) -> ({results}) {{\n{body}\n}}\n}}\n"


def function_text(body: str, arguments: str = "", results: str = "") -> str:
    """Return a module with one function."""
    return _FUNCTION.format(arguments=arguments, results=results, body=body)


def model_of(text: str) -> Any:
    """Return the `onnx.ModelProto` of a text."""
    context = new_context(allow_unregistered=True)
    module = ir.Module.parse(normalize(text), context)
    with context:
        return to_onnx(module)


def constant_of(spelling: str, kind: str) -> Any:
    """Return the `TensorProto` of `onnx.Constant <spelling>` of a tensor type."""
    text = function_text(f"%0 = onnx.Constant {spelling}\nonnx.Return %0 : {kind}", results=kind)
    return model_of(text).graph.initializer[0]
