"""What one test gave: it passed, was refused with a reason, or shows a defect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["pass", "unsupported", "wrong", "crash", "time limit"]
STATUSES: tuple[Status, ...] = ("pass", "unsupported", "wrong", "crash", "time limit")
EXPECTABLE: tuple[Status, ...] = ("pass", "unsupported")
"""What may stand in the expectation file; everything else is a defect."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status of a test on the plan simulator and its reason, and `tiles`, `tiles_reason` on that of tiles.

    `constants` names inputs that had to be given as constants. `tiles` is empty where only the plan was executed;
    `host`, that of `poplar-host`, wherever that was not built.
    """

    name: str
    operator: str
    status: Status
    reason: str = ""
    constants: tuple[str, ...] = ()
    seconds: float = 0.0
    tiles: Status | Literal[""] = ""
    tiles_reason: str = ""
    host: Status | Literal[""] = ""
    host_reason: str = ""
    n_inputs: int = 0
    """Classes of inputs that were tried, of a case of the grid."""
    parts: tuple[Verdict, ...] = ()
    """Of a pack of the grid: one per case."""
