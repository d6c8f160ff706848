"""What a plan's buffers need at least, whatever their addresses."""

from __future__ import annotations

from t10.core.schedule import ModulePlan


def liveness_bytes(plan: ModulePlan, reserved_bytes: int) -> int:
    """Return the most bytes of a core in use at one operator step, reserved ones included.

    Buffers that share their bytes on purpose (a result in the place of an operand) count once.
    """
    steps = range(len(plan.operators) or 1)
    return reserved_bytes + max(_bytes_at(plan, step) for step in steps)


def _bytes_at(plan: ModulePlan, step: int) -> int:
    """Return the bytes that buffers alive at a step cover."""
    alive = sorted(
        (b.address_bytes, b.address_bytes + b.size_bytes) for b in plan.buffers if b.first <= step <= b.last
    )
    total = end = 0
    for start, stop in alive:
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total
