"""`Violation`: one broken rule of a plan, with what was found and what was expected."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: `operator` (or buffer, or value) it concerns, the `rule`'s name, what was found and expected."""

    operator: str
    rule: str
    found: str
    expected: str

    def __str__(self) -> str:
        """Return one line for messages."""
        return f"{self.operator}: {self.rule}: found {self.found}, expected {self.expected}"
