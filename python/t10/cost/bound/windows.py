"""A lower bound of depthwise convolutions on the short-window engine (`t10.codelets.matrix.windows`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from t10.codelets.matrix.windows import MOST_TAPS, SHORTEST_WINDOW
from t10.codelets.matrix.windows_code import CHANNELS
from t10.core.expression import Operand, OperatorSpec
from t10.core.products import hands_on_rounded, is_product
from t10.core.tile import N_WORKERS
from t10.cost.bound.columns import Boxes, Column, both, chosen, product

IMPOSSIBLE = 1 << 40
ONCE_CYCLES, DIAGONAL_SLOTS = 480, 6
"""What the code takes around its launches, and a tap of the weights of four channels."""
LAUNCH_CYCLES, HALF_SLOTS, BEGINNING_SLOTS = 98, 2, 5
"""A launch besides its rows; a row each time that it goes through the engine, and more where sums begin."""


def windows_bound(spec: OperatorSpec, boxes: Boxes) -> Column | None:
    """Return cycles (n,) that such code never falls below; None for what is no depthwise convolution.

    `IMPOSSIBLE` for boxes that it never takes. Launches are left out.
    """
    if len(spec.inputs) != 2 or spec.combine != "sum" or spec.selectors or not is_product(spec.body):
        return None
    dtypes = [operand.dtype for operand in spec.inputs]
    if dtypes != ["f16", "f16"] or spec.acc_dtype not in ("f16", "f32") or hands_on_rounded(spec):
        return None
    operands = (*spec.inputs, spec.output)
    shared = frozenset[int].intersection(*(operand.simple_axes for operand in operands))
    ways = [
        _cycles(spec, boxes, channel, along) for channel in sorted(shared) for along in spec.reduction_axes
    ]
    return reduce(np.minimum, ways) if ways else None


def _cycles(spec: OperatorSpec, boxes: Boxes, channel: int, along: int) -> Column:
    """Return the bound where an axis is that of channels, and windows are cut in pieces along another."""
    operands = (*spec.inputs, spec.output)
    halves = 1 if spec.acc_dtype == "f16" else 2
    n_groups = boxes[:, channel] // CHANNELS
    share = -(-product(boxes, [axis for axis in sorted(spec.output.axes) if axis != channel]) // N_WORKERS)
    rows_of_taps = product(boxes, [axis for axis in spec.reduction_axes if axis != along])
    n_taps, places = product(boxes, spec.reduction_axes), product(boxes, _places(operands, along))
    # Of windows that do not move along it, all taps may be one row.
    n_pieces = chosen(places == 1, -(-n_taps // MOST_TAPS), rows_of_taps * -(-boxes[:, along] // MOST_TAPS))
    steps = share * (2 * (n_pieces - 1) + _least_stride(operands, along))
    rows = N_WORKERS * halves * (HALF_SLOTS * n_pieces + BEGINNING_SLOTS + steps)
    weights = DIAGONAL_SLOTS * (n_taps * n_groups // N_WORKERS)
    cycles = ONCE_CYCLES + N_WORKERS * weights + n_groups * (LAUNCH_CYCLES * n_pieces + rows)
    inside = {axis for operand in operands for axis in _behind(operand, channel)}
    may_be = both(
        boxes[:, channel] % CHANNELS == 0,
        product(boxes, sorted(inside)) == 1,
        chosen(places == 1, n_taps, boxes[:, along]) >= SHORTEST_WINDOW,
    )
    return chosen(may_be, cycles, IMPOSSIBLE)


def _places(operands: Sequence[Operand], along: int) -> list[int]:
    """Return the axes of results that windows move along with an axis of their taps."""
    dims = [dim for operand in operands for dim in operand.dims if along in dim.axes]
    return sorted({axis for dim in dims for axis in dim.axes} - {along})


def _least_stride(operands: Sequence[Operand], along: int) -> int:
    """Return the steps of a row that begins per result, at least."""
    dims = [dim for operand in operands for dim in operand.dims if along in dim.axes and len(dim.axes) > 1]
    near = [term.coefficient for dim in dims for term in dim.terms if term.axis == along]
    far = [term.coefficient for dim in dims for term in dim.terms if term.axis != along]
    return max(min(far, default=1) // max(near, default=1), 1)


def _behind(operand: Operand, axis: int) -> set[int]:
    """Return the axes of an operand's dims behind an axis."""
    place = next(number for number, dim in enumerate(operand.dims) if axis in dim.axes)
    return {each for dim in operand.dims[place + 1 :] for each in dim.axes}
