"""What no schedule of a model undercuts whose weights are fetched: whatever stays, and whatever is fetched when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Weight:
    """Weights of an operator: bytes of a core they rest in at least, and that it uses at least while it runs on them.

    Off-chip memory passes them in `load_cycles`.
    """

    rest_bytes: int
    used_bytes: int
    load_cycles: int


def most_kept(weights: Sequence[Weight], room_bytes: int) -> int:
    """Return a bound of the bytes of a core that can rest all the time.

    Of operators that use much, some are fetched if not all of their weights can stay; what stays lies beside those.
    """
    together = 0
    for weight in sorted(weights, key=lambda each: -each.used_bytes):
        together += weight.rest_bytes
        if together > room_bytes:
            return max(room_bytes - weight.used_bytes, 0)
    return room_bytes


def least_load(weights: Sequence[Weight], kept_bytes: int) -> int:
    """Return the least cycles of off-chip memory if weights of `kept_bytes` stay.

    The larger of two bounds: as if weights could be divided, and as if as many stayed as there is room for the
    smallest, but those that take the longest.
    """
    n_kept, left = 0, kept_bytes
    for n_bytes in sorted(weight.rest_bytes for weight in weights):
        left -= n_bytes
        if left < 0:
            break
        n_kept += 1
    loads = sorted(weight.load_cycles for weight in weights)
    return max(_divided(weights, kept_bytes), sum(loads[: len(loads) - n_kept]))


def _divided(weights: Sequence[Weight], kept_bytes: int) -> int:
    left, load = kept_bytes, sum(weight.load_cycles for weight in weights)
    # Most cycles per byte first.
    for weight in sorted(weights, key=lambda each: -each.load_cycles / max(each.rest_bytes, 1)):
        if weight.rest_bytes > left:
            return load - weight.load_cycles * left // weight.rest_bytes
        load, left = load - weight.load_cycles, left - weight.rest_bytes
    return load


def bound_cycles(run_cycles: int, weights: Sequence[Weight], room_bytes: int, latency_cycles: int) -> int:
    """Return cycles that no schedule undercuts: operators take `run_cycles` at least, whatever they are given.

    Off-chip memory takes the time for what does not stay in `room_bytes` of a core.
    """
    load = least_load(weights, most_kept(weights, room_bytes))
    return max(run_cycles, load + latency_cycles if load else 0)
