"""Plans whose buffers have their places."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from t10.chip import ChipSpec
from t10.core.schedule import ModulePlan, Wish, most_bytes
from t10.plan.memory.allocation import Request
from t10.plan.memory.buffers import requests_of
from t10.plan.memory.placement import placed_buffers
from t10.plan.memory.wishes import Wishes


class Room(Protocol):
    """What a core's memory has for a plan's data, beside what else lies in it."""

    def reserved_bytes(self, plan: ModulePlan) -> int:
        """Return about how many bytes at the bottom are not for the data of a plan, wherever that lies."""
        ...

    def __call__(self, plan: ModulePlan) -> ModulePlan:
        """Return a plan with its buffers in their places; they end too high where there is no room."""
        ...


@dataclass(frozen=True, slots=True)
class DataRoom:
    """Places data behind the bytes that a chip reserves; wishes are as good as a plan alone can tell."""

    chip: ChipSpec
    wishes: Wishes = field(default_factory=Wishes)

    def reserved_bytes(self, plan: ModulePlan) -> int:
        """Return what the chip reserves."""
        del plan
        return self.chip.reserved_bytes

    def __call__(self, plan: ModulePlan) -> ModulePlan:
        """Return a plan with its buffers in their places; they end too high where there is no room."""
        requests = requests_of(plan, self.chip)
        wishes = self.wishes.of(plan.graph, plan.operators, requests)
        return placed_behind(plan, self.chip, requests, wishes, self.chip.reserved_bytes)


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


@dataclass(slots=True)
class CountedRoom:
    """A room that counts the plans that it was asked to place."""

    room: Room
    n_plans: int = 0

    def reserved_bytes(self, plan: ModulePlan) -> int:
        """Return what the room returns."""
        return self.room.reserved_bytes(plan)

    def __call__(self, plan: ModulePlan) -> ModulePlan:
        """Return what the room returns."""
        self.n_plans += 1
        return self.room(plan)
