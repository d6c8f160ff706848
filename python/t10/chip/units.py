"""Numbers as a person writes them: `624 KiB`, `1.33 GHz`, beside plain ones."""

from __future__ import annotations

import re

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


def _stem(unit: str) -> str:
    """Return what a unit and one that was meant have in common."""
    return unit.lower().removesuffix("ps").removesuffix("/s")


def _scaled(value: object, units: dict[str, int], usual: str) -> object:
    """Return a whole number where the quantity is one."""
    found = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return value
    number, unit = found.groups()
    if unit not in units:
        near = next((each for each in units if _stem(each) == _stem(unit)), usual)
        raise ValueError(f"unknown unit '{unit}', expected one of {', '.join(units)}: did you mean {near}?")
    product = float(number.replace("_", "")) * units[unit]
    return int(product) if product.is_integer() else product
