"""Counts that other commands measured, with files that T10 does not carry: texts of onnx-mlir, exports of PyTorch.

`tools/record_counts.py` writes `measured.json`, beside the list of what is expected, from what they give with `--json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from t10.conformance.summary import COLUMNS
from t10.core.atomic import write_text

FILE_NAME = "measured.json"


@dataclass(frozen=True, slots=True)
class Measured:
    """What was tried, how many of it have each status of `COLUMNS`, the command, and what was not T10's to try."""

    what: str
    counts: Mapping[str, int]
    command: str
    apart: Mapping[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        unknown = sorted(set(self.counts) - set(COLUMNS))
        if unknown:
            raise ValueError(f"{self.what}: counts of {', '.join(unknown)} (expected {', '.join(COLUMNS)})")

    @property
    def row(self) -> tuple[int, ...]:
        """Return the counts in the order of `COLUMNS`."""
        return tuple(self.counts.get(column, 0) for column in COLUMNS)


def read_measured(path: Path) -> tuple[Measured, ...]:
    """Return what was recorded, ordered by what it is of; nothing if nothing was."""
    if not path.exists():
        return ()
    return tuple(Measured(**entry) for entry in json.loads(path.read_text(encoding="utf-8")))


def write_measured(found: Sequence[Measured], path: Path) -> None:
    """Record counts in the place of those of the same name; others stay."""
    by_name = {each.what: each for each in (*read_measured(path), *found)}
    entries = [asdict(by_name[what]) for what in sorted(by_name)]
    write_text(path, json.dumps(entries, indent=1) + "\n")
