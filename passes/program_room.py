"""Room for the program: data placed beside the code, vertex state, stacks and exchanges of the very same plan.

How many bytes these take follows from the plan and from how operands lie (`emit.link`); where data lies follows from
how many bytes that is. So they are counted first and the data placed behind them; where code for what placement could
not grant takes more, once more.
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.chip import ChipSpec
from t10.core.device import DeviceProgram
from t10.core.schedule import ModulePlan
from t10.core.tile import ALIGNMENT_BYTES
from t10.cost import CostModel
from t10.emit.demands import demands
from t10.emit.link import Parts, link
from t10.emit.lower import lowered_parts
from t10.plan.memory.buffers import requests_of
from t10.plan.memory.room import placed_behind
from t10.plan.memory.wishes import exchange_wishes

MOST_PLACEMENTS = 6


@dataclass(slots=True)
class ProgramRoom:
    """Places plans beside their programs; keeps the last program that it made, as `made`."""

    chip: ChipSpec
    cost: CostModel
    made: tuple[Parts, DeviceProgram] | None = None

    def __call__(self, plan: ModulePlan) -> ModulePlan:
        """Return a plan with its buffers behind its program; they end too high where there is no room for both.

        Raises what `emit.lower.lower` raises.
        """
        parts = lowered_parts(plan, self.chip, self.cost)
        requests = requests_of(plan, self.chip)
        wishes = (*demands(parts), *exchange_wishes(plan.graph, plan.operators, requests))
        reserved, counted = plan.reserved_bytes, 0
        for _ in range(MOST_PLACEMENTS):
            plan = placed_behind(plan, self.chip, requests, wishes, reserved)
            if counted and plan.end_bytes > self.chip.data_end_bytes:
                break
            addresses = {buffer.name: buffer.address_bytes for buffer in plan.buffers}
            device = link(parts, self.chip, addresses, reserved)
            self.made = parts, device
            if device.memory.program_bytes <= reserved:
                break
            counted = device.memory.program_bytes
            reserved = -(-counted // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return plan
