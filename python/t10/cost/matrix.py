"""Cycles of contractions and convolutions on one core: the matrix engine (AMP) and the vector unit, the faster of both.

The matrix engine's formula is that of poplibs' 1x1 convolution vertex (ipu timing reference, section 5.1). A block of
weights stays, rows stream through it; inner elements and output columns are padded to whole blocks. Positions of a
window (kh, kw) are further passes over the same accumulators.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t10.chip import ChipSpec, MatrixUnit
from t10.core.arrays import Ints
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.products import hands_on_rounded
from t10.core.scalar import ScalarFunction

CASTS = frozenset({"arith.extf", "arith.truncf", "arith.fpext", "arith.sitofp"})
VECTOR_OVERHEAD = 65
WORKER_OVERHEAD = 35
DOT_OVERHEAD = 8
IPU_ROW_CYCLES, IPU_ROW_CYCLES_F32 = 4, 8
"""Cycles per row of an IPU's engine, for f16 and f32 inputs."""


@dataclass(frozen=True, slots=True)
class MatrixAxes:
    """The axes of a product of two operands by role.

    `groups` index both operands and the output; `rows` the first and the output; `columns` the second and the output;
    `inner` are summed; `positions` are summed and occur in a dim over several axes (window positions).
    """

    groups: AxisSizes
    rows: AxisSizes
    columns: AxisSizes
    inner: AxisSizes
    positions: AxisSizes


def is_product(body: ScalarFunction) -> bool:
    """Return whether a body is the product of its two inputs, casts aside."""
    multiplications = [op for op in body.ops if op.opcode == "arith.mulf"]
    others = [op for op in body.ops if op.opcode != "arith.mulf" and op.opcode not in CASTS]
    return body.n_inputs == 2 and len(multiplications) == 1 and not others


def matrix_axes(spec: OperatorSpec) -> MatrixAxes | None:
    """Return the roles of the axes where the operator is a sum of products of two operands, else None."""
    if len(spec.inputs) != 2 or spec.combine != "sum" or spec.selectors or not is_product(spec.body):
        return None
    first, second = (operand.axes for operand in spec.inputs)
    compound = {
        axis for operand in spec.inputs for dim in operand.dims if len(dim.terms) > 1 for axis in dim.axes
    }
    numbers = range(len(spec.axes))
    reduced = set(spec.reduction_axes)
    return MatrixAxes(
        groups=tuple(a for a in numbers if a in first and a in second and a not in reduced),
        rows=tuple(a for a in numbers if a in first and a not in second and a not in reduced),
        columns=tuple(a for a in numbers if a in second and a not in first and a not in reduced),
        inner=tuple(a for a in numbers if a in reduced and a not in compound),
        positions=tuple(a for a in numbers if a in reduced and a in compound),
    )


def product_cycles(chip: ChipSpec, spec: OperatorSpec, axes: MatrixAxes, boxes: Ints) -> Ints:
    """Return the cycles of every box, shape (candidates,), by the faster of matrix engine and vector unit."""
    groups, rows, columns, inner, positions = (
        boxes[:, list(chosen)].prod(axis=1)
        for chosen in (axes.groups, axes.rows, axes.columns, axes.inner, axes.positions)
    )
    in_dtype = spec.inputs[0].dtype
    best = _vector_cycles(chip, in_dtype, groups * rows * columns, inner, positions)
    unit = chip.matrix_unit(in_dtype, "f32" if hands_on_rounded(spec) else spec.acc_dtype)
    if unit is None or spec.inputs[1].dtype != in_dtype:
        return best
    best = np.minimum(best, _engine_cycles(chip, unit, groups, rows, columns, inner, positions))
    if axes.positions:
        return best
    return np.minimum(best, _engine_cycles(chip, unit, groups, columns, rows, inner, positions))


def _vector_cycles(chip: ChipSpec, in_dtype: str, outputs: Ints, inner: Ints, positions: Ints) -> Ints:
    """Return the cycles without the matrix engine: dot products, or several outputs per vector, whatever is less."""
    width = chip.vector_width_f16 if in_dtype == "f16" else chip.vector_width_f32
    workers = chip.n_workers
    dots = -(-outputs // workers) * (DOT_OVERHEAD + positions * (-(-inner // width) + 1))
    lanes = -(-outputs // (workers * width)) * (DOT_OVERHEAD + 2 * positions * inner)
    return VECTOR_OVERHEAD + workers * (WORKER_OVERHEAD + np.minimum(dots, lanes))


def worker_cycles(unit: MatrixUnit, rows: Ints, *, is_first: bool) -> Ints:
    """Return the cycles of one worker for its rows of one block; `is_first` where the accumulators are zeroed."""
    is_f32 = unit.in_dtype == "f32"
    if is_f32:
        small = np.select([rows == 0, rows == 1, rows == 2], [24, 47, 46], 0)
        added = 2 + 8 * rows if is_first else 2
    else:
        small = np.select([rows == 0, rows == 1, rows == 2], [20, 31, 40], 0)
        added = 1 if is_first else 2
    large = (46 if is_f32 else 36) + unit.row_cycles * (rows - 3)
    # The constants are an IPU's, for up to three rows: a slower engine takes longer for each of these rows too.
    slower = max(unit.row_cycles - (IPU_ROW_CYCLES_F32 if is_f32 else IPU_ROW_CYCLES), 0)
    return np.where(rows < 3, small, large) + slower * np.minimum(rows, 3) + added - 7


def _engine_cycles(
    chip: ChipSpec, unit: MatrixUnit, groups: Ints, rows: Ints, columns: Ints, inner: Ints, positions: Ints
) -> Ints:
    """Return the cycles of the 1x1 convolution vertex; see the module's docstring."""
    most = -(-rows // chip.n_workers)
    least = rows // chip.n_workers
    block: dict[bool, Ints] = {}
    for is_first in (False, True):
        slowest = chip.n_workers * worker_cycles(unit, most, is_first=is_first)
        fastest = chip.n_workers * worker_cycles(unit, least, is_first=is_first) + 14
        block[is_first] = np.maximum(slowest, fastest)
    n_in = positions * -(-inner // unit.in_block)
    n_out = -(-columns // unit.out_block)
    further = (n_in - 1) * (15 + n_out * (25 + unit.load_cycles + block[False]))
    first = n_out * (25 + unit.load_cycles + block[True])
    zeroing = (
        chip.n_workers * (7 + 3 * (n_in * groups - 1)) if unit.in_dtype == "f16" else np.zeros_like(groups)
    )
    return 50 + zeroing + groups * (24 + further + first)
