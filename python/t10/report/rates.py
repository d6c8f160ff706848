"""What a chip comes to per second: bytes into its busiest core, and work of its matrix engines.

Both are over all of the time of an operator, a run or, in a pipeline, from one result to the next: whatever a core does
then, data moves or not. Every table, page, file and timeline shows these two, under these names.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan

MEAN_RATE = "mean GB/s in"
MEAN_RATE_OUT = "mean GB/s out"
BUSY_SHARE = "busy share"
UTILISATION, OF_PEAK = "utilisation", "of peak"
"""The name of the part of the matrix engines' fastest rate that is used, and the title of its column."""
PRODUCTS = ("contraction", "convolution")
GIGABYTE = 1e9


def mean_rate(received_bytes: int, seconds: float) -> float:
    """Return GB/s: the bytes that the busiest core receives, over all of the time."""
    return received_bytes / seconds / GIGABYTE if seconds else 0.0


def busy_share(
    spec: OperatorSpec, plan: OperatorPlan, compute_cycles: int, cycles: int, chip: ChipSpec
) -> float:
    """Return the part of all of the time in which a core computes points of the tensor, a mean of the chip's cores.

    Points of padding do not count.
    """
    parts = zip(spec.extents, plan.f_op, plan.lengths, strict=True)
    useful = prod(extent / (n_parts * length) for extent, n_parts, length in parts)
    return compute_cycles / cycles * useful * plan.n_cores / chip.n_cores if cycles else 0.0


def peak_macs(chip: ChipSpec) -> float:
    """Return the multiply-accumulates that all cores do in a cycle at most, of the types for which that is most.

    The vector unit counts where it is faster than every matrix engine. 0 without matrix engines.
    """
    if not chip.matrix_units:
        return 0
    widths = (chip.vector_width_f16, chip.vector_width_f32)
    return chip.n_cores * max(*widths, *(unit.macs_per_cycle for unit in chip.matrix_units))


def utilisation(specs: Iterable[OperatorSpec], cycles: int, chip: ChipSpec) -> float | None:
    """Return the part of `peak_macs` that products come to over so many cycles; None without products or engines.

    Points that padding adds to a convolution count as work.
    """
    macs = sum(spec.n_points for spec in specs if spec.kind in PRODUCTS)
    possible = cycles * peak_macs(chip)
    return round(macs / possible, 6) if macs and possible else None
