"""The beginning of a codelet for six workers: who am I, and which share is mine."""

from __future__ import annotations

from collections.abc import Callable

from t10.codelets.assembly import Assembly
from t10.core.tile import N_WORKERS

SHARE_SHIFT = 18
SHARE_FACTOR = -(-(1 << SHARE_SHIFT) // N_WORKERS)
"""x / n_workers = (x * factor) >> shift."""
MOST_DEALT = 98000
"""Points up to which that product fits 32 bits."""

FieldLoad = Callable[[str, str], None]
"""Adds the load of a field (second) into a register (first)."""


def worker_number(text: Assembly, register: str = "$m0") -> None:
    """Write the worker's number, 0 to 5, into a register."""
    text.op(f"get {register}, $WSR")
    text.op(f"and {register}, {register}, 7", "worker")


def deal(text: Assembly, field: FieldLoad, register: str, end: str, keep: str = "") -> None:
    """Write: how many further points worker $m0 takes after the first, its own number, if it takes every sixth.

    Field `last` is the number of the last point. A worker whose number is larger goes to `end`. `keep` receives the
    distance from first to last point. Changes $m2.
    """
    has_output(text, field, register, end)
    if keep:
        text.op(f"mov {keep}, {register}")
    divisor = "$m3" if register == "$m2" else "$m2"
    text.op(f"setzi {divisor}, {SHARE_FACTOR:#x}")
    text.op(f"mul {register}, {register}, {divisor}")
    text.op(f"shr {register}, {register}, {SHARE_SHIFT}")


def has_output(text: Assembly, field: FieldLoad, register: str, end: str) -> None:
    """Write: by how much field `last` is above the worker's number $m0; a worker with a larger one goes to `end`."""
    field(register, "last")
    text.op(f"sub {register}, {register}, $m0")
    text.op(f"brneg {register}, {end}")


def take_share(text: Assembly, field: FieldLoad, extent: str, end: str) -> None:
    """Write: first point into $m1, points less one into $m2; nothing to do: to `end`. Needs the number in $m0.

    Field `share` is the points of a worker, `extent` the level's: the last workers have fewer, or none. Changes $m3.
    """
    field("$m2", "share")
    text.op("mul $m1, $m0, $m2", "first point")
    field("$m3", extent)
    text.op("sub $m3, $m3, $m1")
    text.op("min $m2, $m2, $m3")
    text.op("add $m2, $m2, -1")
    text.op(f"brneg $m2, {end}")
