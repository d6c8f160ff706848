"""Numbers as a person writes them: `624 KiB`, `1.33 GHz`, `1e9`, beside plain ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isfinite

from pydantic import BeforeValidator, ValidatorFunctionWrapHandler, WrapValidator

from t10.core.links import RATE_CYCLES

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
MOST = 1e18
MOST_RATE = 1 << 20
"""Bytes that a port or link may pass in a cycle."""
LEAST_RATE = 1 / RATE_CYCLES
"""Bytes that they must pass in a cycle: links have whole rates per `RATE_CYCLES`."""
MOST_MEMORY = 1 << 28
"""Bytes of a core: more than a Groq LPU has, which is a single core."""
_NOT_FINITE = {"nan", "inf", "+inf", "-inf", "infinity", "-infinity"}
_NUMBER = re.compile(r"[+-]?[0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?")
_LEADING_ZERO = re.compile(r"[+-]?0[0-9_]+")
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


@dataclass(frozen=True, slots=True)
class Plausible:
    """What `of` a chip may be: less than `least`, or more than `most`, was meant in another unit.

    `units` may have been meant, largest first; `unit` by who wrote one, but the wrong. What chips have lies in `usual`.
    What is too much was perhaps meant divided by one of `factors`; `words` say what is too little and too much.
    """

    of: str
    expected: str
    units: Mapping[str, int]
    unit: str
    least: float
    most: float
    usual: tuple[float, float]
    words: tuple[str, str] = ("slow", "fast")
    factors: tuple[float, ...] = (1e3, 1e6, 1e9)

    def check(self, value: float, written: object) -> None:
        """Raise ValueError for what nobody builds, with what was probably meant; `written` is the value as given."""
        if 0 < value < self.least:
            raise ValueError(
                f"no {self.of} is so {self.words[0]}, expected {self.expected}"
                f"{self._meant(self._in_other_units(written))}"
            )
        if value > self.most:
            likely = [value / factor for factor in self.factors if self._is_usual(value / factor)]
            raise ValueError(
                f"no {self.of} is so {self.words[1]}, expected {self._text(self.most)} at most"
                f"{self._meant(self._text(likely[0]) if likely else '')}"
            )

    def _in_other_units(self, written: object) -> str:
        """Return the number that was written in the units that were probably meant; nothing where none suits.

        Where several suit, a person who wrote a unit meant `unit`; one who wrote none may have meant each.
        """
        found = _QUANTITY.fullmatch(written.strip()) if isinstance(written, str) else None
        number = float(str(found[1] if found else written).replace("_", ""))
        units = [self.unit, *(unit for unit in self.units if unit != self.unit)]
        usual = [unit for unit in units if self._is_usual(number * self.units[unit])]
        return " or ".join(f"{number:g} {unit}" for unit in (usual[:1] if found else usual))

    def _is_usual(self, value: float) -> bool:
        return self.usual[0] <= value < self.usual[1]

    def _text(self, value: float) -> str:
        unit, factor = next((u, f) for u, f in self.units.items() if value >= f)
        return f"{value / factor:g} {unit}"

    @staticmethod
    def _meant(text: str) -> str:
        return f": did you mean {text}?" if text else ""

    def validator(self, read: Callable[[object], object]) -> WrapValidator:
        """Return the validator of a field; `read` gives the number of a text with a unit."""

        def checked(written: object, field: ValidatorFunctionWrapHandler) -> float:
            value = read(written)
            if isinstance(value, (int, float)) and isfinite(value):
                self.check(value, written)
            return field(value)

        return WrapValidator(checked)


def clock_field() -> WrapValidator:
    """Return the validator of a clock in Hz."""
    units = {"GHz": 10**9, "MHz": 10**6}
    known = Plausible("chip", "cycles per second", units, "GHz", least=1e7, most=1e11, usual=(1e7, 1e10))
    return known.validator(hertz)


def memory_field() -> WrapValidator:
    """Return the validator of the bytes of a core's memory; what is too little depends on other fields."""
    units = {"MiB": 1 << 20, "KiB": 1 << 10, "B": 1}
    usual = (1 << 12, 1 << 26)
    known = Plausible(
        "memory of a core",
        "bytes",
        units,
        "KiB",
        least=1,
        most=MOST_MEMORY,
        usual=usual,
        words=("small", "large"),
        factors=(1 << 10, 1 << 20),
    )
    return known.validator(n_bytes)


def per_cycle_field(of: str) -> WrapValidator:
    """Return the validator of the bytes per cycle of a port or link; 0, where a field may be 0, is none."""

    def checked(written: object, field: ValidatorFunctionWrapHandler) -> float:
        value = plain(written)
        if isinstance(value, (int, float)) and value > MOST_RATE:
            raise ValueError(
                f"no {of} is so fast, expected at most {MOST_RATE} bytes per cycle, not per second"
            )
        if isinstance(value, (int, float)) and 0 < value < LEAST_RATE:
            raise ValueError(f"no {of} is so slow, expected at least {LEAST_RATE:.3g} bytes per cycle")
        return field(value)

    return WrapValidator(checked)


def rate_field(of: str, most: float) -> WrapValidator:
    """Return the validator of the bytes per second of a memory or link."""
    units = {"TB/s": 10**12, "GB/s": 10**9, "MB/s": 10**6}
    known = Plausible(of, "bytes per second", units, "GB/s", least=1e6, most=most, usual=(1e8, 16e12))
    return known.validator(bytes_per_second)


def _stem(unit: str) -> str:
    """Return what a unit and one that was meant have in common."""
    return unit.lower().removesuffix("ps").removesuffix("/s")


def _scaled(value: object, units: dict[str, int], usual: str) -> object:
    """Return a whole number where the quantity is one."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    text = value.strip() if isinstance(value, str) else ""
    if _LEADING_ZERO.fullmatch(text):
        meant = text[: text[0] in "+-"] + (text.lstrip("+-0_") or "0")
        raise ValueError(
            f"a leading zero means an octal number to some readers of YAML: did you mean {meant}?"
        )
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
        # Of the right kind but too large or small, as TiB: no known unit was meant.
        is_of_kind = unit.endswith(next(iter(units)))
        near = next((each for each in units if _stem(each) == _stem(unit)), "" if is_of_kind else usual)
        meant = f": did you mean {near}?" if near else ""
        raise ValueError(f"unknown unit '{unit}', expected one of {', '.join(units)}{meant}")
    return _whole(float(number.replace("_", "")) * units[unit])


@lru_cache(maxsize=64)
def ratio(value: float) -> tuple[int, int]:
    """Return numerator and denominator of a number as it is written, of more digits the nearest up to 1 / 1024."""
    return Fraction(repr(value)).limit_denominator(RATE_CYCLES).as_integer_ratio()


def whole(value: float) -> float:
    """Return a number, an int where it is whole."""
    return int(value) if value == int(value) else value


def _whole(value: float) -> int | float:
    """Return an int where a number is whole; raises ValueError for one that no field of a chip takes."""
    if abs(value) > MOST:
        raise ValueError(f"expected a number of less than {MOST:g}")
    return int(value) if value.is_integer() else value
