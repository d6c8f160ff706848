"""Comparisons that torch-mlir makes in f64, made in the type of what is compared: the chip has no f64.

    cmpf olt, extf(%x : f32 to f64), 0.5 : f64      becomes      cmpf olt, %x, 0.5 : f32

Widening keeps order and equality, so this is exact wherever the constant is one of the narrow type, as infinities are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t10.dialect.mlir import ir, walk

_NARROW = {"f32": np.float32, "f16": np.float16}


def narrow_comparisons(function: Any) -> None:
    """Rewrite, in place, every comparison of a widened value with a constant that its own type holds."""
    for op in walk(function):
        operation = op.operation
        if operation.name == "arith.cmpf" and str(operation.operands[0].type) == "f64":
            _narrow(operation)


def _narrow(compare: Any) -> None:
    sources = [_source(value) for value in compare.operands]
    kind = next((source.type for source in sources if source is not None), None)
    if kind is None or any(source is not None and source.type != kind for source in sources):
        return
    narrow = [
        _constant(value, kind) if source is None else source
        for value, source in zip(compare.operands, sources, strict=True)
    ]
    if all(value is not None for value in narrow):
        for i, value in enumerate(narrow):
            compare.operands[i] = value


def _source(value: Any) -> Any:
    """Return what a value was widened from, None if it was not."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.extf":
        return None
    source = owner.operation.operands[0]
    return source if str(source.type) in _NARROW else None


def _constant(value: Any, kind: Any) -> Any:
    """Return a constant of f64 as one of a narrow type, None if it is not one or does not fit exactly."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.constant":
        return None
    wide = np.float64(ir.FloatAttr(owner.operation.attributes["value"]).value)
    with np.errstate(over="ignore"):
        narrow = _NARROW[str(kind)](wide)
    if np.float64(narrow) != wide and not np.isnan(wide):
        return None
    made = ir.Operation.create(
        "arith.constant",
        results=[kind],
        attributes={"value": ir.FloatAttr.get(kind, float(narrow))},
        loc=owner.operation.location,
        ip=ir.InsertionPoint(owner),
    )
    return made.results[0]
