"""What an engine gave for a class of values, and what of that a verdict says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from t10.conformance.verdict import Status

Outcome = Literal["pass", "unsupported", "wrong", "undecided", "crash", "no reference"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What an engine gave for a class of values; `engine` is `compile` where none was reached."""

    engine: str
    values: str
    outcome: Outcome
    text: str = ""


_STATUS: dict[Outcome, Status] = {
    "crash": "crash",
    "wrong": "wrong",
    "undecided": "wrong",
    "no reference": "unsupported",
    "unsupported": "unsupported",
}
"""From the worst on."""
_LONGEST = 400


def worst_of(findings: Sequence[Finding]) -> tuple[Status, str]:
    """Return the worst status of findings and its first reason."""
    for outcome, status in _STATUS.items():
        found = [each for each in findings if each.outcome == outcome]
        if found:
            return status, " ".join(f"{found[0].values} {found[0].text}".split())[:_LONGEST]
    return "pass", ""
