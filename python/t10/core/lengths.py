"""How long the parts of an axis are: as short as covers it, along lines a whole number of what code takes at once.

An axis is a *line* where it is the last dim of some operand: its elements lie side by side in a core. The matrix engine
takes whole blocks: a line that ends inside a block is copied and filled up, or takes a second pass. Code takes 8 bytes
at once: where a line ends inside 8 bytes, all lines after the first begin at odd places. So parts of lines are rounded
up to 16, 8 or 4 elements, the most of these that leave at most a 16th of all parts to padding.
"""

from __future__ import annotations

from math import lcm

from t10.core.expression import AxisSizes, OperatorSpec

LINE_UNITS = (16, 8, 4)
LEAST_USEFUL = 15
"""Of `LEAST_USEFUL` + 1 elements of the parts of a line, so many are useful at least where they are rounded up."""


def line_axes(spec: OperatorSpec) -> frozenset[int]:
    """Return the axes that are the last dim of an operand."""
    last = [operand.dims[-1] for operand in spec.rotatable if operand.dims]
    return frozenset([dim.terms[0].axis for dim in last if dim.is_simple])


def part_length(extent: int, parts: int, factors: AxisSizes = (), *, is_line: bool = False) -> int:
    """Return L_a: the elements of a part of an axis, rounded up so that all temporal factors divide them."""
    length = -(-extent // parts)
    if is_line:
        most = (LEAST_USEFUL + 1) * extent // (LEAST_USEFUL * parts)
        rounded = (-(-length // unit) * unit for unit in LINE_UNITS)
        length = next((each for each in rounded if each <= most), length)
    multiple = lcm(*factors)
    return -(-length // multiple) * multiple


def lengths_of(spec: OperatorSpec, f_op: AxisSizes, ft: tuple[AxisSizes, ...]) -> AxisSizes:
    """Return L_a of all axes under an F_op and temporal factors of every rotatable operand."""
    lines = line_axes(spec)
    return tuple(
        [
            part_length(extent, parts, factors, is_line=axis in lines)
            for axis, (extent, parts, factors) in enumerate(
                zip(spec.extents, f_op, zip(*ft, strict=True), strict=True)
            )
        ]
    )
