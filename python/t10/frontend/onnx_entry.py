"""The function of a module of the onnx dialect that is the model, and those that it calls."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from t10.dialect.functions import functions_of, is_private, name_of, named
from t10.dialect.location import location_text
from t10.dialect.mlir import ir, walk
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.written_size import CALL, callee_of, check_calls


def entry_and_called(module: Any) -> tuple[Any, dict[str, Any]]:
    """Return the function that is the model, and by name those it calls, directly or through others.

    It is the one that `onnx.EntryPoint` names, or the only one that no other calls, or the only public one of those.
    Raises `InputError` if there is no such function, `UnsupportedOpError` for calls that have no end.
    """
    bodies: dict[str, Any] = {}
    for function in _functions(module):
        with reading(function):
            bodies[name_of(function)] = function
    with reading(module.operation):
        entry = _entry(bodies, _named_entry(module))
        called = _reached(entry, bodies)
        check_calls([entry, *(each for name, each in called.items() if name != name_of(entry))])
    return entry, called


@contextmanager
def reading(op: Any) -> Generator[None]:
    """Give what goes wrong while an operation is read as `InputError`: MLIR does not know what it should look like."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        message = f"operation {op.name} makes no sense ({text})"
        raise InputError(message, location=location_text(op.location)) from error


def body_of_call(op: Any, functions: Mapping[str, Any]) -> Any:
    """Return the block that takes the place of a call."""
    name = callee_of(op)
    if name in functions:
        return functions[name].regions[0].blocks[0]
    raise UnsupportedOpError(
        f"func.call of @{name} cannot be inlined (expected a function with a body)",
        location=location_text(op.location),
    )


def _functions(module: Any) -> list[Any]:
    with reading(module.operation):
        return functions_of(module)


def _named_entry(module: Any) -> str:
    wanted = ""
    for op in module.body.operations:
        if op.operation.name == "onnx.EntryPoint":
            with reading(op.operation):
                wanted = str(ir.FlatSymbolRefAttr(op.operation.attributes["func"]).value)
    return wanted


def _entry(bodies: Mapping[str, Any], wanted: str) -> Any:
    if wanted in bodies:
        return bodies[wanted]
    if wanted and len(bodies) > 1:
        raise InputError(
            f"onnx.EntryPoint names @{wanted}, expected a function with a body: {named(list(bodies.values()))}"
        )
    called = {name for function in bodies.values() for name in _callees(function)}
    free = [function for name, function in bodies.items() if name not in called]
    if not free:
        check_calls(list(bodies.values()))
    public = [function for function in free if not is_private(function)]
    for found in (free, public):
        if len(found) == 1:
            return found[0]
    _refuse(list(bodies.values()), public or free)


def _refuse(bodies: list[Any], candidates: list[Any]) -> NoReturn:
    if not bodies:
        raise InputError("module has 0 functions with a body (expected one, or an onnx.EntryPoint)")
    raise InputError(
        f"module has {len(bodies)} functions with a body (expected one that no other calls, or an onnx.EntryPoint): "
        f"{named(bodies)}",
        location=location_text(bodies[1].location),
        hint=f'name one: onnx-mlir writes "onnx.EntryPoint"() {{func = @{name_of(candidates[0])}}}',
    )


def _callees(function: Any) -> list[str]:
    return [callee_of(op.operation) for op in walk(function) if op.operation.name == CALL]


def _reached(entry: Any, bodies: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    waiting = _callees(entry)
    while waiting:
        name = waiting.pop()
        if name in bodies and name not in found:
            found[name] = bodies[name]
            waiting += _callees(bodies[name])
    return found
