"""How many operations calls and loops stand for, counted before any of them is written out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from t10.dialect.functions import name_of
from t10.dialect.location import location_text
from t10.dialect.mlir import ir, walk
from t10.errors import InputError, UnsupportedOpError

MOST_WRITTEN = 100_000
"""How many operations calls and loops may be written out to: what a file asks for is bounded."""
CALL, FOR, IF = "func.call", "scf.for", "scf.if"
_HINT = "call functions less often, shorten the loops, or split the model"


def callee_of(call: Any) -> str:
    """Return the name of the function that an operation calls."""
    return str(ir.FlatSymbolRefAttr(call.attributes["callee"]).value)


def too_many(op: Any) -> UnsupportedOpError:
    """Return the error for an operation that stands for too many others."""
    return UnsupportedOpError(
        f"'{op.name}' op would be written out to more than {MOST_WRITTEN:,} operations",
        location=location_text(op.location),
        hint=_HINT,
    )


def check_calls(functions: list[Any]) -> None:
    """Raise `UnsupportedOpError` for functions that call themselves, or become too long when calls are inlined.

    The body of a loop counts once: loops are unrolled afterwards. Callees are counted before their callers. Bodies of
    linalg operations count, too.
    """
    bodies = {name_of(function): function for function in functions}
    inside = {name: [op.operation for op in walk(body)[1:]] for name, body in bodies.items()}
    calls = {name: [op for op in found if op.name == CALL] for name, found in inside.items()}
    callers: dict[str, list[str]] = {name: [] for name in bodies}
    n_waiting: dict[str, int] = {}
    for name, found in calls.items():
        callees = [callee for callee in dict.fromkeys(map(callee_of, found)) if callee in bodies]
        n_waiting[name] = len(callees)
        for callee in callees:
            callers[callee].append(name)
    ready = [name for name, n in n_waiting.items() if n == 0]
    sizes: dict[str, int] = {}
    for name in ready:
        sizes[name] = len(inside[name]) + _inlined_size(calls[name], sizes)
        for caller in callers[name]:
            n_waiting[caller] -= 1
            if n_waiting[caller] == 0:
                ready.append(caller)
    if len(sizes) < len(bodies):
        found = bodies[_recursive(calls, sizes)]
        raise UnsupportedOpError(
            f"@{name_of(found)} calls itself",
            location=location_text(found.location),
            hint="calls are inlined: export the model without recursion",
        )


def _inlined_size(calls: list[Any], sizes: Mapping[str, int]) -> int:
    """Return how many operations take the place of the calls of a function."""
    n_written = 0
    for call in calls:
        n_written += sizes.get(callee_of(call), 0)
        if n_written > MOST_WRITTEN:
            raise too_many(call)
    return n_written


def _recursive(calls: Mapping[str, list[Any]], sizes: Mapping[str, int]) -> str:
    """Return the name of a function that calls itself, where some have no size."""
    name = next(name for name in calls if name not in sizes)
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        callees = (callee_of(op) for op in calls[name])
        name = next(callee for callee in callees if callee in calls and callee not in sizes)
    return name


def size_of_loop(op: Any) -> int:
    """Return how many operations a loop is unrolled to, at least: inner loops run once where their bounds are open."""
    n_written = 0
    waiting = [(op, 1)]
    while waiting:
        structured, n_times = waiting.pop()
        if structured.name == FOR:
            n_rounds = n_iterations(structured)
            n_times *= 1 if n_rounds is None else n_rounds
            n_written += n_times  # one index per iteration
        if not n_times:
            continue
        for inner in _directly_in(structured):
            if inner.name in (FOR, IF):
                n_written += n_times
                waiting.append((inner, n_times))
            elif inner.name != "scf.yield":
                n_written += n_times * (len(walk(inner)) if len(inner.regions) else 1)
        if n_written > MOST_WRITTEN:
            break
    return n_written


def n_iterations(op: Any) -> int | None:
    """Return how often a loop runs, None if its bounds are not constants; raises `InputError` for a step below 1."""
    low, high, step = (constant_of(value) for value in list(op.operands)[:3])
    if step is not None and step < 1:
        raise InputError(
            f"'{op.name}' op has a step of {step} (expected a constant of at least 1)",
            location=location_text(op.location),
        )
    return None if low is None or high is None or step is None else len(range(low, high, step))


def constant_of(value: Any) -> int | None:
    """Return the integer that a value always is, None if that is not known."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    if isinstance(attribute, ir.BoolAttr):
        return int(ir.BoolAttr(attribute).value)
    return int(ir.IntegerAttr(attribute).value) if isinstance(attribute, ir.IntegerAttr) else None


def _directly_in(op: Any) -> Iterator[Any]:
    """Yield the operations right inside the regions of an operation."""
    for region in op.regions:
        for block in region.blocks:
            yield from (inner.operation for inner in block.operations)
