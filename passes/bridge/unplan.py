"""A planned module taken back to operators without plans."""

from __future__ import annotations

from typing import Any

from t10.dialect.rtensor import CANDIDATES, FETCH, FORCED, PLAN, SPACE
from t10.passes.bridge.annotate import IDLE_LEVEL


def unplan(function: Any) -> None:
    """Remove plans and candidates from the operators of a function."""
    for each in function.regions[0].blocks[0].operations:
        op = each.operation
        for name in (PLAN, CANDIDATES, SPACE, FORCED, IDLE_LEVEL, FETCH):
            if name in op.attributes:
                del op.attributes[name]
