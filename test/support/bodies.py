"""Damage to the programs of operators: one statement removed, written twice, or moved to the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from t10.core.program import Statement
from t10.core.schedule import ModulePlan

Body = tuple[Statement, ...]

CHANGES: dict[str, Callable[[Body, int], Body]] = {
    "removed": lambda body, at: (*body[:at], *body[at + 1 :]),
    "written twice": lambda body, at: (*body[: at + 1], *body[at:]),
    "moved to the end": lambda body, at: (*body[:at], *body[at + 1 :], body[at]),
}


def with_statements(plan: ModulePlan, body: Body, number: int = 0) -> ModulePlan:
    """Return the module with another program of operator `number`."""
    operators = list(plan.operators)
    operators[number] = replace(operators[number], body=body)
    return replace(plan, operators=tuple(operators))
