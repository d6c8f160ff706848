"""Functions that call others, and structured control flow, as functions of straight code.

call @f(%x)                             the operations of @f
scf.for %i = 0 to 3 iter_args(..)       its body three times, %i a constant in each
scf.if %true                            the operations of the branch that is taken
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t10.dialect.functions import functions_of, is_private, name_of, named
from t10.dialect.location import location_text
from t10.dialect.mlir import ir, passmanager, walk
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.written_size import (
    CALL,
    FOR,
    IF,
    MOST_WRITTEN,
    callee_of,
    check_calls,
    constant_of,
    n_iterations,
    size_of_loop,
    too_many,
)

_STRUCTURED = (CALL, FOR, IF)


def is_flat(module: Any) -> bool:
    """Return whether the functions of a module have no calls, and no loops and branches of their own.

    None is private beside public ones either: nothing calls it then.
    """
    functions = functions_of(module)
    return not any(_structured(function) for function in functions) and not _uncalled(functions)


def flatten(module: Any, entry: str = "") -> None:
    """Make the functions of a module straight code, in place; those that others call are gone afterwards.

    So are private ones that nothing calls beside public ones, and all but the function `entry` where that is given.
    Raises `InputError` if there is no such function, `UnsupportedOpError` for calls of themselves, for loops and
    branches that are decided when the model runs, and for more operations than `MOST_WRITTEN`, before they are written.
    """
    if not entry and is_flat(module):
        return
    _keep(module, entry)
    if is_flat(module):
        return
    called = _called(functions_of(module))
    if called:
        check_calls(functions_of(module))
        _simplify(module, "inline")
    for function in functions_of(module):
        if name_of(function) in called:
            function.erase()
    for function in functions_of(module):
        _straighten(function)
    _simplify(module, "canonicalize")


def _keep(module: Any, entry: str) -> None:
    """Erase the functions that the entry does not call, directly or through others.

    Without an entry the public functions are the entries, or those that no other calls if none is public. Entries
    become public: inlining erases private functions.
    """
    bodies = {name_of(function): function for function in functions_of(module)}
    if entry and entry not in bodies:
        raise InputError(
            f"entry is '{entry}' (expected a function with a body: {named(list(bodies.values())) or 'there is none'})"
        )
    roots = [entry] if entry else [name for name, function in bodies.items() if not is_private(function)]
    if not roots:
        called = _called(list(bodies.values()))
        roots = [name for name in bodies if name not in called] or list(bodies)
    needed, waiting = set(roots), list(roots)
    while waiting:
        callees = (_called([bodies[waiting.pop()]]) & bodies.keys()) - needed
        needed |= callees
        waiting += callees
    for name, function in bodies.items():
        if name not in needed:
            function.erase()
        elif name in roots and is_private(function):
            del function.attributes["sym_visibility"]


def _called(functions: list[Any]) -> set[str]:
    """Return the names that functions call."""
    return {callee_of(op.operation) for each in functions for op in walk(each) if op.operation.name == CALL}


def _uncalled(functions: list[Any]) -> list[Any]:
    """Return the private functions that nothing calls, where there are public ones."""
    private = [function for function in functions if is_private(function)]
    if not private or len(private) == len(functions):
        return []
    called = _called(functions)
    return [function for function in private if name_of(function) not in called]


def _straighten(function: Any) -> None:
    """Write loops and branches of a function out."""
    n_written = 0
    waiting = _structured(function)[::-1]
    while waiting:
        op = waiting.pop()
        if op.name == CALL:
            raise UnsupportedOpError(
                f"func.call of @{callee_of(op)} cannot be inlined (expected a function with a body)",
                location=location_text(op.location),
            )
        if op.name == FOR and n_written + size_of_loop(op) > MOST_WRITTEN:
            raise too_many(op)
        written = _unroll(op) if op.name == FOR else _choose(op)
        n_written += len(written)
        waiting += [each for each in reversed(written) if each.name in _STRUCTURED]


def _structured(function: Any) -> list[Any]:
    """Return the calls, loops and branches among the operations of a function."""
    operations = (op.operation for op in function.regions[0].blocks[0].operations)
    return [op for op in operations if op.name in _STRUCTURED]


def _simplify(module: Any, name: str) -> None:
    """Run a built-in pass; what it cannot do is left as it is."""
    try:
        passmanager.PassManager.parse(f"builtin.module({name})").run(module.operation)
    except ir.MLIRError as error:
        raise InputError(
            f"the module cannot be simplified ({name}): {' '.join(str(error).split())[:300]}"
        ) from error


def _undecided(op: Any, what: str) -> UnsupportedOpError:
    return UnsupportedOpError(
        f"'{op.name}' op is decided when the model runs: its {what} (expected constants)",
        location=location_text(op.location),
        hint="export with constant trip counts and conditions",
    )


def _unroll(op: Any) -> list[Any]:
    """Write the body of a loop once per iteration in place of it; return the operations written."""
    if n_iterations(op) is None:
        raise _undecided(op, "bounds are not known")
    low, high, step = (constant_of(value) or 0 for value in list(op.operands)[:3])
    kind, block = op.operands[0].type, op.regions[0].blocks[0]
    carried, written = list(op.operands)[3:], list[Any]()
    for i in range(low, high, step):
        with ir.InsertionPoint(op), op.location:
            attributes = {"value": ir.IntegerAttr.get(kind, i)}
            index = ir.Operation.create("arith.constant", results=[kind], attributes=attributes)
        carried, copies = _written(op, block, [index.results[0], *carried])
        written += [index, *copies]
    _replace(op, carried)
    return written


def _choose(op: Any) -> list[Any]:
    """Write the branch that is taken in place of a branch; return the operations written."""
    condition = constant_of(op.operands[0])
    if condition is None:
        raise _undecided(op, "condition is not known")
    region = op.regions[0 if condition else 1]
    results, written = _written(op, region.blocks[0], []) if len(region.blocks) else ([], [])
    _replace(op, results)
    return written


def _written(op: Any, block: Any, arguments: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Copy the operations of a block before `op`; return what its terminator hands on, and the copies."""
    values: dict[Any, Any] = dict(zip(block.arguments, arguments, strict=True))
    copies: list[Any] = []
    *body, terminator = (each.operation for each in block.operations)
    for each in body:
        copy = each.clone(ip=ir.InsertionPoint(op)).operation
        for inner in (found.operation for found in walk(copy)):
            for place, operand in enumerate(inner.operands):
                if operand in values:
                    inner.operands[place] = values[operand]
        values |= zip(each.results, copy.results, strict=True)
        copies.append(copy)
    return [values.get(value, value) for value in terminator.operands], copies


def _replace(op: Any, results: Sequence[Any]) -> None:
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
