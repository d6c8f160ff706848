"""Shifts: what every core takes from its ring neighbour when an axis advances, in rounds through the shift buffer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t10.core import geometry
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.errors import T10Error

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Slab:
    """The slots of rotatable operand `number` that a shift replaces, (cores, n), and whose slab each core receives.

    Windows are circular: what a core receives goes exactly where what it passes on lay.
    """

    number: int
    slots: Ints
    sources: Ints


def slab(
    spec: OperatorSpec, plan: OperatorPlan, number: int, axis: int, positions: AxisSizes, direction: int
) -> Slab:
    """Return what operand `number` moves when `axis` advances by `direction` from loop state `positions`.

    A dim over several axes is replaced whole, halo included (compute-shift model R5).
    """
    sources = geometry.shift_sources(spec, plan, number, axis, direction)
    if (sources < 0).any():
        raise T10Error(
            f"{spec.rotatable[number].name} has no ring neighbour along axis {axis}", operator=spec.name
        )
    operand = spec.rotatable[number]
    lengths = geometry.window_lengths(plan, number)
    extents = geometry.partition_shape(operand, lengths)
    pace, length = plan.rp[axis], lengths[axis]
    if axis not in operand.simple_axes or pace == length:
        everything = np.arange(int(np.prod(extents)), dtype=np.int64)[None, :]
        return Slab(number, np.broadcast_to(everything, (plan.n_cores, everything.shape[1])), sources)
    start = geometry.window_starts(plan, number, positions)[:, axis]
    first = start if direction > 0 else start - pace
    window = (first[:, None] + np.arange(pace)) % length
    flat = np.zeros((plan.n_cores, 1, 1), np.int64)
    along = np.zeros((1, 1), np.int64)
    stride = 1
    others = np.zeros(1, np.int64)
    for dim, extent in zip(reversed(operand.dims), reversed(extents), strict=True):
        if dim.is_simple and axis in dim.axes:
            along = along + window * stride
        else:
            others = (np.arange(extent)[:, None] * stride + others[None, :]).reshape(-1)
        stride *= extent
    flat = along[:, :, None] + others[None, None, :]
    return Slab(number, np.sort(flat.reshape(plan.n_cores, -1), axis=1), sources)
