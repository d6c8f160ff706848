"""Off-chip memory while a model runs: fetches one after the other, and operators that wait for what they bring."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from t10.core.arrays import Array
from t10.core.dtypes import numpy_dtype, size_bytes
from t10.core.off_chip import OffChip
from t10.core.own_weights import own_weights
from t10.core.schedule import Home, ModulePlan
from t10.sim.arrays import checked_array
from t10.sim.relayout import Mover
from t10.sim.result import Timeline
from t10.sim.traps import trap


class Channel:
    """What the fetches of a plan bring, and when: until then their buffers are poison.

    `names` are the weights that are fetched: they do not lie on the chip when a model begins.
    """

    def __init__(
        self, plan: ModulePlan, memory: OffChip | None, weights: Mapping[str, Array], mover: Mover
    ) -> None:
        """Keep what is to be fetched; raises `SimTrap` for fetches on a chip that has no off-chip memory."""
        if plan.fetches and memory is None:
            raise trap(
                "weights are fetched on a chip without off-chip memory", operator=plan.fetches[0].operator
            )
        own = own_weights(plan.graph) if plan.fetches else {}
        self._layouts = {layout.value: layout for layout in plan.weight_layouts}
        self._own = {
            fetch.operator: [w for w in own.get(fetch.operator, ()) if w.name in self._layouts]
            for fetch in plan.fetches
        }
        self.names = frozenset(weight.name for each in self._own.values() for weight in each)
        self._pending = list(plan.fetches)
        self._memory, self._weights, self._mover = memory, weights, mover
        self._free = 0
        self._arrivals: dict[str, int] = {}

    def begin(self, step: int, now: int) -> None:
        """Ask for what may be fetched from a step on, which begins now; a trap where there is no memory for it."""
        while self._pending and self._pending[0].first <= step:
            operator = self._pending.pop(0).operator
            assert self._memory is not None
            self._mover.memory.check_live(f"idle:{weight.name}" for weight in self._own[operator])
            n_bytes = sum(prod(w.shape) * size_bytes(w.dtype) for w in self._own[operator])
            self._free = max(self._free, now) + self._memory.cycles(n_bytes)
            self._arrivals[operator] = self._free + self._memory.latency_cycles

    def wait(self, operator: str, timeline: Timeline) -> None:
        """Let an operator wait for its weights, and put them where they rest."""
        due = self._arrivals.pop(operator, None)
        if due is None:
            return
        if due > timeline.now:
            timeline.add(operator, "wait", due - timeline.now)
        for weight in self._own[operator]:
            home = Home(self._layouts[weight.name], f"idle:{weight.name}")
            self._mover.place(
                checked_array(weight, self._weights, "weight").view(numpy_dtype(weight.dtype)), home
            )
            self._mover.keep(weight.name, home)
