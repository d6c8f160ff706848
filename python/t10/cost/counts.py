"""What was counted of steps, kept per process; another process may hand over what it counted."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache

from t10.core.expression import AxisSizes

KEPT_STEPS = 4096
KEPT_BOXES = 1 << 18
Step = tuple[Hashable, ...]
Counts = dict[Step, dict[AxisSizes, int]]
"""Cycles by step and box."""

_news: list[Counts] = []


class Kept(dict[AxisSizes, int]):
    """What was counted of a step, by box."""

    def __init__(self, step: Step) -> None:
        """Keep nothing yet."""
        super().__init__()
        self.step = step

    def of(self, box: AxisSizes, counted: Callable[[], int]) -> int:
        """Return the cycles of a box, counted where they are not known."""
        cycles = self.get(box)
        if cycles is None:
            if len(self) >= KEPT_BOXES:
                self.clear()
            cycles = self[box] = counted()
            for news in _news:
                news.setdefault(self.step, {})[box] = cycles
        return cycles


def kept_of(*step: Hashable) -> Kept:
    """Return what was counted of a step."""
    return _kept_of(step)


@lru_cache(maxsize=KEPT_STEPS)
def _kept_of(step: Step) -> Kept:
    return Kept(step)


def note_counts() -> Counts:
    """Return a table that fills with what is counted from now on; whoever reads it may empty it."""
    news: Counts = {}
    _news.append(news)
    return news


def learn(counts: Mapping[Step, Mapping[AxisSizes, int]]) -> None:
    """Keep what another process counted."""
    for step, cycles in counts.items():
        _kept_of(step).update(cycles)


def forget() -> None:
    """Count everything anew."""
    _kept_of.cache_clear()
