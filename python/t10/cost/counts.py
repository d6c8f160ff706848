"""What was counted of steps: kept per process, handed over between processes, and kept between runs in a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Hashable, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast

from t10.core.expression import AxisSizes
from t10.cost.kept import Store, current, current_store, key_of

KIND = "count"
UNKNOWN = -1
"""What is counted of a step that no code is known for."""
MOST_CYCLES = 1 << 30
"""A step of so many cycles is counted in every run, so that no sum of what is read leaves 2^53."""
MOST_BYTES = 1 << 20
"""Of an entry."""
KEPT_STEPS = 4096
KEPT_BOXES = 1 << 18
Step = tuple[Hashable, ...]
Counts = dict[Step, dict[AxisSizes, int]]
"""Cycles by step and box."""

_news: list[Counts] = []


class Kept(dict[AxisSizes, int]):
    """What was counted of a step, by box."""

    def __init__(self, step: Step, known: Mapping[AxisSizes, int]) -> None:
        """Keep what is known."""
        super().__init__(known)
        self.step = step

    def of(self, box: AxisSizes, counted: Callable[[], int]) -> int:
        """Return the cycles of a box, counted where they are not known."""
        cycles = self.get(box)
        if cycles is None:
            if len(self) >= KEPT_BOXES:
                self.clear()
            cycles = self[box] = counted()
            _note(self.step, {box: cycles})
        return cycles


def kept_of(*step: Hashable) -> Kept:
    """Return what was counted of a step."""
    return _kept_of(step)


@lru_cache(maxsize=KEPT_STEPS)
def _kept_of(step: Step) -> Kept:
    store = current_store()
    return Kept(step, {} if store is None else _read(store, step))


def note_counts() -> Counts:
    """Return a table that fills with what is counted from now on; whoever reads it may empty it."""
    news: Counts = {}
    _news.append(news)
    return news


def _note(step: Step, cycles: Mapping[AxisSizes, int]) -> None:
    for news in _news:
        news.setdefault(step, {}).update(cycles)


def learn(counts: Mapping[Step, Mapping[AxisSizes, int]]) -> None:
    """Keep what another process counted."""
    for step, cycles in counts.items():
        _kept_of(step).update(cycles)
        _note(step, cycles)


def forget() -> None:
    """Count everything anew."""
    _kept_of.cache_clear()


@contextmanager
def kept_between_runs(store: Store | None) -> Generator[None]:
    """Take from a store what is counted in the block, and keep what is new there when it ends, however it does."""
    news = note_counts()
    with current(store):
        try:
            yield
        finally:
            _news[:] = [each for each in _news if each is not news]
            if store is not None:
                _keep(store, news)


def _keep(store: Store, news: Counts) -> None:
    """Add what is new to the entries of a store."""
    for step, cycles in news.items():
        rows = {**_read(store, step), **cycles}
        known = [[*box, n] for box, n in rows.items() if n < MOST_CYCLES]
        payload = json.dumps(known, separators=(",", ":"))
        store.put(key_of(KIND, *step), KIND, payload.encode("ascii"))


def _read(store: Store, step: Step) -> dict[AxisSizes, int]:
    """Return what a store has of a step; nothing if that has another form."""
    payload = store.get(key_of(KIND, *step), KIND)
    if payload is None or len(payload) > MOST_BYTES:
        return {}
    try:
        rows = cast("list[list[Any]]", json.loads(payload))
        found = {tuple(box): cycles for *box, cycles in rows}
        are_integers = all(type(number) is int for row in rows for number in row)
        if are_integers and all(UNKNOWN <= cycles < MOST_CYCLES for cycles in found.values()):
            return found
    except (TypeError, ValueError, RecursionError):
        pass
    return {}
