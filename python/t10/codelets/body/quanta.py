"""Quantised numbers that stay floats: no way over bytes, and rounding by two sums where limits follow.

A body that quantises and dequantises again writes

    r = roundeven(x); m = r + z; c = min(max(m, low), high); b = trunci(fptosi(c)); y = uitofp(b)

`c` is a whole number within the limits, so `y` is `c`, and 0 where x is a NaN, of which `fptosi` makes 0. Limits that
are small allow to round by `(x + C) + (z - C)` with C = 1.5 * 2^23: below 2^22 in magnitude, x + C has no room for a
fraction and rounds to even, and what follows is exact. Sums are monotone: beyond 2^22, where this is not the rounded
number, both are beyond the limits. Results are the same bit by bit; +0 and -0 become the integer 0 alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from t10.codelets.body.builder import FunctionBuilder
from t10.core.scalar import ScalarFunction, ScalarOp, parse_constant

PUSH = 1.5 * 2.0**23
"""What is added to a float so that its fraction is rounded off."""
MOST = 2.0**16
"""The largest limits and zero points that are looked for: far below 2^22, from where on rounding is another."""
OPPOSITE = {"arith.maximumf": "arith.minimumf", "arith.minimumf": "arith.maximumf"}
NUMBER = {"arith.maximumf": "arith.maxnumf", "arith.minimumf": "arith.minnumf"}
RANGES = {
    ("i8", False): (-128, 127),
    ("i8", True): (0, 255),
    ("i32", False): (-(2**31), 2**31 - 1),
    ("i32", True): (0, 2**32 - 1),
}
"""What integers of a type stand for, with a sign and without."""
TO_FLOAT = {"arith.sitofp": False, "arith.uitofp": True}
WIDENING = {"arith.extsi": False, "arith.extui": True}
"""Operations on integers, and whether they take them as unsigned."""


@dataclass(frozen=True, slots=True)
class Quantum:
    """A rounded number plus a whole one, kept within limits; `limits` are the two operations that keep it there."""

    source: int
    zero: float
    limits: tuple[tuple[str, float], tuple[str, float]]

    @property
    def range(self) -> tuple[float, float]:
        """Return the least and the greatest value."""
        (inner, a), (_, b) = self.limits
        return (a, b) if inner == "arith.maximumf" else (b, a)

    def fits(self, dtype: str, *, is_unsigned: bool) -> bool:
        """Return whether integers of a type stand for all values."""
        found = RANGES.get((dtype, is_unsigned))
        low, high = self.range
        return found is not None and found[0] <= low <= high <= found[1]


class Quanta:
    """The quantised numbers of a function; `make` writes operations that need fewer instructions."""

    def __init__(self, function: ScalarFunction) -> None:
        """Take the function in which quantised numbers are looked for."""
        self._function = function

    def make(self, b: FunctionBuilder, op: ScalarOp, values: list[int]) -> int | None:
        """Add an operation in another way, None where there is none; `values` has what the function's became."""
        if op.opcode == "arith.fptosi" and op.dtype == "i32":
            found = self._quantum(op.operands[0])
            return None if found is None else b.op(op.opcode, _kept(b, found, values, _same), dtype=op.dtype)
        found = self._converted(op) if op.opcode in TO_FLOAT and op.dtype == "f32" else None
        if found is None:
            return None
        kept = _kept(b, found, values, NUMBER.__getitem__)
        rounded = _rounded(b, found, values)
        return b.select(b.compare("uno", rounded, rounded), b.constant(0.0), kept)

    def _op(self, value: int) -> ScalarOp | None:
        number = value - self._function.n_inputs
        return self._function.ops[number] if number >= 0 else None

    def _converted(self, op: ScalarOp) -> Quantum | None:
        """Return the quantised number whose value a conversion of an integer to a float has."""
        is_unsigned, value = TO_FLOAT[op.opcode], op.operands[0]
        needed: list[tuple[str, bool]] = []
        while (maker := self._op(value)) is not None:
            needed.append((maker.dtype, is_unsigned))
            if maker.opcode == "arith.fptosi":
                found = self._quantum(maker.operands[0])
                fits = found is not None and all(found.fits(dtype, is_unsigned=u) for dtype, u in needed)
                return found if fits else None
            if maker.opcode in WIDENING:
                is_unsigned = WIDENING[maker.opcode]
            elif maker.opcode != "arith.trunci":
                return None
            value = maker.operands[0]
        return None

    def _quantum(self, value: int) -> Quantum | None:
        outer = self._op(value)
        inner = self._op(outer.operands[0]) if outer is not None and outer.opcode in OPPOSITE else None
        if outer is None or inner is None or inner.opcode != OPPOSITE[outer.opcode] or outer.dtype != "f32":
            return None
        limits = self._whole(inner.operands[1]), self._whole(outer.operands[1])
        if limits[0] is None or limits[1] is None:
            return None
        rounded, zero = self._moved(inner.operands[0])
        maker = self._op(rounded)
        if zero is None or maker is None or maker.opcode != "math.roundeven":
            return None
        found = Quantum(maker.operands[0], zero, ((inner.opcode, limits[0]), (outer.opcode, limits[1])))
        return found if found.range[0] <= found.range[1] else None

    def _moved(self, value: int) -> tuple[int, float | None]:
        """Return what a whole constant is added to, and the constant."""
        op = self._op(value)
        return (
            (op.operands[0], self._whole(op.operands[1]))
            if op and op.opcode == "arith.addf"
            else (value, 0.0)
        )

    def _whole(self, value: int) -> float | None:
        """Return a constant that is a small whole number."""
        op = self._op(value)
        known = float(parse_constant(op.attribute)) if op is not None and op.opcode == "const" else None
        return known if known is not None and abs(known) <= MOST and known.is_integer() else None


def _same(opcode: str) -> str:
    return opcode


def _rounded(b: FunctionBuilder, found: Quantum, values: list[int]) -> int:
    return b.shift(b.shift(values[found.source], PUSH), found.zero - PUSH)


def _kept(b: FunctionBuilder, found: Quantum, values: list[int], spelt: Callable[[str], str]) -> int:
    kept = _rounded(b, found, values)
    for opcode, limit in found.limits:
        kept = b.op(spelt(opcode), kept, b.constant(limit))
    return kept
