"""A structure: a node without element types, and its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from t10.conformance.grid.sweeps import Shape


@dataclass(frozen=True, slots=True)
class Input:
    """One input: its formal name and type in the schema, its shape, and its values where they are structural."""

    formal: str
    type_name: str
    shape: Shape
    value: NDArray[Any] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Structure:
    """A node without element types; an input that is left out is None."""

    operator: str
    label: str
    inputs: tuple[Input | None, ...]
    n_outputs: int
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_elementwise: bool = False
    is_variation: bool = False
    """Whether it is there for its attributes: few types are tried, with small numbers."""


def formals_of(schema: Any, n: int) -> list[Any]:
    """Return the formal of every one of n inputs; the last may stand for many."""
    return [schema.inputs[min(i, len(schema.inputs) - 1)] for i in range(n)]
