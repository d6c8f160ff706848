"""The table of the grid: operator x type, how many cases each engine computes, and why others are refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from t10.conformance.verdict import EXPECTABLE, Verdict


@dataclass(frozen=True, slots=True)
class Row:
    """One operator and types: cases in all, those that are right by engine, and the first reason of a refusal."""

    operator: str
    types: str
    n: int
    plan: int
    iss: int
    reason: str


def rows(verdicts: Iterable[Verdict]) -> tuple[Row, ...]:
    """Return the rows of verdicts, in their order."""
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        _, operator, types, _ = verdict.name.split("/", 3)
        groups.setdefault((operator, types), []).append(verdict)
    return tuple(
        Row(
            operator,
            types,
            len(found),
            sum(each.status == "pass" for each in found),
            sum(each.tiles == "pass" for each in found),
            next((r for v in found for r in (v.reason, v.tiles_reason) if r), ""),
        )
        for (operator, types), found in groups.items()
    )


def defects(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Return a line per case and engine that gives something else than a right result or a refusal."""
    return tuple(
        f"{each.name} on {engine}: {status}: {reason}"
        for each in verdicts
        for engine, status, reason in (
            ("plan", each.status, each.reason),
            ("iss", each.tiles, each.tiles_reason),
        )
        if status and status not in EXPECTABLE
    )
