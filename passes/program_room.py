"""Room for the program: data placed beside the code, vertex state, stacks and exchanges of the very same plan.

How many bytes these take follows from the plan and from how operands lie (`emit.link`); where data lies follows from
how many bytes that is. So they are counted first and the data placed behind them; where code for what placement could
not grant takes more, once more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from t10.chip import ChipSpec
from t10.core.device import DeviceProgram
from t10.core.schedule import ModulePlan, Wish
from t10.core.tile import ALIGNMENT_BYTES
from t10.cost import CostModel
from t10.emit.demands import demands
from t10.emit.kept import Kept
from t10.emit.link import Parts, link
from t10.emit.lower import lowered_parts
from t10.plan.memory.buffers import requests_of
from t10.plan.memory.room import placed_behind
from t10.plan.memory.wishes import exchange_wishes

MOST_PLACEMENTS = 6


@dataclass(slots=True)
class ProgramRoom:
    """Places plans of one model beside their programs; `made` is the last program, and the parts it was linked of."""

    chip: ChipSpec
    cost: CostModel
    made: tuple[Parts, DeviceProgram] | None = None
    kept: Kept = field(default_factory=Kept)

    def reserved_bytes(self, plan: ModulePlan) -> int:
        """Return the bytes of a plan's program, at least those that the chip reserves."""
        self._place(plan, *self._wished(plan), self.chip.reserved_bytes)
        return max(self._program_bytes(), self.chip.reserved_bytes)

    def __call__(self, plan: ModulePlan) -> ModulePlan:
        """Return a plan with its buffers behind its program; they end too high where there is no room for both.

        Raises what `emit.lower.lower` raises.
        """
        parts, wishes = self._wished(plan)
        reserved, is_counted = self.chip.reserved_bytes, False
        for _ in range(MOST_PLACEMENTS):
            plan = self._place(plan, parts, wishes, reserved, links=not is_counted)
            if self._program_bytes() <= reserved:
                break
            reserved, is_counted = self._program_bytes(), True
        return plan

    def _wished(self, plan: ModulePlan) -> tuple[Parts, tuple[Wish, ...]]:
        """Return a plan lowered, and what its codelets and exchanges wish of its buffers."""
        parts = lowered_parts(plan, self.chip, self.cost, self.kept)
        requests = requests_of(plan, self.chip)
        return parts, (*demands(parts), *exchange_wishes(plan.graph, plan.operators, requests))

    def _place(
        self, plan: ModulePlan, parts: Parts, wishes: tuple[Wish, ...], reserved: int, *, links: bool = True
    ) -> ModulePlan:
        """Return a plan placed behind `reserved` bytes, and link it; if it does not fit, only if it `links`."""
        plan = placed_behind(plan, self.chip, requests_of(plan, self.chip), wishes, reserved)
        if links or plan.end_bytes <= self.chip.data_end_bytes:
            addresses = {buffer.name: buffer.address_bytes for buffer in plan.buffers}
            self.made = parts, link(parts, self.chip, addresses, reserved)
        return plan

    def _program_bytes(self) -> int:
        """Return the bytes of the last program, rounded up to where a buffer may begin."""
        assert self.made is not None
        return -(-self.made[1].memory.program_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
