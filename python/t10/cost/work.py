"""What a core does for a box of an operator, as a task: the operands' partitions are exactly as large as the box."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import lcm, prod

from t10.codelets.body.picks import picking_axes
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.geometry import partition_shape
from t10.core.products import hands_on_rounded, summed, with_unread
from t10.core.runs import epilogue_run_axes
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand
from t10.core.task_nest import alignment_bytes, axis_strides, simplified, uses_position
from t10.core.tile import WIDE_BYTES
from t10.core.vertex_nest import MOST_OFFSETS, Lie, lying
from t10.errors import UnsupportedOpError


def sub_task(spec: OperatorSpec, box: AxisSizes, *, initial: bool = True, simplify: bool = True) -> Task:
    """Return the task of one compute step over `box` points of every axis, all operands in elements of their own.

    Axes are those of the operator unless it is simplified.
    """
    task = step(spec, box, (box,) * len(spec.rotatable), initial=initial)
    return simplified(task) if simplify else task


def step(
    spec: OperatorSpec,
    box: AxisSizes,
    windows: tuple[AxisSizes, ...],
    *,
    initial: bool = True,
    pace: AxisSizes | None = None,
) -> Task:
    """Return the task of one compute step over a box of the windows (axes) of every rotatable operand.

    A step may begin at any multiple of `pace` in a window, of the box where that is not said: the last box of an axis
    may be shorter than what steps go on by.
    """
    dtypes = (*(operand.dtype for operand in spec.inputs), spec.acc_dtype)
    operands = [_in_window(*each, pace or box) for each in zip(spec.rotatable, dtypes, windows, strict=True)]
    is_rounded, has_first = hands_on_rounded(spec), spec.first is not None
    if spec.first is not None:
        operands = [*operands[:-1], _operand(spec.first, windows[-1]), operands[-1]]
    if is_rounded:
        sums = TaskOperand("f32", (0,) * len(box), WIDE_BYTES, is_interleaved=True)
        operands = [*operands[:-1], sums, operands[-1]]
    return apart(
        Task(
            extents=box,
            inputs=tuple(operands[:-1]),
            output=operands[-1],
            combine=spec.combine,
            body=summed(spec.body, 1 + has_first) if is_rounded else with_unread(spec.body, int(has_first)),
            reduction_axes=spec.reduction_axes,
            initial=initial or spec.combine == "none",
            selectors=spec.selectors,
            origin=(0,) * len(box),
            first=len(spec.inputs) if has_first and initial else None,
        )
    )


def at_places(spec: OperatorSpec, task: Task) -> list[Task]:
    """Return a step wherever cores do it along axes by whose places the body picks what it computes."""
    picking = picking_axes(spec.body)
    begins = [
        range(0, max(extent, 1), length) if axis in picking else (0,)
        for axis, (extent, length) in enumerate(zip(spec.extents, task.extents, strict=True))
    ]
    return [simplified(replace(task, origin=origin)) for origin in product(*begins)]


def step_offsets(
    spec: OperatorSpec, windows: tuple[AxisSizes, ...], pace: AxisSizes
) -> tuple[tuple[int, ...], ...]:
    """Return at which bytes of the widest load operands of steps may begin: some core's do at every step.

    Steps begin at multiples of the pace in windows that are whole numbers of it; nothing where all begin at 0. Where a
    window is no whole number of them, steps run in parts, and none is this one.
    """
    dtypes = (*(operand.dtype for operand in spec.inputs), spec.acc_dtype)
    strides = [axis_strides(*each) for each in zip(spec.rotatable, windows, strict=True)]
    found = {(0,) * len(windows)}
    for axis, n in enumerate(pace):
        lengths = [window[axis] if each[axis] else n for window, each in zip(windows, strides, strict=True)]
        if max(lengths) == n or any(length % n for length in lengths):
            continue
        begins = {
            tuple(
                begin % length * each[axis] * size_bytes(dtype) % WIDE_BYTES
                for length, each, dtype in zip(lengths, strides, dtypes, strict=True)
            )
            for begin in range(0, min(lcm(*lengths), WIDE_BYTES * n), n)
        }
        found = {
            tuple([(a + b) % WIDE_BYTES for a, b in zip(one, other, strict=True)])
            for one in found
            for other in begins
        }
    if hands_on_rounded(spec):
        found = {(*each[:-1], 0, each[-1]) for each in found}
    return tuple(sorted(found))[:MOST_OFFSETS] if len(found) > 1 else ((),)


def end(spec: OperatorSpec, windows: AxisSizes, lie: Lie | None = None) -> Task:
    """Return the task that makes results of accumulators, over windows (axes) of the output.

    Without `lie`, results take the place of their accumulators where they are of one type; all else lies apart.
    """
    lengths = tuple(n if axis in spec.output.axes else 1 for axis, n in enumerate(windows))
    function: ScalarFunction = spec.epilogue or identity()
    inputs = (
        _operand(spec.output, lengths, spec.acc_dtype),
        *(_operand(operand, lengths) for operand in spec.epilogue_inputs),
    )
    result = _operand(spec.output, lengths)
    task = Task(lengths, inputs, result, "none", function, origin=(0,) * len(lengths))
    return simplified(lying(task, lie or made_of_accumulators(spec, Lie.best(len(inputs) + 1))))


def rows(spec: OperatorSpec, n_slots: int, run: int) -> Task:
    """Return the task of an epilogue on `n_slots` elements, `run` of them in a row that all operands walk evenly."""
    function: ScalarFunction = spec.epilogue or identity()
    run_axes = frozenset(epilogue_run_axes(spec))
    outer = spec.output.axes - run_axes

    def operand(one: Operand, dtype: str) -> TaskOperand:
        strides = (run if one.axes & outer else 0, 1 if one.axes & run_axes else 0)
        return TaskOperand(dtype, strides, WIDE_BYTES, is_interleaved=True)

    if uses_position((function,), ()):
        raise UnsupportedOpError("an epilogue that names an axis has no price by rows", operator=spec.name)
    accumulator, result = (operand(spec.output, dtype) for dtype in (spec.acc_dtype, spec.output.dtype))
    inputs = (accumulator, *(operand(each, each.dtype) for each in spec.epilogue_inputs))
    extents = (-(-n_slots // run), run)
    return simplified(apart(Task(extents, inputs, result, "none", function, origin=(0, 0))))


def made_of_accumulators(spec: OperatorSpec, lie: Lie) -> Lie:
    """Return how an epilogue's operands lie whose result takes the place of accumulators of its type."""
    if spec.acc_dtype != spec.output.dtype:
        return lie
    return replace(lie, apart=lie.apart - {(0, len(spec.epilogue_inputs) + 1)})


def fill(dtype: str, neutral: str, n_slots: int) -> Task:
    """Return the task that fills accumulators with a constant, in MLIR's spelling."""
    body = ScalarFunction(0, (ScalarOp("const", (), dtype, neutral),), 0)
    return Task((n_slots,), (), TaskOperand(dtype, (1,), WIDE_BYTES, is_interleaved=True), "none", body)


def box_bytes(spec: OperatorSpec, box: AxisSizes) -> int:
    """Return the bytes of all operands' parts of a box."""
    sizes = [(operand, operand.dtype) for operand in spec.inputs] + [(spec.output, spec.acc_dtype)]
    return sum(prod(partition_shape(operand, box)) * size_bytes(dtype) for operand, dtype in sizes)


def _operand(operand: Operand, box: AxisSizes, dtype: str = "") -> TaskOperand:
    return TaskOperand(dtype or operand.dtype, axis_strides(operand, box), WIDE_BYTES, is_interleaved=True)


def _in_window(operand: Operand, dtype: str, window: AxisSizes, pace: AxisSizes) -> TaskOperand:
    """Return an operand of a step: where the window is longer than the pace, a step begins at any multiple of that."""
    strides = axis_strides(operand, window)
    offsets = tuple(n * s for n, w, s in zip(pace, window, strides, strict=True) if w > n)
    align = alignment_bytes(dtype, tuple(offset * size_bytes(dtype) for offset in offsets))
    return TaskOperand(dtype, strides, align, is_interleaved=True)


def apart(task: Task) -> Task:
    """Return the task with all its operands in memory elements of their own."""
    n = len(task.operands)
    return replace(task, apart=frozenset((i, j) for i in range(n) for j in range(i + 1, n)))
