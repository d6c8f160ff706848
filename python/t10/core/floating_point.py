"""The floating-point mode that all code of tiles is written for. program.cpp sets it, the simulators begin with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FloatingPointMode:
    """A mode of Mk2's floating-point unit, by Poplar's names; rounding is to nearest even.

    `inv`, `div0`, `oflo`: exceptions at invalid operations, divisions by zero, overflow. `esr`: stochastic rounding of
    results in f16. `nanoo`: f16 overflow gives NaN, else the largest finite number.
    """

    inv: bool = False
    div0: bool = False
    oflo: bool = False
    esr: bool = False
    nanoo: bool = False

    @property
    def register(self) -> int:
        """Return the mode as the bits of `$FP_CTL` and `$FP_ICTL`."""
        bits = ((self.inv, 0), (self.div0, 1), (self.oflo, 2), (self.esr, 19), (self.nanoo, 20))
        return sum(int(flag) << place for flag, place in bits)


FLOATING_POINT = FloatingPointMode()
"""Nothing traps, because results of special values are defined; a number is rounded the same way each time; a score
that overflows f16 stays a number that a softmax can use, instead of a NaN that spreads."""
