"""Shape classes: ranges of shapes of which each gets some boxes, however rare among those drawn at random.

They only say which boxes are measured and held back for tests; what a box takes is modelled in
`t10.cost.kernel_variants`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t10.core.dtypes import is_float, size_bytes
from t10.core.expression import OperatorSpec
from t10.core.tile import N_WORKERS
from t10.cost.classes import OperatorClass
from t10.cost.kernel_variants import Boxes, Column, chosen, product
from t10.cost.roles import LoopRoles, MatrixRoles

VECTOR_BYTES = 8
SEGMENT_SLOTS = 25
"""Slots of a line of rows besides the rows themselves."""
SHORT_LOOP = 4
"""Rows up to which a loop is not pipelined."""
ShapeClasses = list[tuple[str, Column]]


def shape_classes(one: OperatorClass, boxes: Boxes) -> ShapeClasses:
    """Return shape classes of boxes by name with conditions (n,): the first that holds counts, the last always does."""
    if one.matrix is not None:
        return _matrix(one.spec, one.matrix, boxes)
    if one.step == "epilogue":
        return _epilogue(one.spec, *one.runs(boxes))
    return _loops(one.spec, one.loops, boxes)


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
        length, outs = chosen(slides, length, n), chosen(slides, outs, 1)
    n = n // outs
    share = -(-n // N_WORKERS)
    lines = -(-(n // length) // N_WORKERS)
    by_row = share * phases + np.where(length < n, (share // length + 1) * SEGMENT_SLOTS, 0)
    by_line = lines * (length * phases + SEGMENT_SLOTS)
    is_line = np.logical_and(length < n, by_line < by_row)
    slots = chosen(is_line, by_line, by_row)
    return _Rows(outs, n, length, share, slots, chosen(is_line, length, np.minimum(length, share)))


def _steps_by_one(spec: OperatorSpec, roles: MatrixRoles) -> bool:
    """Return whether no row axis is walked in larger steps."""
    terms = [t for operand in spec.inputs for dim in operand.dims for t in dim.terms if t.axis in roles.rows]
    return all(term.coefficient == 1 for term in terms)


def _matrix(spec: OperatorSpec, roles: MatrixRoles, boxes: Boxes) -> ShapeClasses:
    """Return shape classes of a product by name with conditions: the first that holds counts, the last always does.

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


def _epilogue(spec: OperatorSpec, points: Column, run: Column) -> ShapeClasses:
    """Return shape classes of an epilogue by name with their conditions, as `loop_regimes` does."""
    is_whole, is_even = run % _line_width(spec) == 0, run % 2 == 0
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


def _loops(spec: OperatorSpec, roles: LoopRoles, boxes: Boxes) -> ShapeClasses:
    """Return shape classes of loops over vectors by name with their conditions, the first that holds counts.

    Runs that are no whole number of vectors leave rows that begin between vectors: code of another kind. So does a
    single row, which workers share among themselves.
    """
    width = _line_width(spec)
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


def _line_width(spec: OperatorSpec) -> int:
    """Return how many points of its smallest type fill eight bytes: lines of so many begin at whole words."""
    types = [operand.dtype for operand in spec.inputs] + [spec.acc_dtype]
    floats = [size_bytes(dtype) for dtype in types if is_float(dtype)]
    return max(VECTOR_BYTES // min(floats, default=4), 1)
