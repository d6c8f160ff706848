"""Straight lists of steps as loops: runs of equal bodies become `Repeat`."""

from __future__ import annotations

from t10.core.device import Repeat, Step

LONGEST_BODY = 16
"""Longest body that is looked for; a compute-shift loop has an execution and a few copies per step."""


def rolled(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the same steps with every body that stands several times in a row written once, shortest bodies first."""
    for length in range(1, LONGEST_BODY + 1):
        steps = _rolled_by(steps, length)
    return steps


def _rolled_by(steps: tuple[Step, ...], length: int) -> tuple[Step, ...]:
    """Return the steps with equal neighbouring bodies of `length` steps repeated."""
    result: list[Step] = []
    at = 0
    while at < len(steps):
        body = steps[at : at + length]
        count = 1
        while len(body) == length and steps[at + count * length : at + (count + 1) * length] == body:
            count += 1
        if count > 1:
            result.append(Repeat(count, body))
            at += count * length
        else:
            result.append(steps[at])
            at += 1
    return tuple(result)
