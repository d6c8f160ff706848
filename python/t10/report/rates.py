"""What a chip comes to per second: bytes into its busiest core, and work of its matrix engines.

Both are over all of the time of an operator, a run or, in a pipeline, from one result to the next: whatever a core does
then, data moves or not. Every table, page, file and timeline shows these two, under these names.
"""

from __future__ import annotations

from collections.abc import Iterable

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec

MEAN_RATE = "mean GB/s in"
UTILISATION = "utilisation"
PRODUCTS = ("contraction", "convolution")
GIGABYTE = 1e9


def mean_rate(received_bytes: int, seconds: float) -> float:
    """Return GB/s: the bytes that the busiest core receives, over all of the time."""
    return received_bytes / seconds / GIGABYTE if seconds else 0.0


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
