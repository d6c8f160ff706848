"""Classes of operators: those that run the same code on boxes of any size, and share one fitted model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from math import prod
from random import Random
from typing import Literal

import numpy as np

from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.scalar import ScalarFunction
from t10.profile.features import (
    BLOCKS,
    Boxes,
    Column,
    epilogue_features,
    epilogue_regimes,
    loop_features,
    loop_regimes,
    matrix_features,
    matrix_regimes,
    product,
)
from t10.profile.roles import LoopRoles, MatrixRoles, epilogue_roles, loop_roles, matrix_roles
from t10.profile.work import box_bytes

Step = Literal["sub_task", "epilogue", "combine"]
"""Combining is a sub-task whose output holds what it adds to already."""
LARGEST_EXTENT = 512
BOXES_PER_REGIME = 24
SPARE_DRAWS = 12
"""For every box that is wanted so many more are drawn, to find those of rare regimes among them."""
MOST_MISSES = 2000
WINDOWS = (1, 2, 3, 3, 5, 7)
LARGEST_BYTES = 1 << 18
MOST_POINTS = 1 << 20
EVEN = 8
PART_EVEN, PART_PAIRS = 7 / 8, 15 / 16
LEAST_POINTS = 16


@dataclass(frozen=True, slots=True)
class OperatorClass:
    """A compute step (its sub-task or its epilogue) of operators like `spec`; `key` names it in fitted tables."""

    spec: OperatorSpec
    step: Step
    key: str
    title: str
    matrix: MatrixRoles | None
    loops: LoopRoles

    def features(self, boxes: Boxes) -> dict[str, Column]:
        """Return what the time of a step over boxes is a linear function of, by name."""
        if self.matrix is not None:
            return matrix_features(self.spec, self.matrix, boxes)
        if self.step == "epilogue":
            return self.of_runs(*self._runs(boxes))
        return loop_features(self.spec, self.loops, boxes)

    def regimes(self, boxes: Boxes) -> list[tuple[str, Column]]:
        """Return ranges of shapes that run code of different kinds, by name with conditions (n,).

        The first whose condition holds counts; the last one's always does.
        """
        if self.matrix is not None:
            return matrix_regimes(self.spec, self.matrix, boxes)
        if self.step == "epilogue":
            return self.run_regimes(*self._runs(boxes))
        return loop_regimes(self.spec, self.loops, boxes)

    def of_runs(self, points: Column, run: Column) -> dict[str, Column]:
        """Return the features of an epilogue on so many elements in rows of so many."""
        return epilogue_features(self.spec, points, run)

    def run_regimes(self, points: Column, run: Column) -> list[tuple[str, Column]]:
        """Return the regimes of an epilogue on so many elements in rows of so many; see `regimes`."""
        return epilogue_regimes(self.spec, points, run)

    def _runs(self, boxes: Boxes) -> tuple[Column, Column]:
        """Return the elements of an epilogue over boxes, and how many of them lie in a row."""
        return product(boxes, (*self.loops.run, *self.loops.rows)), product(boxes, self.loops.run)


def class_of(spec: OperatorSpec, step: Step) -> OperatorClass:
    """Return the class of an operator's sub-task or epilogue; extents, names and the number of axes do not count."""
    matrix = matrix_roles(spec) if step == "sub_task" and _has_engine(spec) else None
    loops = epilogue_roles(spec) if step == "epilogue" else loop_roles(spec)
    signature = _matrix_signature(spec, matrix) if matrix is not None else _loop_signature(spec, step, loops)
    key = sha256(repr(signature).encode()).hexdigest()[:16]
    return OperatorClass(spec, step, key, _title(spec, step, matrix), matrix, loops)


def _has_engine(spec: OperatorSpec) -> bool:
    types = {operand.dtype for operand in spec.inputs}
    return len(types) == 1 and (next(iter(types)), spec.acc_dtype) in BLOCKS


def _title(spec: OperatorSpec, step: Step, matrix: MatrixRoles | None) -> str:
    types = " ".join(dict.fromkeys(operand.dtype for operand in spec.inputs))
    if step == "epilogue":
        opcodes = " ".join(op.opcode.split(".")[-1] for op in (spec.epilogue.ops if spec.epilogue else ()))
        return f"epilogue {spec.acc_dtype} to {spec.output.dtype}: {opcodes}"
    if matrix is not None:
        parts = ["product", *("windows" for _ in matrix.sums[:1]), *("groups" for _ in matrix.outs[:1])]
        return f"{' '.join(parts)} {types} to {spec.acc_dtype}"
    opcodes = " ".join(dict.fromkeys(op.opcode.split(".")[-1] for op in spec.body.ops))
    kind = "combine" if step == "combine" else spec.kind
    return f"{kind} {types} to {spec.acc_dtype}, {spec.combine}: {opcodes or 'copy'}"


def _matrix_signature(spec: OperatorSpec, roles: MatrixRoles) -> tuple[object, ...]:
    """Return what code on the matrix engine depends on: types, and which loops there are."""
    loops = (len(roles.rows) > 1, bool(roles.outs), bool(roles.sums))
    # An inner axis that is not contiguous in both inputs must be packed first.
    lies = tuple(_is_last(operand, roles.inner) for operand in spec.inputs)
    return ("matrix", spec.inputs[0].dtype, spec.acc_dtype, loops, lies)


def _is_last(operand: Operand, axes: AxisSizes) -> bool:
    """Return whether an operand's last dim is the last of some axes."""
    if not axes or not operand.dims:
        return False
    last = operand.dims[-1]
    return last.is_simple and last.terms[0].axis == axes[-1]


def _loop_signature(spec: OperatorSpec, step: Step, roles: LoopRoles) -> tuple[object, ...]:
    """Return what loops depend on: the body, types, and which operands vary along which roles."""
    if step == "epilogue":
        inputs, function, combine = spec.epilogue_inputs, spec.epilogue, "none"
    else:
        inputs, function, combine = spec.inputs, spec.body, spec.combine
    operands = [(operand.dtype, _varies(operand, roles)) for operand in (*inputs, spec.output)]
    selectors = [_function(selector.index) for selector in spec.selectors]
    return (step, spec.acc_dtype, combine, operands, _function(function), selectors)


def _varies(operand: Operand, roles: LoopRoles) -> tuple[object, ...]:
    """Return how an operand varies along every role: along all, some or none of its axes, and what its last dim is."""
    result: list[object] = []
    for axes in (roles.run, roles.rows, roles.folded, roles.summed, roles.selected):
        own = sum(axis in operand.axes for axis in axes)
        result.append("all" if axes and own == len(axes) else "none" if not own else "some")
    last = operand.dims[-1] if operand.dims else None
    ends = last.terms[0].axis if last is not None and last.is_simple else -1
    groups = (roles.run, roles.rows, roles.folded, roles.summed, roles.selected)
    result.append([number for number, axes in enumerate(groups) if ends in axes])
    return tuple(result)


def _function(function: ScalarFunction | None) -> tuple[object, ...]:
    if function is None:
        return ()
    ops = [(op.opcode, op.operands, op.dtype, op.attribute) for op in function.ops]
    return (function.n_inputs, ops, function.result)


def random_boxes(one: OperatorClass, seed: int, n: int) -> list[AxisSizes]:
    """Return about `n` different boxes whose operands fit a core, sizes of every magnitude.

    Axes along which operands are contiguous are mostly cut in whole words, as planners do: seven in eight are multiples
    of eight, half of the others of two. Of regimes that hardly occur among the first `n` some more boxes are drawn, so
    that each of them can be fitted and tested.
    """
    rng = Random(f"{seed} {one.key}")
    drawn = list(dict.fromkeys(islice(_drawn(one, rng), (1 + SPARE_DRAWS) * n)))
    counts: dict[int, int] = {}
    result: list[AxisSizes] = []
    for number, (box, regime) in enumerate(zip(drawn, _regime_numbers(one, drawn), strict=True)):
        if number < n or counts.get(regime, 0) < BOXES_PER_REGIME:
            result.append(box)
            counts[regime] = counts.get(regime, 0) + 1
    return result


def _drawn(one: OperatorClass, rng: Random) -> Iterator[AxisSizes]:
    """Yield boxes whose operands fit a core; ends where hardly any does."""
    spec = one.spec
    windows, lines = _window_axes(spec), _line_axes(one)
    misses = 0
    while misses < MOST_MISSES:
        box = tuple(
            1
            if one.step == "epilogue" and axis.kind == "reduction"
            else _extent(rng, a in windows, a in lines, len(spec.axes))
            for a, axis in enumerate(spec.axes)
        )
        if LEAST_POINTS <= prod(box) <= MOST_POINTS and box_bytes(spec, box) <= LARGEST_BYTES:
            misses = 0
            yield box
        else:
            misses += 1


def _regime_numbers(one: OperatorClass, boxes: list[AxisSizes]) -> list[int]:
    """Return the number of every box's regime."""
    if not boxes:
        return []
    conditions = [condition for _, condition in one.regimes(np.array(boxes, np.int64))]
    return np.argmax(np.stack([np.asarray(each, np.bool_) for each in conditions]), axis=0).tolist()


def _window_axes(spec: OperatorSpec) -> frozenset[int]:
    """Return reduction axes that slide over another one: window positions."""
    return frozenset(
        axis
        for operand in spec.inputs
        for dim in operand.dims
        if len(dim.terms) > 1
        for axis in dim.axes
        if axis in spec.reduction_axes
    )


def _line_axes(one: OperatorClass) -> frozenset[int]:
    """Return the axes along which operands of a step are contiguous: their last dims."""
    spec = one.spec
    inputs = spec.epilogue_inputs if one.step == "epilogue" else spec.inputs
    last = (operand.dims[-1] for operand in (*inputs, spec.output) if operand.dims)
    return frozenset(dim.terms[0].axis for dim in last if dim.is_simple)


def _extent(rng: Random, is_window: bool, is_line: bool, n_axes: int) -> int:
    """Return a random extent: its magnitude evenly spread, small ones more often where there are many axes."""
    if is_window:
        return rng.choice(WINDOWS)
    size = LARGEST_EXTENT ** (rng.random() ** max(n_axes / 3, 1.0))
    extent = max(round(size), 1)
    if not is_line:
        return extent
    kind = rng.random()
    step = EVEN if kind < PART_EVEN else 2 if kind < PART_PAIRS else 1
    return max(extent // step, 1) * step
