"""Cycles of everything that is not a matrix product on one core: elementwise, reductions, pooling, gather, epilogues.

Work is counted per four elements ("quad"): loads, each scalar operation at its vector rate, stores in the shadow of
arithmetic. Rates are poplibs' (ipu timing reference, section 5.2); workers share the elements evenly. Where vectors are
wider than an IPU's, several quads make a group that is loaded and computed at once, so much faster.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.dtypes import is_float, size_bytes
from t10.core.expression import OperatorSpec
from t10.core.scalar import ScalarFunction

SUPERVISOR_CYCLES = 11
WORKER_CYCLES = 26
OUTPUT_CYCLES = 12
"""Per output of a reduction: fold the lanes, store, next address."""
SLICE_CYCLES = 19
"""Per slice that a gather copies: look the index up, form addresses."""

F32_QUAD_CYCLES = {
    "arith.divf": 18, "arith.remf": 60, "math.exp": 10, "math.exp2": 10, "math.expm1": 14, "math.log": 22,
    "math.log2": 22, "math.log1p": 26, "math.tanh": 22, "math.sqrt": 18, "math.rsqrt": 14, "math.erf": 160,
    "math.powf": 1240, "math.fpowi": 40, "math.sin": 400, "math.cos": 400, "math.floor": 8, "math.ceil": 8,
    "math.round": 12, "math.roundeven": 12,
}  # fmt: skip
F16_QUAD_CYCLES = {
    "arith.divf": 19, "arith.remf": 60, "math.exp": 3, "math.exp2": 3, "math.expm1": 5, "math.log": 3,
    "math.log2": 3, "math.log1p": 5, "math.tanh": 3, "math.sqrt": 22, "math.rsqrt": 18, "math.erf": 50,
    "math.powf": 1300, "math.fpowi": 40, "math.sin": 100, "math.cos": 100, "math.floor": 8, "math.ceil": 8,
    "math.round": 12, "math.roundeven": 12,
}  # fmt: skip
INTEGER_QUAD_CYCLES = {"arith.divsi": 1100, "arith.divui": 1100, "arith.remsi": 1100, "arith.remui": 1100}
INTEGER_DEFAULT = 20
SOFT_DOUBLE_QUAD_CYCLES = 800
FREE = frozenset({"const", "arith.bitcast"})
IPU_WIDTH_F16, IPU_WIDTH_F32 = 4, 2
"""Elements per vector operation where the rates above hold."""
Work = tuple[tuple[str, int], ...]
"""Types, and cycles per quad that an IPU takes for operations on them."""


def quad_cycles(opcode: str, dtype: str) -> int:
    """Return the cycles of one scalar operation on four elements of `dtype`, without loads and stores."""
    if opcode in FREE:
        return 0
    if dtype == "f64":
        return SOFT_DOUBLE_QUAD_CYCLES
    if dtype == "f16":
        return F16_QUAD_CYCLES.get(opcode, 1)
    if is_float(dtype):
        return F32_QUAD_CYCLES.get(opcode, 2)
    return 2 if dtype == "i1" else INTEGER_QUAD_CYCLES.get(opcode, INTEGER_DEFAULT)


def load_cycles(dtype: str) -> int:
    """Return the cycles that loading four elements takes: eight bytes each."""
    return max(1, size_bytes(dtype) // 2)


def _widening(chip: ChipSpec, dtype: str) -> Fraction:
    """Return how much wider vectors of a type are than an IPU's: up to two bytes as those of f16, others as of f32."""
    if size_bytes(dtype) <= size_bytes("f16"):
        return Fraction(chip.vector_width_f16, IPU_WIDTH_F16)
    return Fraction(chip.vector_width_f32, IPU_WIDTH_F32)


def group_elements(chip: ChipSpec, work: Work) -> int:
    """Return how many elements a worker takes at once: whole vectors of all types, whole quads."""
    return 4 * max([1, *(ceil(_widening(chip, dtype)) for dtype, _ in work)])


def group_cycles(chip: ChipSpec, work: Work) -> int:
    """Return the cycles of some work on one group of elements."""
    quad = sum((cycles / _widening(chip, dtype) for dtype, cycles in work), Fraction(0))
    return max(1, ceil(quad * group_elements(chip, work) / 4))


@lru_cache(maxsize=4096)
def function_work(function: ScalarFunction, dtypes: tuple[str, ...]) -> Work:
    """Return the work of a function, its inputs' loads included."""
    loads = [(dtype, load_cycles(dtype)) for dtype in dtypes]
    return (*loads, *((op.dtype, quad_cycles(op.opcode, op.dtype)) for op in function.ops))


def elementwise_cycles(
    chip: ChipSpec, function: ScalarFunction, dtypes: tuple[str, ...], n_elements: Ints
) -> Ints:
    """Return the cycles in which a core applies `function` to `n_elements` elements."""
    work = function_work(function, dtypes)
    loops = -(-n_elements // (group_elements(chip, work) * chip.n_workers)) * group_cycles(chip, work)
    return SUPERVISOR_CYCLES + chip.n_workers * (WORKER_CYCLES + loops)


def combine_work(spec: OperatorSpec) -> Work:
    """Return the work of contributions that enter their accumulators; none where nothing is combined."""
    if spec.combine == "none":
        return ()
    opcode = "arith.addf" if is_float(spec.acc_dtype) else "arith.addi"
    return ((spec.acc_dtype, quad_cycles(opcode, spec.acc_dtype)),)


def box_cycles(chip: ChipSpec, spec: OperatorSpec, boxes: Ints) -> Ints:
    """Return the cycles of every box of an elementwise, reducing or pooling operator, shape (candidates,)."""
    dtypes = tuple(operand.dtype for operand in spec.inputs)
    work = (*function_work(spec.body, dtypes), *combine_work(spec))
    n_points = boxes.prod(axis=1)
    loops = -(-n_points // (group_elements(chip, work) * chip.n_workers)) * group_cycles(chip, work)
    if spec.reduction_axes:
        n_outputs = n_points // boxes[:, list(spec.reduction_axes)].prod(axis=1)
        loops = loops + -(-n_outputs // chip.n_workers) * OUTPUT_CYCLES
    return SUPERVISOR_CYCLES + chip.n_workers * (WORKER_CYCLES + loops)


def gather_cycles(chip: ChipSpec, spec: OperatorSpec, boxes: Ints) -> Ints:
    """Return the cycles of every box of an operator with selectors, shape (candidates,).

    Indices are taken to be spread evenly, so a box that holds 1/p of the selected axis copies 1/p of the slices.
    """
    selected = [selector.axis for selector in spec.selectors]
    others = [a for a in range(len(spec.axes)) if a not in selected]
    index_axes = sorted({a for o in spec.inputs if not o.axes & set(selected) for a in o.axes})
    n_indices = boxes[:, index_axes].prod(axis=1)
    slice_points = boxes[:, others].prod(axis=1) // np.maximum(n_indices, 1)
    n_selected = np.array([spec.axes[a].extent for a in selected]).prod()
    hits = -(-(n_indices * boxes[:, selected].prod(axis=1)) // n_selected)
    hits = np.minimum(np.maximum(hits, 1), n_indices)
    size = size_bytes(spec.acc_dtype)
    width = chip.vector_width_f16 if size <= 2 else max(chip.vector_width_f32 * 4 // size, 1)
    per_slice = SLICE_CYCLES + 2 * -(-slice_points // width)
    loops = -(-hits // chip.n_workers) * per_slice + -(-n_indices // chip.n_workers) * 8
    return SUPERVISOR_CYCLES + chip.n_workers * (WORKER_CYCLES + loops)
