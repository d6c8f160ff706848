"""The table of the grid: operator x type, how many cases each engine computes, and why others are refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from t10.conformance.verdict import EXPECTABLE, Verdict


@dataclass(frozen=True, slots=True)
class Row:
    """One operator and types: cases, those right by engine (of `n_host` on the host), why others are refused."""

    operator: str
    types: str
    n: int
    plan: int
    iss: int
    host: int
    n_host: int
    reason: str


def by_case(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Return the verdict of every case of packs, ordered by name; that of a pack without parts is of all of them."""
    parts = [part for each in verdicts for part in (each.parts or (each,))]
    return tuple(sorted(parts, key=lambda verdict: verdict.name))


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
            sum(each.host == "pass" for each in found),
            sum(bool(each.host) for each in found),
            next((r for v in found for r in (v.reason, v.tiles_reason) if r), ""),
        )
        for (operator, types), found in groups.items()
    )


@dataclass(frozen=True, slots=True)
class Defect:
    """A case that an engine neither computes right nor refuses."""

    case: str
    engine: str
    status: str
    reason: str

    def __str__(self) -> str:
        """Return it as a line."""
        return f"{self.case} on {self.engine}: {self.status}: {self.reason}"


def defects(verdicts: Iterable[Verdict]) -> tuple[Defect, ...]:
    """Return what is wrong, case by case and engine by engine."""
    return tuple(
        Defect(each.name, engine, status, reason)
        for each in verdicts
        for engine, status, reason in (
            ("plan", each.status, each.reason),
            ("iss", each.tiles, each.tiles_reason),
            ("poplar-host", each.host, each.host_reason),
        )
        if status and status not in EXPECTABLE
    )
