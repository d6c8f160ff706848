"""Plans whose buffers have their places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from t10.chip import ChipSpec
from t10.core.schedule import ModulePlan, Wish, most_bytes
from t10.plan.memory.allocation import Request
from t10.plan.memory.buffers import requests_of
from t10.plan.memory.placement import placed_buffers
from t10.plan.memory.wishes import wishes_of

Room = Callable[[ModulePlan], ModulePlan]
"""Places a plan's buffers beside what else lies in a core's memory; they end too high where there is no room."""


def data_room(chip: ChipSpec) -> Room:
    """Return what places data behind the bytes that a chip reserves; wishes are as good as a plan alone can tell."""

    def place(plan: ModulePlan) -> ModulePlan:
        requests = requests_of(plan, chip)
        wishes = wishes_of(plan.graph, plan.operators, requests)
        return placed_behind(plan, chip, requests, wishes, chip.reserved_bytes)

    return place


def placed_behind(
    plan: ModulePlan,
    chip: ChipSpec,
    requests: tuple[Request, ...],
    wishes: tuple[Wish, ...],
    reserved_bytes: int,
) -> ModulePlan:
    """Return a plan with its buffers behind `reserved_bytes`."""
    buffers = placed_buffers(requests, wishes, chip, reserved_bytes)
    peak = most_bytes(buffers, reserved_bytes)
    return replace(plan, buffers=buffers, peak_bytes=peak, reserved_bytes=reserved_bytes)
