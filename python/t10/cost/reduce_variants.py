"""How reductions run (`t10.codelets.reduce`): along rows, across columns, point by point, or in pieces.

Workers share outputs, or vectors of outputs. Inside, `outer` loops surround an inner one of so many `steps`; short ones
are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.tile import N_WORKERS
from t10.cost.kernel_variants import (
    Boxes,
    Column,
    KernelVariant,
    always,
    both,
    busiest,
    chosen,
    either,
)
from t10.cost.walks import WalkLoop, axis_order, innermost, united_loops

ACCESS_BYTES = 8
UNROLLED = (4, 16)
"""Steps up to which reductions may be written out, whatever a step takes, and where a step takes one slot."""
LEAST_REPEATED = 4
PARTS = ("least", "less", "few", "many")
GUESS = {"one": 150.0, "outputs": 90.0, "outers": 36.0, "steps": 6.0, "points": 6.0}


@dataclass(frozen=True, slots=True)
class _ReductionLoops:
    """A reduction's loops, innermost first, over outputs and contributions, and the bytes of all operands' elements."""

    outputs: tuple[WalkLoop, ...]
    contributions: tuple[WalkLoop, ...]
    sizes: tuple[int, ...]

    @property
    def n_inputs(self) -> int:
        """Return the number of inputs."""
        return len(self.sizes) - 1


@dataclass(frozen=True, slots=True)
class _Loops:
    """A variant's loops, each (n,): outputs of the busiest worker, outer loops, inner steps, if some are left over."""

    when: Column
    outputs: Column
    outers: Column
    steps: Column
    left: Column

    def features(self) -> dict[str, Column]:
        """Return what their time is a linear function of."""
        return {
            "one": self.outputs * 0 + 1,
            "outputs": self.outputs,
            "outers": self.outputs * self.outers,
            "steps": self.outputs * self.outers * self.steps,
            "left": self.outputs * self.outers * self.left,
            "left outputs": self.outputs * self.left,
        }


def reduce_variants(spec: OperatorSpec, boxes: Boxes) -> list[KernelVariant]:
    """Return the variants of a reduction."""
    nest = cache(partial(_nest, spec, boxes))
    dtypes = {*(operand.dtype for operand in spec.inputs), spec.acc_dtype}
    result: list[KernelVariant] = []
    if dtypes <= {"f16", "f32"}:
        widest = 4 if "f16" in dtypes else 2
        is_plain = len(spec.inputs) == 1 and all(op.opcode == "arith.extf" for op in spec.body.ops)
        result += _rows(nest, widest)
        result += _columns(nest, widest, is_plain=is_plain)
    result += _loops("points", partial(_points, nest))
    guess = {**GUESS, "one": 330.0, "points": 0.0, "steps": 6.0 if dtypes <= {"f16", "f32"} else 12.0}
    pieces = cache(partial(_pieces, nest))
    result.append(KernelVariant("pieces", lambda: pieces()[0], lambda: pieces()[1], guess))
    return result


def _nest(spec: OperatorSpec, boxes: Boxes) -> _ReductionLoops:
    """Return the loops of a reduction."""
    operands = (*spec.inputs, spec.output)
    reduced = frozenset(spec.reduction_axes)
    order = [axis for operand in spec.inputs for axis in axis_order(operand) if axis in reduced]
    return _ReductionLoops(
        tuple(united_loops(boxes, axis_order(spec.output), operands)),
        tuple(united_loops(boxes, tuple(dict.fromkeys(order)), operands)),
        (*(size_bytes(operand.dtype) for operand in spec.inputs), size_bytes(spec.acc_dtype)),
    )


def _rows(nest: Callable[[], _ReductionLoops], widest: int) -> list[KernelVariant]:
    """Return the variants along rows: lanes are neighbours of one sum. As many lanes as can be."""

    @cache
    def can(lanes: int) -> Column:
        own = nest()
        inner, rest = innermost(own.contributions)
        found = both(_is_contiguous(inner, own.n_inputs), inner.extent >= lanes)
        return both(found, _is_aligned(inner, [*own.outputs, *rest], own.sizes[:-1], lanes))

    def loops(lanes: int) -> _Loops:
        inner, rest = innermost(nest().contributions)
        when = both(can(lanes), np.logical_not(can(4))) if lanes < widest else can(lanes)
        others = _product([loop.extent for loop in rest])
        left = chosen(inner.extent % lanes > 0, 1, 0)
        return _Loops(when, _shared_outputs(nest()), others, inner.extent // lanes, left)

    result: list[KernelVariant] = []
    for lanes in (4, 2) if widest == 4 else (2,):
        result += _loops(f"rows of {lanes}", partial(loops, lanes))
    return result


def _columns(nest: Callable[[], _ReductionLoops], widest: int, *, is_plain: bool) -> list[KernelVariant]:
    """Return the variants across columns: lanes are outputs. Twice as many as fill eight bytes may be faster."""

    @cache
    def can(lanes: int) -> Column:
        own = nest()
        column, rest = innermost(own.outputs)
        found = both(_is_contiguous(column, own.n_inputs), column.steps[-1] == 1)
        return both(found, _is_aligned(column, [*rest, *own.contributions], own.sizes, lanes))

    def loops(lanes: int) -> _Loops:
        column, rest = innermost(nest().outputs)
        inner, outers = _largest(nest().contributions)
        when = both(can(lanes), np.logical_not(can(4))) if lanes < widest else can(lanes)
        vectors = busiest([loop.extent for loop in rest] + [-(-column.extent // lanes)])
        return _Loops(when, vectors, outers, inner, chosen(column.extent % lanes > 0, 1, 0))

    result: list[KernelVariant] = []
    for lanes in (*((2 * widest,) if is_plain else ()), *((4, 2) if widest == 4 else (2,))):
        step_cycles = 12.0 if lanes > widest else 6.0
        result += _loops(f"columns of {lanes}", partial(loops, lanes), step_cycles)
    return result


def _points(nest: Callable[[], _ReductionLoops]) -> _Loops:
    """Return the loops of the variant point by point."""
    inner, outers = _largest(nest().contributions)
    return _Loops(always(inner), _shared_outputs(nest()), outers, inner, inner * 0)


def _shared_outputs(nest: _ReductionLoops) -> Column:
    """Return the outputs of the busiest worker; where outputs lie in words together, workers take pairs of them."""
    per_word = max(4 // nest.sizes[-1], 1)
    extents = [loop.extent for loop in nest.outputs]
    if per_word == 1:
        return busiest(extents)
    total = _product(extents)
    result = total
    for loop in nest.outputs:
        unit = chosen(loop.steps[-1] % per_word == 0, 1, per_word)
        share = np.minimum(-(-loop.extent // (N_WORKERS * unit)) * unit, loop.extent)
        result = np.minimum(result, share * (total // loop.extent))
    return result


def _is_contiguous(loop: WalkLoop, n_inputs: int) -> Column:
    """Return whether all inputs stand still along a loop or are contiguous, one of them at least."""
    steps = loop.steps[:n_inputs]
    return both(both(*(step <= 1 for step in steps)), either(*(step == 1 for step in steps)))


def _is_aligned(along: WalkLoop, others: Sequence[WalkLoop], sizes: Sequence[int], lanes: int) -> Column:
    """Return whether every vector along a loop begins at a multiple of what one access takes."""
    result = always(along.extent)
    for number, size in enumerate(sizes):
        unit = max(min(ACCESS_BYTES, lanes * size) // size, 1)
        for loop in others:
            step = loop.steps[number]
            result = both(result, either(loop.extent == 1, along.steps[number] == 0, step % unit == 0))
    return result


def _loops(name: str, made: Callable[[], _Loops], step_cycles: float = 6.0) -> list[KernelVariant]:
    """Return a variant by the length of its loops: written out, straight steps within loops, or a loop of steps."""
    loops = cache(made)
    features = cache(lambda: loops().features())
    guess = {**GUESS, "steps": step_cycles}
    return [
        KernelVariant(f"{name}, {part}", partial(_is_part, loops, part), features, guess, name)
        for part in PARTS
    ]


def _is_part(loops: Callable[[], _Loops], part: str) -> Column:
    """Return where loops are of a length and can be taken."""
    one = loops()
    steps = one.outers * one.steps
    is_long = steps > UNROLLED[1]
    if part == "least":
        condition = steps <= UNROLLED[0]
    elif part == "less":
        condition = both(steps > UNROLLED[0], steps <= UNROLLED[1])
    else:
        is_many = one.steps >= LEAST_REPEATED
        condition = both(is_long, is_many if part == "many" else np.logical_not(is_many))
    return both(one.when, condition)


def _pieces(made: Callable[[], _ReductionLoops]) -> tuple[Column, dict[str, Column]]:
    """Return where and how a reduction runs in pieces: parts of few long outputs are reduced, then the parts."""
    nest = made()
    outputs = _product([loop.extent for loop in nest.outputs])
    extent, others = _largest(nest.contributions)
    n = extent * 0 + 1
    for parts in range(2, N_WORKERS + 1):
        n = chosen(both(extent % parts == 0, extent >= 2 * parts), parts, n)
    share, length = -(-(outputs * n) // N_WORKERS), extent // n
    features = {
        "one": outputs * 0 + 1,
        "outputs": share,
        "outers": share * others,
        "steps": share * others * (length // 2),
        "quads": share * others * (length // 4),
        "points": share * others * chosen(length % 2 == 1, length, 0),
        "final": outputs,
    }
    return both(n > 1, outputs < 2 * N_WORKERS), features


def _product(columns: Sequence[Column]) -> Column:
    result = columns[0]
    for column in columns[1:]:
        result = result * column
    return result


def _largest(loops: Sequence[WalkLoop]) -> tuple[Column, Column]:
    """Return the extent of the longest loop, and the product of the others'."""
    result = loops[0].extent
    for loop in loops[1:]:
        result = np.maximum(result, loop.extent)
    return result, _product([loop.extent for loop in loops]) // np.maximum(result, 1)
