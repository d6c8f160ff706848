"""Classes of operators: those that run the same code on boxes of any size, and share one fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Literal

from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.scalar import ScalarFunction
from t10.profile.features import BLOCKS, Boxes, Column, loop_features, matrix_features
from t10.profile.roles import LoopRoles, MatrixRoles, epilogue_roles, loop_roles, matrix_roles
from t10.profile.work import box_bytes

Step = Literal["sub_task", "epilogue"]
LARGEST_EXTENT = 512
LARGEST_WINDOW = 7
LARGEST_BYTES = 1 << 18
MOST_POINTS = 1 << 20
EVEN = 8
PART_EVEN = 0.7


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
        return loop_features(self.spec, self.loops, boxes, is_epilogue=self.step == "epilogue")


def class_of(spec: OperatorSpec, step: Step) -> OperatorClass:
    """Return the class of an operator's sub-task or epilogue; extents and names do not count."""
    text = _structure(spec, step)
    matrix = matrix_roles(spec) if step == "sub_task" and _has_engine(spec) else None
    loops = epilogue_roles(spec) if step == "epilogue" else loop_roles(spec)
    title = _title(spec, step, matrix)
    return OperatorClass(spec, step, sha256(text.encode()).hexdigest()[:16], title, matrix, loops)


def _has_engine(spec: OperatorSpec) -> bool:
    types = {operand.dtype for operand in spec.inputs}
    return len(types) == 1 and (next(iter(types)), spec.acc_dtype) in BLOCKS


def _title(spec: OperatorSpec, step: Step, matrix: MatrixRoles | None) -> str:
    types = " ".join(dict.fromkeys(operand.dtype for operand in spec.inputs))
    if step == "epilogue":
        opcodes = " ".join(op.opcode.split(".")[-1] for op in (spec.epilogue.ops if spec.epilogue else ()))
        return f"epilogue {spec.acc_dtype} to {spec.output.dtype}: {opcodes}"
    opcodes = " ".join(dict.fromkeys(op.opcode.split(".")[-1] for op in spec.body.ops))
    way = "matrix engine" if matrix is not None else spec.combine
    return f"{spec.kind} {types} to {spec.acc_dtype}, {way}: {opcodes}"


def _structure(spec: OperatorSpec, step: Step) -> str:
    """Return all that code depends on, as text."""
    kinds = "".join(axis.kind[0] for axis in spec.axes)
    if step == "epilogue":
        operands = (*spec.epilogue_inputs, spec.output)
        return repr((step, kinds, spec.acc_dtype, [_operand(o) for o in operands], _function(spec.epilogue)))
    operands = (*spec.inputs, spec.output)
    selectors = [(s.axis, _function(s.index)) for s in spec.selectors]
    parts = [_operand(o) for o in operands]
    return repr((step, kinds, parts, spec.acc_dtype, spec.combine, _function(spec.body), selectors))


def _operand(operand: Operand) -> tuple[object, ...]:
    return (operand.dtype, [[(t.axis, t.coefficient) for t in dim.terms] for dim in operand.dims])


def _function(function: ScalarFunction | None) -> tuple[object, ...]:
    if function is None:
        return ()
    ops = [(op.opcode, op.operands, op.dtype, op.attribute) for op in function.ops]
    return (function.n_inputs, ops, function.result)


def random_boxes(one: OperatorClass, seed: int, n: int) -> list[AxisSizes]:
    """Return up to `n` different boxes whose operands fit a core, sizes of every magnitude, most of them even."""
    spec = one.spec
    rng = Random(f"{seed} {one.key}")
    windows = _window_axes(spec)
    found: dict[AxisSizes, None] = {}
    for _ in range(100 * n):
        if len(found) == n:
            break
        box = tuple(
            1
            if one.step == "epilogue" and axis.kind == "reduction"
            else _extent(rng, LARGEST_WINDOW if a in windows else LARGEST_EXTENT, len(spec.axes))
            for a, axis in enumerate(spec.axes)
        )
        points = 1
        for extent in box:
            points *= extent
        if points <= MOST_POINTS and box_bytes(spec, box) <= LARGEST_BYTES:
            found[box] = None
    return list(found)


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


def _extent(rng: Random, largest: int, n_axes: int) -> int:
    """Return a random extent: its magnitude evenly spread, small ones more often where there are many axes."""
    size = largest ** (rng.random() ** max(n_axes / 3, 1.0))
    extent = max(round(size), 1)
    if extent > EVEN and rng.random() < PART_EVEN:
        extent -= extent % EVEN
    return min(extent, largest)
