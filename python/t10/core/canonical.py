"""Operators up to names: what is made once for all operators of the same kind in a model."""

from __future__ import annotations

from dataclasses import replace

from t10.core.expression import OperatorSpec


def canonical(spec: OperatorSpec) -> OperatorSpec:
    """Return the operator with neutral names: two operators that only differ in names become equal."""
    return replace(
        spec,
        name="operator",
        location="",
        axes=tuple(replace(axis, name=f"d{i}") for i, axis in enumerate(spec.axes)),
        inputs=tuple(replace(operand, name=f"in{i}") for i, operand in enumerate(spec.inputs)),
        epilogue_inputs=tuple(
            replace(operand, name=f"ep{i}") for i, operand in enumerate(spec.epilogue_inputs)
        ),
        output=replace(spec.output, name="out"),
        first=spec.first and replace(spec.first, name="first"),
    )
