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
SKIPPED_WORDS = 16
ROW_STEPS = (1, 6, 24)
"""Rows of a block up to which code of its own runs: one per worker; too few for a pipelined loop."""
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


def matrix_regimes(spec: OperatorSpec, roles: MatrixRoles, boxes: Boxes) -> list[tuple[str, Column]]:
    """Return regimes of a product by name with their conditions, the first that holds counts; the last always does.

    Few rows go through code of their own, or not through the engine at all; inputs that do not end at whole words are
    copied, and outputs that do not are written word by word.
    """
    rows, columns, inner = (product(boxes, axes) for axes in (roles.rows, roles.columns, roles.inner))
    in_word = VECTOR_BYTES // size_bytes(spec.inputs[0].dtype)
    out_word = VECTOR_BYTES // size_bytes(spec.acc_dtype)
    is_even = np.logical_and(inner % in_word == 0, columns % out_word == 0)
    is_inner_even = inner % in_word == 0
    result: list[tuple[str, Column]] = []
    for name, condition in (("even", is_even), ("word", is_inner_even)):
        for most in ROW_STEPS:
            result.append((f"{name} {most}", np.logical_and(condition, rows <= most)))
        result.append((name, condition))
    for most in ROW_STEPS:
        result.append((f"ragged {most}", rows <= most))
    result.append(("ragged", rows > 0))
    return result


def matrix_features(spec: OperatorSpec, roles: MatrixRoles, boxes: Boxes) -> dict[str, Column]:
    """Return features by name, each (n,), of a product on the matrix engine.

    Blocks are whole or what is left over along columns and inner axis; a block costs its load, its launch, and its
    rows, which six workers share. A sum's first block begins from zero, all others add to what the output holds.
    """
    depth, width = BLOCKS[(spec.inputs[0].dtype, spec.acc_dtype)]
    columns, inner = product(boxes, roles.columns), product(boxes, roles.inner)
    rows, outs, sums = (product(boxes, axes) for axes in (roles.rows, roles.outs, roles.sums))
    whole_columns, left_columns = columns // width, columns % width
    whole_depth, left_depth = inner // depth, inner % depth
    has_columns, has_depth = np.minimum(left_columns, 1), np.minimum(left_depth, 1)
    share = -(-rows // N_WORKERS)
    n_deep = sums * (whole_depth + has_depth)
    n_wide = whole_columns + has_columns
    blocks = {
        "begins": outs * n_wide,
        "adds": outs * n_wide * (n_deep - 1),
        "deep": outs * n_wide * sums * has_depth,
        "wide": outs * has_columns * n_deep,
    }
    result: dict[str, Column] = {"one": rows * 0 + 1, "outs": outs, "outs sums": outs * sums}
    # What lies between two columns' words of a block is loaded as well, up to some words; wide loads take two at once.
    words = -(-inner // (VECTOR_BYTES // size_bytes(spec.inputs[0].dtype)))
    channels = outs * n_deep * columns
    is_wide = np.where(words % 2 == 0, 1, 0)
    for name, count in (("wide", channels * is_wide), ("narrow", channels * (1 - is_wide))):
        result[f"{name} channels"] = count
        result[f"{name} channel words"] = count * np.minimum(words, SKIPPED_WORDS)
    for name, count in blocks.items():
        result[name] = count
        result[f"{name} rows"] = count * share
    result["segments"] = outs * n_wide * n_deep * product(boxes, roles.rows[:-1])
    result["deep words"] = outs * sums * n_wide * left_depth
    result["deep word rows"] = outs * sums * n_wide * left_depth * share
    result["wide columns"] = outs * n_deep * left_columns
    result["wide column rows"] = outs * n_deep * left_columns * share
    # Lines that are copied, and outputs that a vector unit computes one by one.
    result["input elements"] = -(-(rows * sums * inner) // N_WORKERS)
    result["weight elements"] = -(-(outs * columns * sums * inner) // N_WORKERS)
    # A single row is a column to the engine: what were columns stream.
    result["turned"] = outs * n_deep
    result["turned rows"] = outs * n_deep * -(-columns // N_WORKERS)
    result["outputs"] = outs * -(-(rows * columns) // N_WORKERS)
    result["output words"] = outs * -(-(rows * columns) // N_WORKERS) * sums * -(-inner // depth)
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
    if roles.selected:
        plain |= {"selected": selected, "outputs selected": outputs * selected}
    return plain


def loop_regimes(spec: OperatorSpec, roles: LoopRoles, boxes: Boxes) -> list[tuple[str, Column]]:
    """Return regimes of loops over vectors by name with their conditions, the first that holds counts.

    Runs that are no whole number of vectors leave rows that begin between vectors: code of another kind. So does a
    single row, which workers share among themselves.
    """
    width = line_width(spec)
    line = product(boxes, roles.folded if roles.folded else roles.run)
    others = product(boxes, (*roles.run, *roles.rows)) if roles.folded else product(boxes, roles.rows)
    is_whole = line % width == 0
    is_one = others < N_WORKERS if roles.folded else others == 1
    return [
        ("few, whole", np.logical_and(is_one, is_whole)),
        ("whole", is_whole),
        ("few", is_one),
        ("even", line % 2 == 0),
        ("odd", line > 0),
    ]


def line_width(spec: OperatorSpec) -> int:
    """Return how many points of its smallest type fill eight bytes: lines of so many begin at whole words."""
    types = [operand.dtype for operand in spec.inputs] + [spec.acc_dtype]
    floats = [size_bytes(dtype) for dtype in types if is_float(dtype)]
    return max(VECTOR_BYTES // min(floats, default=4), 1)


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
