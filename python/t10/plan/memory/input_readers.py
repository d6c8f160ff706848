"""Which operand decides where an input of the model lies: the first that reads all of it, or else a part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from t10.core.expression import Operand, OperatorSpec
from t10.core.graph import Graph
from t10.core.laid_out import reads_all, seen_operand
from t10.plan.memory.liveness import reshapes_of, unshaped


@dataclass(frozen=True, slots=True)
class InputReader:
    """Operand number `number` of operator `step`; `seen` is how it reads the input, None where not all of it.

    If it `is_plain`, it reads every element at its own place and nothing beside: the input may lie as it is read.
    """

    step: int
    number: int
    seen: Operand | None
    is_plain: bool


def readers_by_input(graph: Graph) -> dict[str, InputReader]:
    """Return what decides where inputs lie: what reads one plainly, else all of it, else a part; of these the first."""
    names = {value.name for value in graph.inputs}
    found: dict[str, InputReader] = {}
    for value, reader in _readers(graph):
        known = found.get(value)
        if value in names and (known is None or _rank(known) < _rank(reader)):
            found[value] = reader
    return found


def _rank(reader: InputReader) -> int:
    return (reader.seen is not None) + reader.is_plain


def _readers(graph: Graph) -> Iterator[tuple[str, InputReader]]:
    """Yield every value and what reads it, directly or through views, in execution order."""
    reshapes: Mapping[str, str] = reshapes_of(graph)
    for step, spec in enumerate(graph.operators):
        for number, operand in enumerate(spec.operands):
            for value in graph.sources_of(operand.name):
                is_direct = unshaped(operand.name, reshapes) == value
                seen = operand if is_direct else seen_operand(graph, operand, value)
                seen = seen if seen is not None and reads_all(spec, seen) else None
                is_plain = seen is not None and is_direct and _is_plain(spec, operand)
                yield value, InputReader(step, number, seen, is_plain)


def _is_plain(spec: OperatorSpec, operand: Operand) -> bool:
    """Return whether an operator that reads all of an operand reads each element at its place, and none beside it."""
    if operand.pad_value or any(dim.offset for dim in operand.dims):
        return False
    return all(
        dim.is_simple and spec.axes[dim.terms[0].axis].extent == extent if dim.terms else extent == 1
        for dim, extent in zip(operand.dims, operand.shape, strict=True)
    )
