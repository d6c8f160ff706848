"""Sub-tasks as loop nests, part by part, and which cores begin in them: what programs execute and prices are of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import lcm

import numpy as np

from t10.core import geometry
from t10.core.arrays import Bools, Ints, different_rows
from t10.core.contiguous_parts import (
    EVERY_CORE,
    Chosen,
    ContiguousPart,
    box_begins,
    inside_lengths,
    lacks_terms,
    sub_task_parts,
)
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.operator_body import loop_statements, rotating_operands
from t10.core.plan import OperatorPlan
from t10.core.products import hands_on_rounded, summed, with_unread, zero_padded_axes
from t10.core.program import Fill, Shift, Statement, SubTask
from t10.core.task import TaskOperand
from t10.core.task_nest import axis_strides, named_axes
from t10.core.vertex_nest import VertexNest, Work

KEPT_PLANS = 1 << 10


def whole_axes(spec: OperatorSpec, plan: OperatorPlan, *, has_zeros: bool) -> frozenset[int]:
    """Return the axes along which sub-tasks run over whole parts, padding and all: no core then has other code to run.

    Results in padding are nobody's. Sums are over whole parts where padding holds zeros in every input: those that
    arrive, or that the host filled. A result that is read where another operator left it has anything in its padding:
    then there are none (`has_zeros`).
    """
    # What is looked up has to be an index.
    parallel = frozenset(() if spec.selectors else set(range(len(spec.axes))) - set(spec.reduction_axes))
    return parallel | zero_padded_axes(spec, plan) if has_zeros else parallel


def initial_cores(
    spec: OperatorSpec,
    plan: OperatorPlan,
    body: Sequence[Statement],
    whole: frozenset[int],
    cores: Chosen = EVERY_CORE,
) -> dict[int, Bools]:
    """Return, per number of a statement, on which cores a `Fill` fills or a `SubTask` replaces its outputs.

    The first sub-task to touch its outputs after a `Fill` replaces them: then nothing needs to be filled. That does not
    do where accumulators rotate (other cores have touched them), nor where the first part of a core's reduction is all
    padding (nothing touches them).
    """
    result: dict[int, Bools] = {}
    replaces: Bools = np.zeros(plan.n_cores, np.bool_)[cores]
    touched: set[AxisSizes] = set()
    for number, statement in enumerate(body):
        match statement:
            case Fill():
                result[number] = _filled(spec, plan, body[number + 1 :], whole, cores)
                replaces, touched = ~result[number], set()
            case SubTask(positions):
                where = _outputs(spec, positions)
                result[number] = np.zeros_like(replaces) if where in touched else replaces
                touched.add(where)
            case _:
                pass
    return result


def _outputs(spec: OperatorSpec, positions: AxisSizes) -> AxisSizes:
    """Return the positions along the axes that are not summed: sub-tasks that agree in them touch the same outputs."""
    return tuple(p for axis, p in enumerate(positions) if axis not in spec.reduction_axes)


def _filled(
    spec: OperatorSpec,
    plan: OperatorPlan,
    following: Sequence[Statement],
    whole: frozenset[int],
    cores: Chosen,
) -> Bools:
    """Return which cores' accumulators no first sub-task among the statements after a `Fill` replaces."""
    filled: Bools = np.zeros(plan.n_cores, np.bool_)[cores]
    touched: set[AxisSizes] = set()
    for statement in following:
        match statement:
            case Fill():
                break
            case Shift(operands) if len(spec.inputs) in operands:
                return np.ones_like(filled)
            case SubTask(positions):
                if _outputs(spec, positions) not in touched:
                    filled |= lacks_terms(spec, plan, positions, whole, cores)
                touched.add(_outputs(spec, positions))
            case _:
                pass
    return filled


def sub_task_nest(spec: OperatorSpec, plan: OperatorPlan) -> VertexNest:
    """Return the loop nest of an operator's sub-tasks, axes in its order; operands have numbers for names.

    The body does not read the last inputs: the partials that sums begin with, where they do, then room for sums as they
    grow, where they are rounded to be handed on.
    """
    dtypes = (*(operand.dtype for operand in spec.inputs), spec.acc_dtype)
    operands = tuple(
        (str(slot), TaskOperand(dtype, axis_strides(operand, geometry.window_lengths(plan, slot))))
        for slot, (operand, dtype) in enumerate(zip(spec.rotatable, dtypes, strict=True))
    )
    is_rounded = hands_on_rounded(spec)
    if spec.first is None and not is_rounded:
        return VertexNest(spec.body, spec.combine, spec.reduction_axes, operands, spec.selectors)
    *inputs, (_, output) = operands
    unread: list[TaskOperand] = []
    if spec.first is not None:
        strides = axis_strides(spec.first, geometry.window_lengths(plan, len(spec.inputs)))
        unread.append(TaskOperand(spec.first.dtype, strides))
    if is_rounded:
        unread.append(TaskOperand("f32", (0,) * len(spec.axes)))
    every = (*(operand for _, operand in inputs), *unread, output)
    body = summed(spec.body, len(unread)) if is_rounded else with_unread(spec.body, len(unread))
    named = tuple((str(number), operand) for number, operand in enumerate(every))
    first = None if spec.first is None else len(inputs)
    return VertexNest(body, spec.combine, spec.reduction_axes, named, first=first)


def sub_task_work(
    spec: OperatorSpec,
    plan: OperatorPlan,
    positions: AxisSizes,
    begins: Bools | bool,
    whole: frozenset[int],
    cores: Chosen = EVERY_CORE,
) -> Iterator[tuple[VertexNest, Work]]:
    """Yield what cores do in the sub-task at a loop state, part by part.

    `begins` is true where its outputs hold nothing yet.
    """
    nest = sub_task_nest(spec, plan)
    numbers = np.arange(plan.n_cores)[cores]
    begins = np.broadcast_to(begins, len(numbers))
    for part in sub_task_parts(spec, plan, positions, whole, cores):
        chosen = np.flatnonzero(part.extents.all(axis=1))
        offsets = _operand_offsets(plan, nest, part, chosen)
        initial = begins[chosen] & part.is_first[chosen]
        if spec.combine == "none":
            initial[:] = True
        origin = None
        if _has_position(spec):
            origin = geometry.coordinates(plan)[numbers[chosen]] * np.array(plan.lengths) + part.local[chosen]
        yield nest, Work(numbers[chosen], part.extents[chosen], offsets, initial, origin)


def is_uneven(spec: OperatorSpec, plan: OperatorPlan) -> bool:
    """Return whether sub-tasks may be other ones on some cores or at some positions, whole boxes and rests aside.

    Some go on where others ended, some have nothing but padding to sum, or what they do depends on where they are.
    """
    return plan.n_sub_tasks > 1 or _has_empty_parts(spec, plan) or _has_position(spec)


def is_filled(spec: OperatorSpec, plan: OperatorPlan, *, has_zeros: bool) -> bool:
    """Return whether accumulators of some core are filled, as no first sub-task begins there; see `initial_cores`."""
    if spec.combine == "none" or not _has_empty_parts(spec, plan):
        return False
    return _is_filled(spec, plan, whole_axes(spec, plan, has_zeros=has_zeros))


@lru_cache(maxsize=KEPT_PLANS)
def _is_filled(spec: OperatorSpec, plan: OperatorPlan, whole: frozenset[int]) -> bool:
    body = loop_statements(plan.loop_order, plan.steps, rotating_operands(plan))
    return bool(_filled(spec, plan, body, whole, EVERY_CORE).any())


def _has_empty_parts(spec: OperatorSpec, plan: OperatorPlan) -> bool:
    """Return whether some box along a sum lies in padding as a whole."""
    return any(
        plan.f_op[axis] * plan.lengths[axis] - plan.box[axis] >= spec.extents[axis]
        for axis in spec.reduction_axes
    )


def _has_position(spec: OperatorSpec) -> bool:
    return bool(_named(spec))


def _named(spec: OperatorSpec) -> list[int]:
    """Return the axes along which what sub-tasks do depends on where they are."""
    return sorted(named_axes((spec.body, *(s.index for s in spec.selectors)), spec.selectors))


def _operand_offsets(plan: OperatorPlan, nest: VertexNest, part: ContiguousPart, chosen: Ints) -> Ints:
    """Return the byte offset of a part's first element in every operand, shape (chosen cores, operands)."""
    columns: list[Ints] = []
    for n, (_, operand) in enumerate(nest.operands):
        # All inputs but those that lie in windows are read from their beginnings on.
        lengths = np.array(geometry.window_lengths(plan, min(n, len(plan.ft) - 1)))
        slots = ((part.local[chosen] % lengths) * np.array(operand.strides)).sum(axis=1)
        columns.append(slots * size_bytes(operand.dtype))
    return np.stack(columns, axis=1)


def different_steps(
    spec: OperatorSpec, plan: OperatorPlan, whole: frozenset[int]
) -> Iterator[tuple[list[AxisSizes], tuple[tuple[VertexNest, Work], ...]]]:
    """Yield the different sub-tasks of a plan's loops, part by part, after the positions at which each is executed.

    One core stands for all that do the same at all positions.
    """
    body: list[Statement] = [] if spec.combine == "none" else [Fill()]
    body += loop_statements(plan.loop_order, plan.steps, rotating_operands(plan))
    inside = [np.minimum(inside_lengths(spec, plan, axis, whole), n) for axis, n in enumerate(plan.lengths)]
    cores: Ints = np.arange(plan.n_cores)
    if not _has_position(spec):
        columns = np.column_stack([box_begins(plan, (0,) * len(plan.steps)), *inside])
        cores = different_rows(columns)
    begins = initial_cores(spec, plan, body, whole, cores)
    moduli = np.array(plan.lengths)
    for axis, length in enumerate(plan.lengths):
        windows = [
            geometry.window_lengths(plan, n)[axis] for n, o in enumerate(spec.rotatable) if axis in o.axes
        ]
        if (inside[axis] == length).all() and not _has_position(spec):
            moduli[axis] = lcm(*windows)
    kept = np.column_stack([each[cores] for each in inside])
    if _has_position(spec):
        kept = np.column_stack([kept, geometry.coordinates(plan)[cores][:, _named(spec)]])
    alike: dict[bytes, list[tuple[AxisSizes, Bools]]] = {}
    for number, statement in enumerate(body):
        if isinstance(statement, SubTask):
            slots = box_begins(plan, statement.positions, cores) % moduli
            rows = np.column_stack([slots, kept, begins[number]])
            key = rows[np.lexsort(rows.T)].tobytes()
            alike.setdefault(key, []).append((statement.positions, begins[number]))
    for same in alike.values():
        positions, first = same[0]
        work = tuple(sub_task_work(spec, plan, positions, first, whole, cores))
        yield [each for each, _ in same], work
