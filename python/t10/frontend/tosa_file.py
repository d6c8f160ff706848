"""TOSA, as onnx-mlir (`--convert-onnx-to-tosa`) and others write it: lowered to linalg by MLIR's own passes."""

from __future__ import annotations

import re
from typing import Any

from t10.dialect.location import location_text
from t10.dialect.mlir import ir, new_context, passmanager, signature_attributes, walk
from t10.errors import UnsupportedOpError
from t10.frontend.diagnose import reason_of
from t10.frontend.imported import ImportedModel
from t10.frontend.linalg_file import named_model
from t10.frontend.lower import NAME
from t10.frontend.mlir_text import parse_module
from t10.frontend.onnx_extras import ANNOTATIONS
from t10.frontend.onnx_text import normalize

_HOLDS = re.compile(r'(?<![\w.$#!@%^-])"?tosa\.[a-z]\w*')
_TO_LINALG = (
    "builtin.module(func.func(tosa-optional-decompositions,canonicalize,tosa-to-linalg-named,canonicalize,"
    "tosa-layerwise-constant-fold,tosa-make-broadcastable,tosa-to-linalg,tosa-to-arith,tosa-to-tensor,canonicalize,cse))"
)


def holds_tosa(text: str) -> bool:
    """Return whether MLIR text holds operations of TOSA."""
    return "tosa." in text and _HOLDS.search(text) is not None


def is_tosa(module: Any) -> bool:
    """Return whether a module holds operations of TOSA."""
    return any(op.operation.name.startswith("tosa.") for op in walk(module))


def read_tosa(text: str, source: str, context: Any) -> ImportedModel:
    """Return the model of TOSA text; raises `InputError` for what cannot be parsed, and what `lower_tosa` raises."""
    with new_context(allow_unregistered=True), ir.Location.unknown():
        module = parse_module(normalize(text), source)
        lower_tosa(module)
        lowered = str(module.operation.get_asm(enable_debug_info=True))
    with context:
        return named_model(ir.Module.parse(lowered), source)


def lower_tosa(module: Any) -> None:
    """Lower TOSA to linalg on tensors, in place; arguments and results keep the names that onnx-mlir gave them.

    Raises `UnsupportedOpError` naming every operation that is left: of TOSA, or of the onnx dialect beside it.
    """
    for op in [each.operation for each in module.body.operations]:
        if op.name.removeprefix("onnx.") in ANNOTATIONS:
            op.erase()
        elif op.name == "func.func":
            _name(op)
    for key in [name for name in module.operation.attributes if name.startswith(("onnx-mlir.", "llvm."))]:
        del module.operation.attributes[key]
    first = next((op.operation.name for op in walk(module) if op.operation.name.startswith("tosa.")), "TOSA")
    _require_none(module, "onnx.", f"stands beside {first} (expected operations of one dialect)")
    try:
        passmanager.PassManager.parse(_TO_LINALG).run(module.operation)
    except ir.MLIRError as error:
        raise UnsupportedOpError(
            f"the module cannot be lowered from TOSA to linalg: {reason_of(str(error))}"
        ) from error
    _require_none(module, "tosa.", "has no lowering to linalg")


def _name(function: Any) -> None:
    """Give arguments and results of a function their names as ours."""
    for key in ("arg_attrs", "res_attrs"):
        if key not in function.attributes:
            continue
        rows = signature_attributes(function, key, len(ir.ArrayAttr(function.attributes[key])))
        for row in rows:
            name = row.pop("onnx.name", None)
            row.pop("onnx.dim_params", None)
            if name is not None:
                row[NAME] = name
        function.attributes[key] = ir.ArrayAttr.get([ir.DictAttr.get(row) for row in rows])


def _require_none(module: Any, prefix: str, why: str) -> None:
    found: dict[str, str] = {}
    for op in walk(module):
        if op.operation.name.startswith(prefix):
            found.setdefault(op.operation.name, location_text(op.operation.location))
    if found:
        name, place = next(iter(found.items()))
        more = f"; so do {', '.join(list(found)[1:])}" if len(found) > 1 else ""
        raise UnsupportedOpError(f"operation {name} {why}{more}", location=place)
