"""Numbers as a person writes them: `624 KiB`, `1.33 GHz`, `1e9`, beside plain ones."""

from __future__ import annotations

import re

from pydantic import BeforeValidator

BYTES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
}
HERTZ = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}
PER_SECOND = {f"{unit}/s": factor for unit, factor in BYTES.items()} | {"TB/s": 10**12}
LEAST_BYTES_PER_SECOND = 1e6
"""Less was meant in another unit."""
FEW = 16
"""Memories and links pass this many TB in a second at most: more were GB."""
MOST = 1e18
_NOT_FINITE = {"nan", "inf", "+inf", "-inf", "infinity", "-infinity"}
_NUMBER = re.compile(r"[+-]?[0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?")
_QUANTITY = re.compile(r"([+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*([A-Za-z/]+)")


def n_bytes(value: object) -> object:
    """Return bytes of text like `624 KiB`; what has no unit is returned as it is. Raises ValueError."""
    return _scaled(value, BYTES, "KiB")


def hertz(value: object) -> object:
    """Return cycles per second of text like `1.33 GHz`; what has no unit is returned as it is. Raises ValueError."""
    return _scaled(value, HERTZ, "GHz")


def bytes_per_second(value: object) -> object:
    """Return bytes per second of text like `96 GB/s`; what has no unit is returned as it is. Raises ValueError."""
    return _scaled(value, PER_SECOND, "GB/s")


def plain(value: object) -> object:
    """Return a number, also one that YAML takes for text (`1e9`). Raises ValueError for units and what is no number."""
    return _scaled(value, {}, "")


Plain = BeforeValidator(plain)
"""Of a field that takes numbers without a unit."""


def plausible_rate(rate: float, of: str) -> float:
    """Return bytes per second of a memory or link; raises ValueError where another unit was meant."""
    if 0 < rate < LEAST_BYTES_PER_SECOND:
        unit = "TB/s" if rate < FEW else "GB/s"
        raise ValueError(f"no {of} is so slow, expected bytes per second: did you mean {rate:g} {unit}?")
    return rate


def _stem(unit: str) -> str:
    """Return what a unit and one that was meant have in common."""
    return unit.lower().removesuffix("ps").removesuffix("/s")


def _scaled(value: object, units: dict[str, int], usual: str) -> object:
    """Return a whole number where the quantity is one."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    text = value.strip() if isinstance(value, str) else ""
    if _NUMBER.fullmatch(text):
        return _whole(float(text.replace("_", ""))) if set(text) & set(".eE") else int(text)
    found = _QUANTITY.fullmatch(text)
    if found is None and text.lower() not in _NOT_FINITE:
        raise ValueError("expected a number" + (f", perhaps with a unit, such as {usual}" if usual else ""))
    if found is None:
        return float(text)
    number, unit = found.groups()
    if not units:
        raise ValueError("expected a number without a unit")
    if unit not in units:
        near = next((each for each in units if _stem(each) == _stem(unit)), usual)
        raise ValueError(f"unknown unit '{unit}', expected one of {', '.join(units)}: did you mean {near}?")
    return _whole(float(number.replace("_", "")) * units[unit])


def _whole(value: float) -> int | float:
    """Return an int where a number is whole; raises ValueError for one that no field of a chip takes."""
    if abs(value) > MOST:
        raise ValueError(f"expected a number of less than {MOST:g}")
    return int(value) if value.is_integer() else value
