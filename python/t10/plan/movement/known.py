"""What was counted of movement, kept for later movers, and numbers for what that depends on."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count as numbers_from
from threading import Lock
from typing import Any

from t10.core.movement import Traffic

KEPT_OBJECTS = 1 << 16
"""How many objects are known by identity; equal ones beyond that are compared."""

KEPT_COUNTS, KEPT_RATES = 1 << 14, 8
"""How many arrivals, and under how many rates of the exchange, are kept for later movers."""


class Numbers:
    """Numbers equal objects alike; objects that were seen before are known by identity, without comparing them."""

    __slots__ = ("_by_id", "_by_value", "_kept", "_lock", "_next")

    def __init__(self) -> None:
        self._by_id: dict[int, int] = {}
        self._by_value: dict[Any, int] = {}
        self._kept: list[object] = []
        self._next = numbers_from()
        self._lock = Lock()

    def __len__(self) -> int:
        """Return how many values have a number."""
        return len(self._by_value)

    def of(self, value: object) -> int:
        """Return the number of a value."""
        known = self._by_id.get(id(value))
        if known is not None:
            return known
        with self._lock:
            number = self._by_value.get(value)
            if number is None:
                number = next(self._next)
                self._by_value[value] = number
            if len(self._kept) < KEPT_OBJECTS:
                # Kept, so that no other object ever gets its identity.
                self._kept.append(value)
                self._by_id[id(value)] = number
        return number


@dataclass(frozen=True, slots=True)
class Known:
    """What movers counted in full under one set of rates, and their numbers for what that depends on."""

    kinds: Numbers = field(default_factory=Numbers)
    plans: Numbers = field(default_factory=Numbers)
    views: Numbers = field(default_factory=Numbers)
    traffic: dict[object, Traffic] = field(default_factory=dict[object, Traffic])
    counts: dict[object, Future[Traffic]] = field(default_factory=dict[object, Future[Traffic]])
    """By what a count depends on, whatever the operators, and under way where another thread counts it."""


known_by_rates: dict[tuple[int, ...], Known] = {}


def forget() -> None:
    """Let later movers count everything anew."""
    known_by_rates.clear()


def known_under(rates: tuple[int, ...]) -> Known:
    """Return what is known under some rates; where that is much, all anew."""
    known = known_by_rates.get(rates)
    if known is None or max(len(known.traffic), len(known.plans)) > KEPT_COUNTS:
        if len(known_by_rates) >= KEPT_RATES:
            forget()
        known = known_by_rates[rates] = Known()
    return known
