"""An operator that reads one value at two indices holds it twice: it gets an operand for each."""

from __future__ import annotations

from typing import Any

from t10.core.expression import OperatorSpec
from t10.dialect.groups import SEGMENTS, segment_sizes
from t10.dialect.mlir import ir, walk
from t10.passes.bridge.region import Copier


def operand_numbers(
    op: Any, spec: OperatorSpec, names: dict[Any, str], sources: dict[str, str]
) -> dict[int, int]:
    """Return which operand of an `rtensor.operator` each operand of its expression reads, directly or padded.

    Operands of the expression that read one value get different ones while there are any; what is read through a view
    inside the region has none. `names` are those of values, `sources` of padded values what they pad.
    """
    own = [names.get(value, "") for value in op.operands]
    found: dict[int, int] = {}
    for number, operand in enumerate(spec.operands):
        where = [i for i, name in enumerate(own) if operand.name in (name, sources.get(name))]
        free = [i for i in where if i not in found.values()]
        if where:
            found[number] = (free or where[-1:])[0]
    return found


def separate(op: Any, spec: OperatorSpec, names: dict[Any, str], sources: dict[str, str]) -> Any:
    """Return the operator with one operand per tensor of its expression; `op` is replaced if it has fewer."""
    numbers = list(operand_numbers(op, spec, names, sources).values())
    repeated = [i for position, i in enumerate(numbers) if i in numbers[:position]]
    if not repeated:
        return op
    operands = [*op.operands, *(op.operands[i] for i in repeated)]
    made = ir.Operation.create(
        "rtensor.operator",
        results=[result.type for result in op.results],
        operands=operands,
        attributes={name: op.attributes[name] for name in op.attributes}
        | {SEGMENTS: segment_sizes([value.type for value in operands])},
        regions=1,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    old = op.regions[0].blocks[0]
    types = [argument.type for argument in old.arguments]
    types += [types[i] for i in repeated]
    block = made.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    copier = Copier(dict(zip(old.arguments, block.arguments, strict=False)))
    with ir.InsertionPoint(block), op.location:
        for inner in old.operations:
            copier.operation(inner.operation)
    for position, i in enumerate(repeated):
        _redirect(made, block.arguments[i], block.arguments[len(old.arguments) + position])
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()
    return made


def _redirect(op: Any, argument: Any, other: Any) -> None:
    """Let the second of the places inside `op` that read `argument` read `other`; they are the same value."""
    places = [
        (inner.operation, i)
        for inner in walk(op)[1:]
        for i, value in enumerate(inner.operation.operands)
        if value == argument
    ]
    if len(places) > 1:
        reader, i = places[1]
        reader.operands[i] = other
