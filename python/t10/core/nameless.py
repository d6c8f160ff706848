"""Operators and layouts without their names, so that what is equal but for names is verified once."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from t10.core.expression import Operand, OperatorSpec
from t10.core.schedule import ValueLayout

REMEMBERED = 512
"""Distinct operators of a model whose findings are kept: BERT-large has about twenty."""


@lru_cache(maxsize=REMEMBERED)
def nameless(spec: OperatorSpec) -> OperatorSpec:
    """Return the operator without names of its own, of its axes and of its values."""

    def renamed(operand: Operand, name: str) -> Operand:
        return replace(operand, name=name)

    return replace(
        spec,
        name="",
        location="",
        inputs=tuple(renamed(o, f"input {i}") for i, o in enumerate(spec.inputs)),
        epilogue_inputs=tuple(renamed(o, f"epilogue input {i}") for i, o in enumerate(spec.epilogue_inputs)),
        output=renamed(spec.output, "the output"),
        first=spec.first and renamed(spec.first, "first partials"),
    )


def nameless_layout(layout: ValueLayout) -> ValueLayout:
    """Return the layout without the names of its value and operator."""
    return replace(layout, value="", operator="operator" if layout.operator else "")
