"""Room for the program: data placed beside the code, vertex state, stacks and exchanges of the very same plan.

How many bytes these take follows from the plan and from how operands lie (`emit.link`); where data lies follows from
how many bytes that is. So they are counted first and the data placed behind them; where code for what placement could
not grant takes more, once more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from t10.chip import ChipSpec
from t10.core.schedule import ModulePlan
from t10.cost import CostModel
from t10.emit.kept import Kept
from t10.emit.link import Parts, program_bytes
from t10.emit.lower import lowered_parts
from t10.plan.memory.buffers import requests_of
from t10.plan.memory.room import placed_behind
from t10.plan.memory.wishes import Wishes


@dataclass(slots=True)
class ProgramRoom:
    """Places plans of one model beside their programs."""

    chip: ChipSpec
    cost: CostModel
    kept: Kept = field(default_factory=Kept)
    _last: tuple[ModulePlan, Parts] | None = None
    wishes: Wishes = field(init=False)

    def __post_init__(self) -> None:
        """Wish as the same plan does without its program."""
        self.wishes = Wishes(self.cost)

    def parts(self, plan: ModulePlan) -> Parts:
        """Return a placed plan, lowered: as it was, unless it takes other cycles where it lies."""
        if self._last is not None:
            last, parts = self._last
            if [each.active.cycles for each in last.operators] == [o.active.cycles for o in plan.operators]:
                return parts
        return lowered_parts(plan, self.chip, self.cost, self.kept)

    def reserved_bytes(self, plan: ModulePlan) -> int:
        """Return the bytes of a plan's program if all its wishes are granted, at least those that the chip reserves."""
        requests = requests_of(plan, self.chip)
        placed = placed_behind(plan, self.chip, requests, (), self.chip.reserved_bytes)
        return max(
            self._program_bytes(self._lowered(plan), placed, is_granted=True), self.chip.reserved_bytes
        )

    def __call__(self, plan: ModulePlan) -> ModulePlan:
        """Return a plan with its buffers behind its program; they end too high where there is no room for both.

        Raises what `emit.lower.lower` raises.
        """
        parts = self._lowered(plan)
        self._last = plan, parts
        requests = requests_of(plan, self.chip)
        wishes = self.wishes.of(plan.graph, plan.operators, requests)
        reserved, is_counted = self.chip.reserved_bytes, False
        while True:
            plan = placed_behind(plan, self.chip, requests, wishes, reserved)
            if is_counted and plan.end_bytes > self.chip.data_end_bytes:
                return plan
            needed = self._program_bytes(parts, plan)
            if needed <= reserved:
                return plan
            # More with every round, until it is enough or there is no room.
            reserved, is_counted = needed, True

    def _lowered(self, plan: ModulePlan) -> Parts:
        return lowered_parts(plan, self.chip, self.cost, self.kept, is_placed=False)

    def _program_bytes(self, parts: Parts, placed: ModulePlan, *, is_granted: bool = False) -> int:
        """Return the bytes of the program of a plan whose buffers have places."""
        addresses = {buffer.name: buffer.address_bytes for buffer in placed.buffers}
        return program_bytes(parts, self.chip, addresses, is_granted=is_granted)
