"""The functions of a module: those with a body, and the one that is the model."""

from __future__ import annotations

from typing import Any

from t10.dialect.location import source_text
from t10.dialect.mlir import ir
from t10.errors import InputError

_MOST_NAMED = 5


def functions_of(module: Any) -> list[Any]:
    """Return the functions of a module that have a body."""
    operations = [op.operation for op in module.body.operations]
    return [op for op in operations if op.name == "func.func" and len(op.regions[0].blocks)]


def name_of(function: Any) -> str:
    """Return the name of a function."""
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def is_private(function: Any) -> bool:
    """Return whether a function is only there to be called."""
    attributes = function.attributes
    return "sym_visibility" in attributes and str(attributes["sym_visibility"]) == '"private"'


def only_function(module: Any, source: str) -> Any:
    """Return the one function of a module that has a body; raises `InputError` if there are none or several."""
    bodies = functions_of(module)
    if len(bodies) == 1:
        return bodies[0]
    names = named(bodies)
    raise InputError(
        f"{source} has {len(bodies)} functions with a body (expected one){names and f': {names}'}",
        location=source_text(bodies[1]) or None if bodies else None,
        hint=f"keep one of them: t10-opt --t10-flatten=entry={name_of(bodies[0])}" if bodies else None,
    )


def named(functions: list[Any]) -> str:
    """Return the names of functions, the first of them."""
    names = [f"@{name_of(function)}" for function in functions]
    return ", ".join((*names[:_MOST_NAMED], *(["..."] if len(names) > _MOST_NAMED else [])))
