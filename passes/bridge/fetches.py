"""What operators say about the fetches of their weights from off-chip memory: `rtensor.fetch`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t10.core.graph import Graph
from t10.core.own_weights import own_weights
from t10.core.schedule import Fetch
from t10.dialect.location import source_text
from t10.dialect.mlir import ir
from t10.dialect.rtensor import FETCH
from t10.errors import VerifyError


def fetches_of(graph: Graph, operations: Sequence[Any]) -> tuple[Fetch, ...]:
    """Return the fetches that operations state, one per operator of a graph at most.

    Raises `VerifyError` for one that begins before another that is made before it, or behind its operator, and for an
    operator that has no weights of its own.
    """
    own, earliest = own_weights(graph), 0
    found: list[Fetch] = []
    for step, (spec, op) in enumerate(zip(graph.operators, operations, strict=True)):
        if FETCH not in op.attributes:
            continue
        attribute = op.attributes[FETCH]
        first = int(attribute.value) if isinstance(attribute, ir.IntegerAttr) else -1
        if not earliest <= first <= step or spec.name not in own:
            expected = (
                f"a number from {earliest} to {step}" if spec.name in own else "none: no weight is its own"
            )
            raise VerifyError(
                f"{FETCH} is {attribute}, expected {expected}",
                operator=spec.name,
                location=source_text(op) or None,
            )
        found.append(Fetch(spec.name, first))
        earliest = first
    return tuple(found)
