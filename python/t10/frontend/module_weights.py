"""Large constants of a module of linalg become arguments, as weights do: no weight data stays in the IR."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.dialect.location import location_text
from t10.dialect.mlir import ir, walk
from t10.errors import UnsupportedOpError
from t10.frontend.lower import NAME, WEIGHT
from t10.frontend.weights import MAX_FLOAT_CONSTANT, MAX_OTHER_CONSTANT


def lift_constants(function: Any) -> dict[str, NDArray[np.generic]]:
    """Make every large constant of a function an argument marked `t10.weight`; return the values by name.

    What is the same everywhere stays a constant. A constant is named by its location where that has a name of its own,
    else `constantN`. The function must have `arg_attrs` already. Raises `UnsupportedOpError` for elements that numpy
    cannot hold.
    """
    block = function.regions[0].blocks[0]
    entries = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    taken = {ir.StringAttr(ir.DictAttr(entry)[NAME]).value for entry in entries}
    values: dict[str, NDArray[np.generic]] = {}
    for op in walk(function):
        if op.operation.name != "arith.constant" or not _is_large(op.operation):
            continue
        name = f"constant{len(values)}"
        while name in taken:
            name += "_"
        result = op.operation.results[0]
        values[name] = _values(op.operation)
        argument = block.add_argument(result.type, op.operation.location)
        result.replace_all_uses_with(argument)
        op.operation.erase()
        entries.append(ir.DictAttr.get({NAME: ir.StringAttr.get(name), WEIGHT: ir.UnitAttr.get()}))
    if values:
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
        kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
        arguments = [argument.type for argument in block.arguments]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(arguments, kind.results))
    return values


def _is_large(op: Any) -> bool:
    """Return whether a constant is a tensor of many elements that differ."""
    value = op.attributes["value"]
    if not isinstance(op.results[0].type, ir.RankedTensorType) or not isinstance(value, ir.DenseElementsAttr):
        return False
    kind = ir.RankedTensorType(op.results[0].type)
    count = int(np.prod(kind.shape, dtype=np.int64))
    limit = MAX_FLOAT_CONSTANT if isinstance(kind.element_type, ir.FloatType) else MAX_OTHER_CONSTANT
    return count > limit and not value.is_splat


def _values(op: Any) -> NDArray[np.generic]:
    """Return the elements of a constant."""
    kind = ir.RankedTensorType(op.results[0].type)
    array = np.array(op.attributes["value"])
    if array.dtype == np.object_:
        raise UnsupportedOpError(
            f"a constant of type {kind} cannot be planned (expected floats of 16 to 64 bits, integers or i1)",
            location=location_text(op.location),
        )
    return array.reshape(tuple(kind.shape)).copy()
