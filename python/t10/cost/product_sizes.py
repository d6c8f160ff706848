"""A product's loops as formulas over boxes: what streams past blocks of weights, as `t10.codelets.matrix` sees it.

Axes that operands walk on evenly are one loop; which do depends on extents: those of one point do not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from t10.core.dtypes import size_bytes
from t10.core.expression import Operand, OperatorSpec
from t10.core.tile import N_WORKERS
from t10.cost.kernel_variants import Boxes, Column, always, both, chosen, either, never, product
from t10.cost.walks import Strides, axis_order, dim_extent, strides_of, united_loops

WORD_BYTES = 8
SEGMENT_SLOTS = 25
MOST_STRIDE_BYTES = 4096
"""Distance of rows from which on strides of packed addresses do not reach."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a launch streams: `n` rows, how many the busiest worker has, in how many loops, of how many rows each.

    Where workers are all `even` none ends before the others, and the supervisor gets nothing done meanwhile. Rows that
    lie too `far` apart for strides take more instructions.
    """

    n: Column
    share: Column
    loops: Column
    length: Column
    even: Column
    is_far: Column


@dataclass(frozen=True, slots=True)
class Product:
    """A product with one input streaming past the other, each (n,).

    `inner` elements are summed at once, `stride` elements lie between columns' weights; `outs` and `sums` loop around
    blocks, `near` of the sums would be inner ones were lines copied. `fits` where columns are contiguous in the output,
    `lies` where the inner axis is contiguous in both inputs and all lines begin at whole words. `lines` of the input
    would be copied.
    """

    rows: Rows
    columns: Column
    inner: Column
    stride: Column
    outs: Column
    sums: Column
    near: Column
    fits: Column
    lies: Column
    lines: Column


def product_sizes(spec: OperatorSpec, boxes: Boxes, x: Operand, w: Operand) -> Product:
    """Return a product's sizes with `x` streaming past blocks of `w`."""
    order = axis_order(spec.output)
    strides = {"x": strides_of(x, boxes), "w": strides_of(w, boxes), "out": strides_of(spec.output, boxes)}
    one = boxes[:, 0] * 0 + 1
    columns, stride = one, one * 0
    own = [axis for axis in order if axis in w.axes and axis not in x.axes]
    for axis in reversed(own):
        extent = boxes[:, axis]
        begins = columns == 1
        walks = both(strides["out"][axis] == columns, either(begins, strides["w"][axis] == columns * stride))
        is_in = both(extent > 1, walks)
        stride = chosen(both(is_in, begins), strides["w"][axis], stride)
        columns = columns * chosen(is_in, extent, 1)
    all_columns = product(boxes, own)
    shared = product(boxes, [axis for axis in order if axis in w.axes and axis in x.axes])
    rows, outs = _rows(spec, boxes, [axis for axis in order if axis not in w.axes], x)
    inner, sums, near, lies = _sums(spec, boxes, strides, (x, w))
    return Product(
        rows,
        columns,
        inner,
        stride,
        shared * (all_columns // columns) * outs,
        sums,
        near,
        either(columns > 1, all_columns == 1),
        lies,
        _lines(x, spec, boxes),
    )


def _sums(
    spec: OperatorSpec, boxes: Boxes, strides: Mapping[str, Strides], inputs: tuple[Operand, Operand]
) -> tuple[Column, Column, Column, Column]:
    """Return the inner elements, the other sums, those of them next to inner lines, and whether inputs lie well."""
    x, w = inputs
    inner = boxes[:, 0] * 0 + 1
    sums, near, gap = inner, inner, inner
    lies, lines = always(inner), [*_line(x), *_line(w)]
    per_word = WORD_BYTES // size_bytes(x.dtype)
    for axis in reversed([axis for dim in x.dims for axis in dim.axes if axis in spec.reduction_axes]):
        extent, begins = boxes[:, axis], inner == 1
        step = strides["w"].get(axis, 0)
        walks_w = chosen(begins, 1, step == inner * gap)
        is_in = both(strides["x"][axis] == inner, walks_w)
        gap = chosen(both(is_in, begins, extent > 1), step, gap)
        pixel = boxes[:, lines[0]] if lines and lines[0] in spec.reduction_axes else inner * 0
        is_near = both(np.logical_not(is_in), strides["x"][axis] == pixel, near == 1)
        near = chosen(is_near, extent, near)
        sums = sums * chosen(is_in, 1, extent)
        inner = chosen(is_in, inner * extent, inner)
    lies = both(lies, gap == 1)
    # Strides are multiples of the last dim's extent, or of all that is inner.
    for operand in (x, w):
        for axis in _line(operand):
            lies = both(lies, either(boxes[:, axis] % per_word == 0, boxes[:, axis] == inner))
    return inner, sums, near, both(lies, inner % per_word == 0)


def _line(operand: Operand) -> list[int]:
    """Return the axis of an operand's last dim, if it is one."""
    dims = [dim for dim in operand.dims if dim.terms]
    return [dims[-1].terms[0].axis] if dims and dims[-1].is_simple else []


def _lines(x: Operand, spec: OperatorSpec, boxes: Boxes) -> Column:
    """Return how many lines of the input there are to copy."""
    result = product(boxes, ())
    dims = [dim for dim in x.dims if dim.terms]
    for number, dim in enumerate(dims):
        is_line = number == len(dims) - 1 and dim.terms[0].axis in spec.reduction_axes
        result = result if is_line else result * dim_extent(dim, boxes)
    return result


def _rows(spec: OperatorSpec, boxes: Boxes, order: Sequence[int], x: Operand) -> tuple[Rows, Column]:
    """Return how rows run, and how many loops of further ones there are around blocks.

    Of rows that are not evenly spaced the longest loop makes lines; workers share rows or lines, whatever is less.
    """
    loops_of = united_loops(boxes, order, (x, spec.output))
    n, length = product(boxes, order), loops_of[0].extent
    outs, (x_step, out_step) = n * 0 + 1, loops_of[0].steps
    for other in loops_of[1:]:
        is_longer = other.extent > length
        x_step, out_step = (
            chosen(is_longer, new, old) for new, old in zip(other.steps, (x_step, out_step), strict=True)
        )
        length = np.maximum(length, other.extent)
    far = (
        MOST_STRIDE_BYTES // size_bytes(spec.inputs[0].dtype),
        MOST_STRIDE_BYTES // size_bytes(spec.acc_dtype),
    )
    is_far = either(x_step >= far[0], out_step >= far[1])
    if len(loops_of) == 1:
        share = -(-n // N_WORKERS)
        return Rows(n, share, outs, share, n % N_WORKERS == 0, is_far), outs
    if len(loops_of) > 2:
        outs = n // (length * _second([each.extent for each in loops_of], length))
    n = n // outs
    share, lines = -(-n // N_WORKERS), -(-(n // length) // N_WORKERS)
    has_lines = length < n
    loops = chosen(has_lines, _most_loops(n, length), 1)
    per_row = 8 if spec.inputs[0].dtype == "f16" else 16
    by_line = lines * (length * per_row + SEGMENT_SLOTS)
    is_line = both(has_lines, by_line < share * per_row + loops * SEGMENT_SLOTS)
    rows = Rows(
        n,
        chosen(is_line, lines * length, share),
        chosen(is_line, lines, loops),
        chosen(is_line, length, np.minimum(length, share)),
        chosen(is_line, n // length, n) % N_WORKERS == 0,
        is_far,
    )
    return rows, outs


def _most_loops(n: Column, length: Column) -> Column:
    """Return in how many lines a worker's rows lie at most."""
    share = -(-n // N_WORKERS)
    # Shares that begin where lines do lie in the fewest lines.
    begins = either(share % length == 0, both(n % N_WORKERS == 0, length % share == 0))
    return -(-share // length) + chosen(begins, 0, chosen((share - 1) % length == 0, 0, 1))


def _second(extents: list[Column], largest: Column) -> Column:
    """Return the second largest of some columns."""
    result = extents[0] * 0 + 1
    seen = never(extents[0])
    for extent in extents:
        is_largest = both(extent == largest, np.logical_not(seen))
        result = chosen(is_largest, result, np.maximum(result, extent))
        seen = either(seen, is_largest)
    return result
