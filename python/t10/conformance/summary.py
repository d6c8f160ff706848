"""Counts of verdicts, by kind of test and by reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from t10.conformance.verdict import STATUSES, Verdict

_NAME = re.compile(r"'[^']*'|\"[^\"]*\"")
_NUMBER = re.compile(r"\b\d+\b")


def counts_by_kind(verdicts: Iterable[Verdict]) -> dict[str, dict[str, int]]:
    """Return how many tests of every kind have each status; `pass` without constants, `with constants` apart.

    `on tiles` counts those of them that pass on the simulator of tiles too.
    """
    table: dict[str, dict[str, int]] = {}
    for verdict in verdicts:
        kind = verdict.name.partition("/")[0]
        row = table.setdefault(kind, dict.fromkeys((*COLUMNS, "on tiles"), 0))
        row["with constants" if verdict.constants else verdict.status] += 1
        row["on tiles"] += verdict.tiles == "pass"
    return dict(sorted(table.items()))


COLUMNS = ("pass", "with constants", *STATUSES[1:])


def reasons(verdicts: Iterable[Verdict]) -> tuple[tuple[str, int], ...]:
    """Return every reason, without its names and numbers, and how many tests have it: most frequent first."""
    found = Counter(_NUMBER.sub("N", _NAME.sub("…", v.reason)) for v in verdicts if v.reason)
    return tuple(sorted(found.items(), key=lambda item: (-item[1], item[0])))
