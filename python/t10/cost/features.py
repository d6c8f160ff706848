"""Features: what the time of a compute step is a linear function of (T10 §4.3.1), as formulas over boxes.

All are products and rounded-up quotients of extents, so that the search can evaluate them natively. Which of them an
operator needs is found by the fit, whose coefficients are not negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from t10.core.dtypes import is_float, size_bytes
from t10.core.expression import AxisSizes, OperatorSpec
from t10.cost.roles import LoopRoles, MatrixRoles

N_WORKERS = 6
VECTOR_BYTES = 8
SKIPPED_WORDS = 16
SEGMENT_SLOTS = 25
"""Slots of a line of rows besides the rows themselves."""
SHORT_LOOP = 4
"""Rows up to which a loop is not pipelined."""
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


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of a block: how many, the longest loop over them, and what the busiest worker does.

    `outs` are row axes beyond two, which loop around blocks; `slots` are issue slots of a worker, `loop` the rows of
    one of its loops.
    """

    outs: Column
    n: Column
    length: Column
    share: Column
    slots: Column
    loop: Column


def _rows(spec: OperatorSpec, roles: MatrixRoles, boxes: Boxes) -> _Rows:
    """Return how rows run: as lines of the longest axis, dealt out row by row or line by line, whatever is less."""
    phases = 4 if spec.inputs[0].dtype == "f16" else 8
    n, outs = product(boxes, roles.rows), product(boxes, ())
    length = n
    if roles.sums and len(roles.rows) > 1:
        extents = [boxes[:, axis] for axis in roles.rows[-3:]]
        length, least = extents[0], extents[0]
        for extent in extents[1:]:
            length, least = np.maximum(length, extent), np.minimum(least, extent)
        if len(extents) > 2:
            outs = least
        slides = product(boxes, roles.sums) > 1 if _steps_by_one(spec, roles) else n > 0
        # Windows of one point slide over nothing: all rows are one line.
        length, outs = _chosen(slides, length, n), _chosen(slides, outs, 1)
    n = n // outs
    share = -(-n // N_WORKERS)
    lines = -(-(n // length) // N_WORKERS)
    by_row = share * phases + np.where(length < n, (share // length + 1) * SEGMENT_SLOTS, 0)
    by_line = lines * (length * phases + SEGMENT_SLOTS)
    is_line = np.logical_and(length < n, by_line < by_row)
    slots = _chosen(is_line, by_line, by_row)
    return _Rows(outs, n, length, share, slots, _chosen(is_line, length, np.minimum(length, share)))


def _steps_by_one(spec: OperatorSpec, roles: MatrixRoles) -> bool:
    """Return whether no row axis is walked in larger steps."""
    terms = [t for operand in spec.inputs for dim in operand.dims for t in dim.terms if t.axis in roles.rows]
    return all(term.coefficient == 1 for term in terms)


def matrix_regimes(spec: OperatorSpec, roles: MatrixRoles, boxes: Boxes) -> list[tuple[str, Column]]:
    """Return regimes of a product by name with their conditions, the first that holds counts; the last always does.

    Short loops over rows go through code of their own, or not through the engine at all; inputs that do not end at
    whole words are copied, and outputs that do not are written word by word.
    """
    columns, inner = product(boxes, roles.columns), product(boxes, roles.inner)
    rows = _rows(spec, roles, boxes)
    in_word = VECTOR_BYTES // size_bytes(spec.inputs[0].dtype)
    out_word = VECTOR_BYTES // size_bytes(spec.acc_dtype)
    is_inner_even = inner % in_word == 0
    is_even = np.logical_and(is_inner_even, columns % out_word == 0)
    lengths = (
        (" one", rows.n == 1),
        (" few", rows.n <= N_WORKERS),
        (" short", rows.loop <= SHORT_LOOP),
        ("", rows.n > 0),
    )
    return [
        (f"{name}{suffix}", np.logical_and(condition, short))
        for name, condition in (("even", is_even), ("word", is_inner_even), ("ragged", rows.n > 0))
        for suffix, short in lengths
    ]


def matrix_features(spec: OperatorSpec, roles: MatrixRoles, boxes: Boxes) -> dict[str, Column]:
    """Return features by name, each (n,), of a product on the matrix engine.

    Blocks are whole or what is left over along columns and inner axis; a block costs its load, its launch, and its
    rows, which six workers share. A sum's first block begins from zero, all others add to what the output holds.
    """
    depth, width = BLOCKS[(spec.inputs[0].dtype, spec.acc_dtype)]
    columns, inner = product(boxes, roles.columns), product(boxes, roles.inner)
    rows, sums = _rows(spec, roles, boxes), product(boxes, roles.sums)
    outs = product(boxes, roles.outs) * rows.outs
    whole_columns, left_columns = columns // width, columns % width
    whole_depth, left_depth = inner // depth, inner % depth
    has_columns, has_depth = np.minimum(left_columns, 1), np.minimum(left_depth, 1)
    n_deep = sums * (whole_depth + has_depth)
    n_wide = whole_columns + has_columns
    blocks = {
        "begins": outs * n_wide,
        "adds": outs * n_wide * (n_deep - 1),
        "deep": outs * n_wide * sums * has_depth,
        "wide": outs * has_columns * n_deep,
    }
    result: dict[str, Column] = {"one": rows.n * 0 + 1, "outs": outs, "outs sums": outs * sums}
    # What lies between two columns' words of a block is loaded as well, up to some words; wide loads take two at once.
    words = -(-inner // (VECTOR_BYTES // size_bytes(spec.inputs[0].dtype)))
    channels = outs * n_deep * columns
    is_wide = np.where(words % 2 == 0, 1, 0)
    for name, count in (("wide", channels * is_wide), ("narrow", channels * (1 - is_wide))):
        result[f"{name} channels"] = count
        result[f"{name} channel words"] = count * np.minimum(words, SKIPPED_WORDS)
    for name, count in blocks.items():
        result[name] = count
        result[f"{name} slots"] = count * rows.slots
        result[f"{name} rows"] = count * rows.share
    result["lines"] = outs * n_wide * n_deep * -(-(rows.n // rows.length) // N_WORKERS)
    result["deep words"] = outs * sums * n_wide * left_depth
    result["deep word rows"] = outs * sums * n_wide * left_depth * rows.share
    result["wide columns"] = outs * n_deep * left_columns
    result["wide column rows"] = outs * n_deep * left_columns * rows.share
    # Lines that are copied, and outputs that a vector unit computes one by one.
    result["input elements"] = -(-(rows.n * rows.outs * sums * inner) // N_WORKERS)
    result["weight elements"] = -(-(outs * columns * sums * inner) // N_WORKERS)
    # A single row is a column to the engine: what were columns stream.
    result["turned"] = outs * n_deep
    result["turned rows"] = outs * n_deep * -(-columns // N_WORKERS)
    result["outputs"] = outs * -(-(rows.n * columns) // N_WORKERS)
    result["output words"] = outs * -(-(rows.n * columns) // N_WORKERS) * sums * -(-inner // depth)
    return result


def epilogue_features(spec: OperatorSpec, points: Column, run: Column) -> dict[str, Column]:
    """Return features by name, each (n,), of an epilogue on `points` elements in rows of `run`."""
    width = vector_width(spec)
    rows, vectors = -(-points // run), -(-run // width)
    share = -(-rows // N_WORKERS)
    # Workers share rows or what lies along them, whichever leaves the busiest less.
    by_rows, by_columns = share * vectors, rows * -(-vectors // N_WORKERS)
    where: Any = np.where
    return {
        "one": points * 0 + 1,
        "spread": -(-points // (N_WORKERS * width)),
        "share": share,
        "share vectors": by_rows,
        "row vectors": rows * -(-run // (N_WORKERS * width)),
        "points": -(-points // N_WORKERS),
        "busiest vectors": np.minimum(by_rows, by_columns),
        "busiest rows": where(by_rows <= by_columns, share, rows),
    }


def epilogue_regimes(spec: OperatorSpec, points: Column, run: Column) -> list[tuple[str, Column]]:
    """Return regimes of an epilogue by name with their conditions, as `loop_regimes` does."""
    is_whole, is_even = run % line_width(spec) == 0, run % 2 == 0
    is_one, is_few = points <= run, points <= run * (N_WORKERS - 1)
    return [
        ("one, whole", np.logical_and(is_one, is_whole)),
        ("few, whole", np.logical_and(is_few, is_whole)),
        ("whole", is_whole),
        ("one", is_one),
        ("few, even", np.logical_and(is_few, is_even)),
        ("even", is_even),
        ("odd", run > 0),
    ]


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
    # Workers share the outermost axis; what lies inside of it each of them walks alone.
    outermost = outer_extent(boxes, roles.rows)
    dealt = -(-outermost // N_WORKERS) * (rows // outermost)
    plain: dict[str, Column] = {
        "one": one,
        "dealt": dealt,
        "dealt vectors": dealt * vectors,
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
            "dealt terms": dealt * terms,
            "dealt vector terms": dealt * vectors * terms,
            "dealt sums": dealt * summed,
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
    # A single term is no sum: it is added to, or becomes, its output as in an elementwise loop.
    single = product(boxes, (*roles.folded, *roles.summed)) == 1
    sums = [("single, whole", np.logical_and(single, is_whole)), ("single", single)]
    return [
        *(sums if spec.reduction_axes else []),
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


def outer_extent(boxes: Boxes, axes: AxisSizes) -> Column:
    """Return the extent of the first of some axes that has more than one point, 1 where none has."""
    result = product(boxes, ())
    for axis in reversed(axes):
        result = _chosen(boxes[:, axis] > 1, boxes[:, axis], result)
    return result


def _chosen(condition: Column, first: Column, second: Column) -> Column:
    """Return `first` where a condition holds, else `second`."""
    chosen: Column = cast("Any", np).where(condition, first, second)
    return chosen


def product(boxes: Boxes, axes: AxisSizes) -> Column:
    """Return the product of the extents of some axes; ones where there are none."""
    result = boxes[:, 0] * 0 + 1 if not axes else boxes[:, axes[0]]
    for axis in axes[1:]:
        result = result * boxes[:, axis]
    return result
