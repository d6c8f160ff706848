"""What a lowering makes that no address changes: kept for the next one of the same plan at other addresses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from t10.core.arrays import Ints
from t10.core.canonical import canonical
from t10.core.device import Pattern
from t10.core.expression import OperatorSpec
from t10.core.movement import ElementMap
from t10.emit.compiled_sets import CompiledSets

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Kept:
    """Things by content, for one chip and one cost model: names of operators and values do not count.

    By digest of a pattern, `row_bytes` is its exchange code and `received_bytes` the most that a tile receives.
    """

    maps: dict[object, ElementMap] = field(default_factory=dict[object, ElementMap])
    patterns: dict[object, Pattern] = field(default_factory=dict[object, Pattern])
    row_bytes: dict[str, Ints] = field(default_factory=dict[str, Ints])
    received_bytes: dict[str, int] = field(default_factory=dict[str, int])
    compiled: CompiledSets = field(default_factory=CompiledSets)
    _kinds: dict[OperatorSpec, int] = field(default_factory=dict[OperatorSpec, int])
    _made: dict[object, Any] = field(default_factory=dict[object, Any])

    def kind_of(self, spec: OperatorSpec) -> int:
        """Return a number that equal operators share."""
        return self._kinds.setdefault(canonical(spec), len(self._kinds))

    def once(self, key: object, make: Callable[[], T]) -> T:
        """Return what `make` returned for an equal key before, else make it now."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]
