"""Functions that call others, and structured control flow, as functions of straight code.

call @f(%x)                             the operations of @f
scf.for %i = 0 to 3 iter_args(..)       its body three times, %i a constant in each
scf.if %true                            the operations of the branch that is taken
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t10.dialect.location import location_text
from t10.dialect.mlir import ir, passmanager, walk
from t10.errors import InputError, UnsupportedOpError

MOST_WRITTEN = 100_000
"""How many operations loops may be unrolled to: what a file asks for is bounded."""
_CALL, _FOR, _IF = "func.call", "scf.for", "scf.if"


def is_flat(module: Any) -> bool:
    """Return whether the functions of a module have no calls, and no loops and branches of their own."""
    return not any(_next_structured(function) for function in _functions(module))


def flatten(module: Any) -> None:
    """Make the functions of a module straight code, in place; those that others call are gone afterwards.

    Raises `UnsupportedOpError` for calls of themselves and for loops and branches that are decided when the model runs.
    """
    if is_flat(module):
        return
    called = {str(op.operation.attributes["callee"]) for op in walk(module) if op.operation.name == _CALL}
    if called:
        _simplify(module, "inline")
        _erase(module, called)
    for function in _functions(module):
        _straighten(function)
    _simplify(module, "canonicalize")


def _erase(module: Any, called: set[str]) -> None:
    """Erase the functions that others called, now that they are inlined."""
    functions = _functions(module)
    kept = [function for function in functions if f"@{_name(function)}" not in called]
    if not kept:
        found = functions[0]
        raise UnsupportedOpError(f"@{_name(found)} calls itself", location=location_text(found.location))
    for function in functions:
        if function not in kept:
            function.erase()


def _straighten(function: Any) -> None:
    """Write loops and branches of a function out."""
    n_written = 0
    while (op := _next_structured(function)) is not None:
        if op.name == _CALL:
            raise UnsupportedOpError(
                f"func.call of {op.attributes['callee']} cannot be inlined",
                location=location_text(op.location),
            )
        n_written += _unroll(op) if op.name == _FOR else _choose(op)
        if n_written > MOST_WRITTEN:
            raise UnsupportedOpError(
                f"loops would be unrolled to more than {MOST_WRITTEN} operations",
                location=location_text(function.location),
            )


def _functions(module: Any) -> list[Any]:
    operations = [op.operation for op in module.body.operations]
    return [op for op in operations if op.name == "func.func" and len(op.regions[0].blocks)]


def _next_structured(function: Any) -> Any:
    """Return the first call, loop or branch among the operations of a function, None if there is none."""
    operations = (op.operation for op in function.regions[0].blocks[0].operations)
    return next((op for op in operations if op.name in (_CALL, _FOR, _IF)), None)


def _simplify(module: Any, name: str) -> None:
    """Run a built-in pass; what it cannot do is left as it is."""
    try:
        passmanager.PassManager.parse(f"builtin.module({name})").run(module.operation)
    except ir.MLIRError as error:
        raise InputError(
            f"the module cannot be simplified ({name}): {' '.join(str(error).split())[:300]}"
        ) from error


def _name(function: Any) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _constant(value: Any) -> int | None:
    """Return the integer that a value always is, None if that is not known."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, ir.BoolAttr):
        return int(ir.BoolAttr(attribute).value)
    return int(ir.IntegerAttr(attribute).value) if isinstance(attribute, ir.IntegerAttr) else None


def _undecided(op: Any, what: str) -> UnsupportedOpError:
    return UnsupportedOpError(
        f"'{op.name}' op is decided when the model runs: its {what} (expected constants)",
        location=location_text(op.location),
        hint="export with constant trip counts and conditions",
    )


def _unroll(op: Any) -> int:
    """Write the body of a loop once per iteration in place of it; return how many operations that are."""
    bounds = [_constant(value) for value in list(op.operands)[:3]]
    if None in bounds or not bounds[2]:
        raise _undecided(op, "bounds are not known")
    low, high, step = (int(each or 0) for each in bounds)
    kind, block = op.operands[0].type, op.regions[0].blocks[0]
    carried, n_written = list(op.operands)[3:], 0
    for i in range(low, high, step):
        with ir.InsertionPoint(op), op.location:
            attributes = {"value": ir.IntegerAttr.get(kind, i)}
            index = ir.Operation.create("arith.constant", results=[kind], attributes=attributes).results[0]
        carried, n = _written(op, block, [index, *carried])
        n_written += n
        if n_written > MOST_WRITTEN:
            break
    _replace(op, carried)
    return n_written


def _choose(op: Any) -> int:
    """Write the branch that is taken in place of a branch; return how many operations that are."""
    condition = _constant(op.operands[0])
    if condition is None:
        raise _undecided(op, "condition is not known")
    region = op.regions[0 if condition else 1]
    results, n_written = _written(op, region.blocks[0], []) if len(region.blocks) else ([], 0)
    _replace(op, results)
    return n_written


def _written(op: Any, block: Any, arguments: Sequence[Any]) -> tuple[list[Any], int]:
    """Copy the operations of a block before `op`; return what its terminator hands on, and how many there are."""
    values: dict[Any, Any] = dict(zip(block.arguments, arguments, strict=True))
    *body, terminator = (each.operation for each in block.operations)
    for each in body:
        copy = each.clone(ip=ir.InsertionPoint(op)).operation
        for inner in (found.operation for found in walk(copy)):
            for place, operand in enumerate(inner.operands):
                if operand in values:
                    inner.operands[place] = values[operand]
        values |= zip(each.results, copy.results, strict=True)
    return [values.get(value, value) for value in terminator.operands], len(body)


def _replace(op: Any, results: Sequence[Any]) -> None:
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
