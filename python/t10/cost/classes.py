"""Classes of operators: those that run the same code on boxes of any size, and share one fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

import numpy as np

from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.scalar import ScalarFunction
from t10.cost.gather_variants import gather_variants
from t10.cost.kernel_variants import Boxes, Column, KernelVariant, always, narrowed, product
from t10.cost.matrix_variants import BLOCKS, matrix_variants
from t10.cost.reduce_variants import reduce_variants
from t10.cost.roles import LoopRoles, MatrixRoles, epilogue_roles, loop_roles, matrix_roles
from t10.cost.vector_variants import Rows, lines_of, task_variants, vector_variants

Step = Literal["sub_task", "epilogue", "combine"]
"""Combining is a sub-task whose output holds what it adds to already."""


@dataclass(frozen=True, slots=True)
class OperatorClass:
    """A compute step (its sub-task or its epilogue) of operators like `spec`; `key` names it in fitted tables.

    Operators of one class whose `layout` is the same, too, take the same time on the same boxes: axes have the same
    numbers.
    """

    spec: OperatorSpec
    step: Step
    key: str
    layout: str
    title: str
    matrix: MatrixRoles | None
    loops: LoopRoles

    @property
    def types(self) -> str:
        """Return the types of an operator's inputs and accumulator."""
        return " ".join([*dict.fromkeys(operand.dtype for operand in self.spec.inputs), self.spec.acc_dtype])

    def variants(self, boxes: Boxes) -> list[KernelVariant]:
        """Return the kernel variants of a step over boxes."""
        if self.step == "epilogue":
            return self.variants_of_runs(*self.runs(boxes))
        if self.spec.selectors:
            return gather_variants(self.spec, self.loops, boxes)
        if not self.spec.reduction_axes:
            return task_variants(self.spec, boxes)
        terms = product(boxes, self.spec.reduction_axes)
        engine = matrix_variants(self.spec, boxes) if self.matrix is not None else []
        # A single term is no sum: it is added to, or becomes, its output as in an elementwise task.
        single = [
            narrowed(variant, lambda: terms == 1, "single, ") for variant in task_variants(self.spec, boxes)
        ]
        return [
            *single,
            *(
                narrowed(variant, lambda: terms > 1)
                for variant in (*engine, *reduce_variants(self.spec, boxes))
            ),
        ]

    def variants_of_runs(self, points: Column, run: Column) -> list[KernelVariant]:
        """Return the variants of an epilogue on so many elements in rows of so many."""
        spec = self.spec
        operands = (spec.output, *spec.epilogue_inputs, spec.output)
        dtypes = [spec.acc_dtype, *(operand.dtype for operand in spec.epilogue_inputs), spec.output.dtype]
        lines = lines_of(operands, dtypes, frozenset(self.loops.run))
        rows = Rows(run, (np.maximum(-(-points // run), 1),), always(run))
        return vector_variants(lines, lambda: rows)

    def runs(self, boxes: Boxes) -> tuple[Column, Column]:
        """Return the elements of an epilogue over boxes, and how many of them lie in a row."""
        return product(boxes, (*self.loops.run, *self.loops.rows)), product(boxes, self.loops.run)


def class_of(spec: OperatorSpec, step: Step) -> OperatorClass:
    """Return the class of an operator's sub-task or epilogue; extents, names and the number of axes do not count."""
    matrix = matrix_roles(spec) if step == "sub_task" and _has_engine(spec) else None
    loops = epilogue_roles(spec) if step == "epilogue" else loop_roles(spec)
    signature = _matrix_signature(spec, matrix) if matrix is not None else _loop_signature(spec, step, loops)
    key = sha256(repr(signature).encode()).hexdigest()[:16]
    return OperatorClass(spec, step, key, _layout(spec), _title(spec, step, matrix), matrix, loops)


def _layout(spec: OperatorSpec) -> str:
    """Return a digest of which axis of an operator lies where."""
    operands = (*spec.inputs, spec.output, *spec.epilogue_inputs)
    dims = [[[(term.axis, term.coefficient) for term in dim.terms] for dim in o.dims] for o in operands]
    kinds = [axis.kind for axis in spec.axes]
    return sha256(repr((dims, kinds)).encode()).hexdigest()[:16]


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
