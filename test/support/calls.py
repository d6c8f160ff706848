"""Calls that helpers of a parallel map can make: functions of a module."""

from __future__ import annotations

import os
import time
from threading import Event

from t10.cost.counts import kept_of


def process_of(number: int, stop: Event) -> int:
    """Return the number of the process that makes the call."""
    del number, stop
    time.sleep(0.05)
    return os.getpid()


STEP = ("a step",)


def counts(number: int, stop: Event) -> int:
    """Count a box of a step, once; return the number of the process that makes the call."""
    process_of(number, stop)
    return kept_of(*STEP).of((number,), os.getpid)


def dies_elsewhere(home: int, stop: Event) -> int:
    """Return the number of the process `home`; any other ends at once."""
    del stop
    if os.getpid() != home:
        os._exit(1)
    time.sleep(0.05)
    return home


def fails(number: int, stop: Event) -> int:
    """Raise."""
    del stop
    time.sleep(0.05)
    raise ValueError(f"call {number}")


def sleeps(number: int, stop: Event) -> int:
    """Return soon after `stop` is set, and not before, but for the first call."""
    while number > 0 and not stop.is_set():
        time.sleep(0.01)
    return number
