"""Features: what the time of a compute step is a linear function of (T10 §4.3.1), as formulas over boxes.

All are products and rounded-up quotients of extents, so that the search can evaluate them natively. Which of them an
operator needs is found by the fit, whose coefficients are not negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from t10.core.dtypes import is_float, size_bytes
from t10.core.expression import AxisSizes, OperatorSpec
from t10.profile.roles import LoopRoles, MatrixRoles

N_WORKERS = 6
VECTOR_BYTES = 8
FEW_ROWS = (1, 2, 3)
"""Rows of a worker for which loops are not worth it: code of their own."""
Boxes = Any
"""An integer array (n, axes), or what records how formulas are made of one."""
Column = Any
Blocks = tuple[int, int]

BLOCKS: Mapping[tuple[str, str], Blocks] = {
    ("f16", "f32"): (16, 8),
    ("f16", "f16"): (16, 16),
    ("f32", "f32"): (8, 16),
}
"""Depth and columns of a block of weights by input and output type (ISA reference §10)."""


def matrix_features(spec: OperatorSpec, roles: MatrixRoles, boxes: Boxes) -> dict[str, Column]:
    """Return features by name, each (n,), of a product on the matrix engine.

    Blocks are whole or what is left over along columns and inner axis; a block costs its load, its launch, and its
    rows, which six workers share.
    """
    depth, width = BLOCKS[(spec.inputs[0].dtype, spec.acc_dtype)]
    columns, inner = product(boxes, roles.columns), product(boxes, roles.inner)
    rows, outs, sums = (product(boxes, axes) for axes in (roles.rows, roles.outs, roles.sums))
    outer_rows = product(boxes, roles.rows[:-1])
    whole_columns, left_columns = columns // width, columns % width
    whole_depth, left_depth = inner // depth, inner % depth
    has_columns, has_depth = np.minimum(left_columns, 1), np.minimum(left_depth, 1)
    share = -(-rows // N_WORKERS)
    one = rows * 0 + 1
    # A sum's first block begins from zero, all others add to what the output holds.
    n_deep = sums * (whole_depth + has_depth)
    begin_whole = np.minimum(whole_depth, 1)
    blocks = {
        "begin": outs * whole_columns * begin_whole,
        "add": outs * whole_columns * (sums * whole_depth - begin_whole),
        "begin deep": outs * whole_columns * (1 - begin_whole),
        "add deep": outs * whole_columns * (sums * has_depth - (1 - begin_whole)),
        "begin wide": outs * has_columns,
        "add wide": outs * has_columns * (n_deep - 1),
    }
    result: dict[str, Column] = {"one": one, "outs": outs, "outs sums": outs * sums}
    # Weights of one block's depth lie in one piece: their load needs no address per column.
    is_even = np.where(columns * 0 + inner == depth, 1, 0)
    result["even load"] = outs * whole_columns * is_even
    result["scattered load"] = outs * whole_columns * sums * whole_depth * (1 - is_even)
    for name, count in blocks.items():
        result[name] = count
        result[f"{name} rows"] = count * share
        result[f"{name} segments"] = count * outer_rows
        for few in FEW_ROWS:
            result[f"{name} with {few}"] = count * np.where(share == few, 1, 0)
    result["deep words"] = outs * sums * whole_columns * left_depth
    result["deep word rows"] = outs * sums * whole_columns * left_depth * share
    result["wide columns"] = outs * n_deep * left_columns
    result["wide column rows"] = outs * n_deep * left_columns * share
    return result


def epilogue_features(spec: OperatorSpec, points: Column) -> dict[str, Column]:
    """Return features by name, each (n,), of an epilogue on `points` elements: it is priced by their number alone."""
    width = vector_width(spec)
    return {
        "one": points * 0 + 1,
        "spread": -(-points // (N_WORKERS * width)),
        "points": -(-points // N_WORKERS),
    }


def loop_features(spec: OperatorSpec, roles: LoopRoles, boxes: Boxes) -> dict[str, Column]:
    """Return features by name, each (n,), of everything that runs as loops over vectors.

    Runs that are no whole number of vectors leave rows that begin between vectors: code of another kind.
    """
    width = vector_width(spec)
    run, rows = product(boxes, roles.run), product(boxes, roles.rows)
    folded, summed, selected = (product(boxes, axes) for axes in (roles.folded, roles.summed, roles.selected))
    points = run * rows
    one = points * 0 + 1
    vectors = -(-run // width)
    share, spread = -(-rows // N_WORKERS), -(-points // (N_WORKERS * width))
    outputs = -(-points // N_WORKERS)
    plain: dict[str, Column] = {
        "one": one,
        "spread": spread,
        "share": share,
        "share vectors": share * vectors,
        "row vectors": rows * -(-run // (N_WORKERS * width)),
        "points": outputs,
    }
    line = run
    if spec.reduction_axes:
        terms, folds = summed * folded, -(-folded // width)
        plain |= {
            "output folds": outputs * summed * folds,
            "output sums": outputs * summed,
            "output terms": outputs * terms,
            "share vector terms": share * vectors * terms,
            "spread terms": spread * terms,
            "share terms": share * terms,
        }
        if roles.folded:
            line = folded
    if roles.selected:
        plain |= {"selected": selected, "outputs selected": outputs * selected}
    is_whole = np.where(line % width == 0, 1, 0)
    return {
        **{f"{name}, whole": column * is_whole for name, column in plain.items()},
        **{f"{name}, left": column * (1 - is_whole) for name, column in plain.items()},
    }


def vector_width(spec: OperatorSpec) -> int:
    """Return how many points an operator's loops take at once: of its widest type, eight bytes."""
    types = [operand.dtype for operand in spec.inputs] + [spec.acc_dtype]
    floats = [size_bytes(dtype) for dtype in types if is_float(dtype)]
    return max(VECTOR_BYTES // max(floats, default=4), 1)


def product(boxes: Boxes, axes: AxisSizes) -> Column:
    """Return the product of the extents of some axes; ones where there are none."""
    result = boxes[:, 0] * 0 + 1 if not axes else boxes[:, axes[0]]
    for axis in axes[1:]:
        result = result * boxes[:, axis]
    return result
