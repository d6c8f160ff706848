"""How much of what a chip's matrix engines could do is done."""

from __future__ import annotations

from collections.abc import Iterable

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec

PRODUCTS = ("contraction", "convolution")


def peak_macs(chip: ChipSpec) -> int:
    """Return the multiply-accumulates that all cores do in a cycle at most, of the types for which that is most."""
    return chip.n_cores * max((unit.macs_per_cycle for unit in chip.matrix_units), default=0)


def utilisation(specs: Iterable[OperatorSpec], cycles: int, chip: ChipSpec) -> float | None:
    """Return the part of `peak_macs` that products come to over so many cycles; None without products or engines.

    Points that padding adds to a convolution count as work.
    """
    macs = sum(spec.n_points for spec in specs if spec.kind in PRODUCTS)
    possible = cycles * peak_macs(chip)
    return round(macs / possible, 6) if macs and possible else None
