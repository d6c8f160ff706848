"""A rotation stepped through: what every core of a ring holds of a tensor, step by step."""

from __future__ import annotations

from t10.core import geometry
from t10.core.expression import OperatorSpec
from t10.core.operator_body import loop_positions
from t10.core.plan import OperatorPlan
from t10.explain.holdings import MOST_IN_RING, first_ring, index_range
from t10.report.columns import Column, FittedTable

MOST_STEPS = 8


def rotating_slots(plan: OperatorPlan) -> tuple[int, ...]:
    """Return the numbers of the rotatable operands that rotate."""
    return tuple(slot for slot, row in enumerate(plan.ft) if any(parts > 1 for parts in row))


def steps_table(spec: OperatorSpec, plan: OperatorPlan, slot: int) -> FittedTable:
    """Return what the cores of core 0's ring hold of a rotating operand: a row per core, a column per step.

    Raises `ValueError` for an operand that does not rotate.
    """
    if slot not in rotating_slots(plan):
        raise ValueError(f"operand {slot} does not rotate")
    axis = next(axis for axis in plan.loop_order if plan.ft[slot][axis] > 1)
    ring = first_ring(spec, plan, slot)
    n_steps = plan.n_sub_tasks
    shown = min(n_steps, MOST_STEPS)
    length = geometry.window_lengths(plan, slot)[axis]
    name, extent = spec.axes[axis].name, spec.axes[axis].extent
    more = f", the first {shown} of {n_steps} steps" if shown < n_steps else ""
    cores = f", {MOST_IN_RING} of its {len(ring)} cores" if len(ring) > MOST_IN_RING else ""
    title = f"{spec.rotatable[slot].name}: what a ring of {len(ring)} cores holds along {name}{more}{cores}"
    columns = [Column("", is_number=False)]
    columns += [Column(f"step {step + 1}", rank=step, is_number=False) for step in range(shown)]
    table = FittedTable(tuple(columns), title)
    bases = geometry.coordinates(plan)[:, axis] * plan.lengths[axis]
    starts = [
        geometry.window_starts(plan, slot, loop_positions(plan.loop_order, plan.steps, step))[:, axis]
        for step in range(shown)
    ]
    for core in ring[:MOST_IN_RING]:
        cells: list[str] = []
        for row in starts:
            first, base = int(row[core]), int(bases[core])
            last = (first + length - 1) % plan.lengths[axis]
            cells.append(index_range(base + first, base + last, extent))
        table.add_row(f"core {core}", *cells)
    return table
