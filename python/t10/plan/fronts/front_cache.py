"""Fronts that were found before: in this process's memory, then in the plan cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import Lock

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.plan import CostedPlan
from t10.cost import CostModel
from t10.plan.fronts.cache import PlanCache
from t10.plan.fronts.stored_fronts import KIND, decoded, encoded, front_key
from t10.plan.options import PlanOptions

Front = tuple[CostedPlan, ...]

REMEMBERED = 1024
"""Fronts kept in memory, those of a dozen large models."""


@dataclass(frozen=True, slots=True)
class FrontCache:
    """The fronts found before for a chip and a cost model; operators as they are searched (`canonical`).

    Searches with a forced partition are quick and rare: they are not kept.
    """

    chip: ChipSpec
    cost: CostModel
    cache: PlanCache | None = None

    def find(self, spec: OperatorSpec, options: PlanOptions) -> Front | None:
        """Return the front of an operator, None if it has to be searched."""
        if options.forced:
            return None
        known = (spec, self.chip, self.cost, options)
        front = _memory.find(known)
        if front is not None or self.cache is None:
            return front
        key = front_key(spec, self.chip, self.cost, options)
        payload = None if key is None else self.cache.get(key, KIND)
        if payload is not None:
            front = decoded(payload, spec, self.chip, self.cost, options)
        if front is not None:
            _memory.keep(known, front)
        return front

    def keep(self, spec: OperatorSpec, options: PlanOptions, front: Front) -> None:
        """Keep a front that was searched."""
        if options.forced:
            return
        _memory.keep((spec, self.chip, self.cost, options), front)
        if self.cache is not None:
            key = front_key(spec, self.chip, self.cost, options)
            if key is not None:
                self.cache.put(key, KIND, encoded(front))


def forget() -> None:
    """Forget the fronts in this process's memory: the next search of each starts anew, or in the plan cache."""
    _memory.clear()


class _Memory:
    """The fronts used last; shared by threads."""

    def __init__(self) -> None:
        self._fronts: OrderedDict[Hashable, Front] = OrderedDict()
        self._lock = Lock()

    def find(self, key: tuple[Hashable, ...]) -> Front | None:
        with self._lock:
            front = self._fronts.get(key)
            if front is not None:
                self._fronts.move_to_end(key)
            return front

    def keep(self, key: tuple[Hashable, ...], front: Front) -> None:
        with self._lock:
            self._fronts[key] = front
            while len(self._fronts) > REMEMBERED:
                self._fronts.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._fronts.clear()


_memory = _Memory()
