"""Bytes of a core by purpose, moment by moment."""

from __future__ import annotations

from t10.core.schedule import PHASES, ModulePlan

PURPOSES = {
    "reserved": "code and stacks",
    "idle": "weights at rest",
    "input": "inputs",
    "value": "results",
    "operand": "operands",
    "second": "operands",
    "accumulator": "accumulators",
    "shift": "shift buffer",
}
"""What buffers are for, by the first part of their names; `reserved` is below all of them."""


def purpose(name: str) -> str:
    """Return what a buffer is for."""
    return PURPOSES.get(name.partition(":")[0], "results")


def bytes_by_purpose(plan: ModulePlan) -> dict[str, list[int]]:
    """Return bytes of a core by purpose, a number per moment of the program; see `t10.core.schedule.moment`.

    What one buffer takes over from another in the moment in which that ends counts once, for the one that ends.
    """
    n_moments = max(len(plan.operators) * len(PHASES), 1)
    change = {name: [0] * (n_moments + 1) for name in PURPOSES.values()}
    ending: set[tuple[int, int, int]] = set()
    for buffer in sorted(plan.buffers, key=lambda each: (each.first_moment, each.last_moment)):
        where = (buffer.address_bytes, buffer.size_bytes)
        is_taken = (*where, buffer.first_moment) in ending
        ending.add((*where, buffer.last_moment))
        first = min(max(buffer.first_moment + is_taken, 0), n_moments)
        last = min(max(buffer.last_moment + 1, first), n_moments)
        change[purpose(buffer.name)][first] += buffer.size_bytes
        change[purpose(buffer.name)][last] -= buffer.size_bytes
    used: dict[str, list[int]] = {}
    for name, changes in change.items():
        now, row = 0, list[int]()
        for each in changes[:n_moments]:
            now += each
            row.append(now)
        used[name] = row
    used[PURPOSES["reserved"]] = [plan.reserved_bytes] * n_moments
    return used
