"""Long constants of a module of linalg become arguments, as weights do: no weight data stays in the IR."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.dialect.elements import elements, is_long
from t10.dialect.location import location_text
from t10.dialect.mlir import ir, walk
from t10.errors import UnsupportedOpError
from t10.frontend.imported import ImportedModel
from t10.frontend.lower import NAME, WEIGHT


def lift_constants(model: ImportedModel) -> ImportedModel:
    """Return a model whose long constants (see `t10.dialect.elements`) are weights: its module is changed.

    They are named `constantN`. What is the same everywhere stays a constant. Raises `UnsupportedOpError` for elements
    that numpy cannot hold.
    """
    function = next(op.operation for op in model.module.body.operations if op.operation.name == "func.func")
    with model.module.context, function.location:
        lifted = _lifted(function)
    return replace(
        model,
        weights={**model.weights, **lifted},
        weight_names=(*model.weight_names, *lifted),
    )


def _lifted(function: Any) -> dict[str, NDArray[np.generic]]:
    """Make every long constant of a function an argument marked `t10.weight`; return the values by name."""
    block = function.regions[0].blocks[0]
    entries = list(ir.ArrayAttr(function.attributes["arg_attrs"])) if block.arguments else []
    taken = {ir.StringAttr(ir.DictAttr(entry)[NAME]).value for entry in entries}
    values: dict[str, NDArray[np.generic]] = {}
    for op in [each.operation for each in walk(function) if is_long(each.operation)]:
        name = f"constant{len(values)}"
        while name in taken:
            name += "_"
        result = op.results[0]
        values[name] = _values(op)
        argument = block.add_argument(result.type, op.location)
        result.replace_all_uses_with(argument)
        op.erase()
        entries.append(ir.DictAttr.get({NAME: ir.StringAttr.get(name), WEIGHT: ir.UnitAttr.get()}))
    if values:
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
        kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        arguments = [argument.type for argument in block.arguments]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, kind.results))
    return values


def _values(op: Any) -> NDArray[np.generic]:
    """Return the elements of a constant."""
    kind = ir.RankedTensorType(op.results[0].type)
    try:
        values = elements(op.attributes["value"], str(kind.element_type))
    except (ValueError, TypeError, RuntimeError, UnsupportedOpError):
        values = None
    if values is None:
        raise UnsupportedOpError(
            f"a constant of type {kind} cannot be planned (expected floats of 16 to 64 bits, integers or i1)",
            location=location_text(op.location),
        )
    return values
