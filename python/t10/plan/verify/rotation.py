"""Do the windows of an operator hold what every sub-task needs, at every step? Index sets are moved and compared.

Small operators are walked through their whole loop nest. Large ones rely on an invariance: a step moves all windows
and all sub-tasks by the same distance, so step 0 and one shift along each axis, both ways, stand for all others
(compute-shift model §4).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from t10.core.expression import Operand, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.plan.verify.violation import Violation
from t10.plan.verify.windows import (
    Held,
    HeldDim,
    Ints,
    Window,
    core_coordinates,
    core_phases,
    distinct_rows,
    held_indices,
    ranks_of,
    window_at,
    window_keys,
)

WALK_LIMIT = 2_000_000
"""Index moves up to which the whole loop nest is walked."""
KEYS_PER_CORE = 50
"""What the look at rings costs per core and step, in index moves."""

NestStep = tuple[int, int]
"""The axis that advances between two sub-tasks and its direction, +1 or -1."""


def nest_steps(plan: OperatorPlan) -> Iterator[NestStep]:
    """Yield what advances between sub-tasks: the innermost axis that can still go on, the ones inside turn round."""
    positions = [0] * len(plan.steps)
    directions = [1] * len(plan.steps)
    while True:
        for axis in reversed(plan.loop_order):
            if 0 <= positions[axis] + directions[axis] < plan.steps[axis]:
                positions[axis] += directions[axis]
                yield axis, directions[axis]
                break
            directions[axis] = -directions[axis]
        else:
            return


def rotation_violations(spec: OperatorSpec, plan: OperatorPlan) -> Iterator[Violation]:
    """Yield what is wrong with rings, shifts, coverage and residence; expects a plan whose shapes are right."""
    start = [
        window_at(o, row, plan, (0,) * len(plan.f_op)) for o, row in zip(spec.rotatable, plan.ft, strict=True)
    ]
    for window in start:
        found = list(ring_violations(spec, plan, window))
        yield from found
        if found:
            return
    yield from _coverage(spec, plan)
    n_slots = sum(dim.n_slots for window in start for dim in held_indices(window, plan))
    if plan.n_cores * (n_slots + KEYS_PER_CORE) * plan.n_sub_tasks <= WALK_LIMIT:
        yield from _walk(spec, plan, start)
    else:
        yield from _one_step(spec, plan, start)


def ring_violations(spec: OperatorSpec, plan: OperatorPlan, window: Window) -> Iterator[Violation]:
    """Yield the rings of an operand whose windows do not tile its sub-tensor exactly once.

    A ring is made of the cores of one sub-tensor whose windows are whole widths apart and that have the same rank
    among the cores with equal windows.
    """
    axes = [axis for axis, rotates in enumerate(window.is_rotating) if rotates]
    if not axes:
        return
    where = core_coordinates(plan)[:, sorted(window.operand.axes)].tolist()
    widths = np.array([window.widths[axis] for axis in axes])
    starts = window.starts[:, axes]
    ranks = ranks_of(window_keys(window, plan))
    n_cells = prod(plan.lengths[axis] // window.widths[axis] for axis in axes)
    cells: dict[tuple[tuple[int, ...], tuple[int, ...], int], set[tuple[int, ...]]] = {}
    for part, offset, rank, cell in zip(where, starts % widths, ranks, starts // widths, strict=True):
        ring = (tuple(part), tuple(offset.tolist()), rank)
        cells.setdefault(ring, set()).add(tuple(cell.tolist()))
    for (part, offset, rank), found in cells.items():
        if len(found) != n_cells:
            ring_name = f"ring {rank} of sub-tensor {part} of {window.operand.name} (offset {offset})"
            yield Violation(spec.name, "ring tiling", f"{len(found)} windows in {ring_name}", f"{n_cells}")
            return
        blocks = [i for i, axis in enumerate(axes) if not is_circular(window.operand, axis)]
        if any(offset[i] for i in blocks):
            found_text = f"{window.operand.name} starts {offset} past a block boundary"
            yield Violation(spec.name, "blocks", found_text, "whole blocks in a compound dim")
            return


def is_circular(operand: Operand, axis: int) -> bool:
    """Return whether windows of the operand may wrap around along an axis: it is alone in one dim and nowhere else."""
    having = [dim for dim in operand.dims if axis in dim.axes]
    return len(having) == 1 and having[0].is_simple


def _coverage(spec: OperatorSpec, plan: OperatorPlan) -> Iterator[Violation]:
    """Yield axes along which some core does not execute each of its points exactly once."""
    numbers = {tuple(row) for row in core_coordinates(plan).tolist()}
    if len(numbers) != prod(plan.f_op):
        yield Violation(
            spec.name, "coverage", f"{len(numbers)} sub-operators", f"{prod(plan.f_op)}, one per core"
        )
    phases = core_phases(plan)
    for axis in plan.loop_order:
        length, pace = plan.lengths[axis], plan.rp[axis]
        first = phases[:, axis, None, None] + np.arange(plan.steps[axis])[:, None] * pace
        executed = (first + np.arange(pace)) % length
        executed = np.sort(executed.reshape(len(phases), -1), axis=1)
        if executed.shape[1] != length or not np.array_equal(
            executed, np.broadcast_to(np.arange(length), executed.shape)
        ):
            name = spec.axes[axis].name
            yield Violation(
                spec.name, "coverage", f"sub-tasks that repeat or miss points of {name}", "each once"
            )


def shift_source(plan: OperatorPlan, window: Window, axis: int, direction: int) -> Ints | None:
    """Return, per core, who sends it what it needs next; None where some core has no such neighbour.

    Forward, the neighbour's window starts where the core's own ends; backward, it ends where the own starts.
    """
    keys = window_keys(window, plan)
    ranks = ranks_of(keys)
    core_of = {(*key, rank): core for core, (key, rank) in enumerate(zip(keys, ranks, strict=True))}
    beyond = window.starts.copy()
    beyond[:, axis] = (beyond[:, axis] + direction * window.widths[axis]) % plan.lengths[axis]
    wanted = window_keys(Window(window.operand, window.widths, beyond, window.is_rotating), plan)
    sources = [core_of.get((*key, rank), -1) for key, rank in zip(wanted, ranks, strict=True)]
    return np.array(sources, np.int64) if min(sources) >= 0 and len(set(sources)) == len(sources) else None


def shifted(plan: OperatorPlan, window: Window, held: Held, step: NestStep, source: Ints) -> Held | None:
    """Return what the slots hold after one shift by rp, None if the sender holds another part than is needed.

    Forward frees the first rp indices of the window and the sender's first rp arrive there; backward the last ones.
    """
    axis, direction = step
    pace, width = plan.rp[axis], window.widths[axis]
    if not is_circular(window.operand, axis):
        return tuple(HeldDim(dim.rows, dim.row_of_core[source]) for dim in held)
    result: list[HeldDim] = []
    for dim, have in zip(window.operand.dims, held, strict=True):
        if axis not in dim.axes:
            if not np.array_equal(have.row_of_core, have.row_of_core[source]):
                return None
            result.append(have)
            continue
        mine, theirs = have.full, have.full[source]
        place = (np.arange(width) - window.starts[:, axis, None]) % width
        freed = place < pace if direction > 0 else place >= width - pace
        result.append(HeldDim(np.where(freed, theirs, mine), np.arange(len(mine))))
    return tuple(result)


def _advanced(plan: OperatorPlan, window: Window, step: NestStep) -> Window:
    """Return the windows after one shift along an axis, if the operand rotates along it."""
    axis, direction = step
    starts = window.starts.copy()
    starts[:, axis] = (starts[:, axis] + direction * plan.rp[axis]) % plan.lengths[axis]
    return Window(window.operand, window.widths, starts, window.is_rotating)


def _move(
    spec: OperatorSpec, plan: OperatorPlan, window: Window, held: Held, step: NestStep, source: Ints | None
) -> tuple[Window, Held, list[Violation]]:
    """Return window, slots and violations after one shift; the slots must hold exactly the advanced window."""
    after = _advanced(plan, window, step)
    due = held_indices(after, plan)
    got = None if source is None else shifted(plan, window, held, step, source)
    way = f"{window.operand.name} along {spec.axes[step[0]].name}, direction {step[1]:+d}"
    if got is None:
        return (
            after,
            due,
            [Violation(spec.name, "shift source", f"no core sends {way}", "one ring neighbour")],
        )
    if not all(np.array_equal(a.full, b.full) for a, b in zip(got, due, strict=True)):
        return after, due, [Violation(spec.name, "shift", f"wrong elements after {way}", "the next window")]
    return after, due, []


def _walk(spec: OperatorSpec, plan: OperatorPlan, start: list[Window]) -> Iterator[Violation]:
    """Yield what goes wrong when the loop nest is executed step by step on index sets."""
    state = [(window, held_indices(window, plan)) for window in start]
    sources = {
        (i, axis, direction): shift_source(plan, window, axis, direction)
        for i, window in enumerate(start)
        for axis in plan.loop_order
        if window.is_rotating[axis]
        for direction in (1, -1)
    }
    box = core_phases(plan)
    found = [*_absent(spec, plan, state, box)]
    n_sub_tasks = 1
    for step in nest_steps(plan):
        axis, direction = step
        box[:, axis] = (box[:, axis] + direction * plan.rp[axis]) % plan.lengths[axis]
        for i, (window, held) in enumerate(state):
            if window.is_rotating[axis]:
                after, got, wrong = _move(spec, plan, window, held, step, sources[i, axis, direction])
                state[i] = (after, got)
                found += wrong
                found += ring_violations(spec, plan, after)
        found += _absent(spec, plan, state, box)
        n_sub_tasks += 1
        if found:
            break
    yield from found[:3]
    if not found and n_sub_tasks != prod(plan.steps):
        yield Violation(spec.name, "coverage", f"{n_sub_tasks} sub-tasks", f"{prod(plan.steps)}")


def _one_step(spec: OperatorSpec, plan: OperatorPlan, start: list[Window]) -> Iterator[Violation]:
    """Yield what is wrong at step 0 and after one shift along each axis, both ways."""
    state = [(window, held_indices(window, plan)) for window in start]
    yield from _absent(spec, plan, state, core_phases(plan))
    for window, held in state:
        for axis in plan.loop_order:
            if not window.is_rotating[axis]:
                continue
            for direction in (1, -1):
                source = shift_source(plan, window, axis, direction)
                yield from _move(spec, plan, window, held, (axis, direction), source)[2]


def _absent(
    spec: OperatorSpec, plan: OperatorPlan, state: list[tuple[Window, Held]], box: Ints
) -> Iterator[Violation]:
    """Yield operands of which a core lacks an element that its present sub-task reads or writes."""
    where = core_coordinates(plan)
    for window, held in state:
        for dim, have in zip(window.operand.dims, held, strict=True):
            own = list(dim.axes)
            columns = [have.row_of_core[:, None], where[:, own], window.starts[:, own], box[:, own]]
            distinct, core_of, _ = distinct_rows(np.hstack(columns))
            row, parts, starts, boxes = np.split(distinct, [1, 1 + len(own), 1 + 2 * len(own)], axis=1)
            index = np.full((len(row), 1), dim.offset, np.int64)
            slot = np.zeros((len(row), 1), np.int64)
            for i, term in enumerate(dim.terms):
                length = plan.lengths[term.axis]
                moves = plan.steps[term.axis] > 1
                reach = plan.rp[term.axis] if moves else length
                local = ((boxes[:, i, None] if moves else 0) + np.arange(reach) + np.zeros_like(row)) % length
                point = parts[:, i, None] * length + local
                at = (
                    local % window.widths[term.axis]
                    if dim.is_simple
                    else term.coefficient * (local - starts[:, i, None])
                )
                index = (index[:, :, None] + term.coefficient * point[:, None, :]).reshape(len(row), -1)
                slot = (slot[:, :, None] + at[:, None, :]).reshape(len(row), -1)
            inside = (slot >= 0) & (slot < have.n_slots)
            present = have.rows[row, np.clip(slot, 0, have.n_slots - 1)]
            bad = ~(inside & (present == index))
            if bad.any():
                worst = int(np.argmax(bad.any(axis=1)))
                lacking = int(index[worst][bad[worst]][0])
                found = f"core {int(core_of[worst])} lacks index {lacking} of {window.operand.name}"
                yield Violation(spec.name, "residence", found, "every element its sub-task needs")
                return
