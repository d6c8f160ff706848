"""The compute-shift program of one operator as text: what every core does, all in lock step (compute-shift model §4).

```
on 6 cores, m in 2 parts of 1, n in 3 parts of 1, k whole (6):
  for k in 3 steps of 2, from 2 * n + 3 * m mod 6:
    compute m 1, n 1, k 2                            58 cycles
    shift a, b by 2 along k, 8 B to the next core    94 cycles
```
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from t10.core import geometry
from t10.core.costs import overlaps, rotates_output, shift_cycles, step_cycles
from t10.core.expression import OperatorSpec
from t10.core.operator_body import rotating_operands
from t10.core.overlap import is_beside_step
from t10.core.plan import OperatorPlan, PhaseTerm, final_positions
from t10.core.program import Shift
from t10.cost import CostModel
from t10.cost.operator import (
    advance_bytes,
    combine_cycles,
    epilogue_cycles,
    fused_saving,
    home_cycles,
    output_chunk,
)

INDENT = "  "
GAP = 4


def nest_text(spec: OperatorSpec, plan: OperatorPlan, cost: CostModel, resident: tuple[int, ...] = ()) -> str:
    """Return the loops, with the cycles of one turn of every line.

    Weights in `resident` (input numbers) are used where they rest, so they are shifted home in the end.
    """
    lines = [(0, _header(spec, plan), "")]
    lines += _loops(spec, plan, cost, 0, 1)
    lines += [(1, text, price) for text, price in _after(spec, plan, cost, resident)]
    texts = [INDENT * depth + text for depth, text, _ in lines]
    priced = [len(text) for text, (_, _, price) in zip(texts, lines, strict=True) if price]
    width = max(priced, default=0) + GAP
    return "\n".join(
        f"{text:<{width}}{price}" if price else text for text, (_, _, price) in zip(texts, lines, strict=True)
    )


def phase_text(spec: OperatorSpec, plan: OperatorPlan, axis: int) -> str:
    """Return where every core starts along an axis, in terms of its coordinates."""
    terms = [_term(spec, plan, term) for term in plan.phases[axis]]
    return f"{' + '.join(terms)} mod {plan.lengths[axis]}" if terms else "0"


def _header(spec: OperatorSpec, plan: OperatorPlan) -> str:
    parts = [
        f"{axis.name} in {f} parts of {length}" if f > 1 else f"{axis.name} whole ({length})"
        for axis, f, length in zip(spec.axes, plan.f_op, plan.lengths, strict=True)
    ]
    n_cores = f"{plan.n_cores:,} core{'s' if plan.n_cores > 1 else ''}"
    return f"on {n_cores}, {', '.join(parts)}:"


def _loops(
    spec: OperatorSpec, plan: OperatorPlan, cost: CostModel, number: int, depth: int
) -> list[tuple[int, str, str]]:
    """Return the loop over axis `number` of the loop order and all inside it; the sub-task where there is none."""
    if number == len(plan.loop_order):
        box = plan.box
        names = ", ".join(f"{axis.name} {size}" for axis, size in zip(spec.axes, box, strict=True))
        return [(depth, f"compute {names}", _cycles(_step_cycles(spec, plan, cost)))]
    axis = plan.loop_order[number]
    name, steps = spec.axes[axis].name, plan.steps[axis]
    back = ", then back" if number else ""
    start = phase_text(spec, plan, axis)
    head = f"for {name} in {steps} steps of {plan.rp[axis]}{back}, from {start}:"
    moving = rotating_operands(plan)[axis]
    names = ", ".join(spec.rotatable[slot].name for slot in moving)
    n_bytes = advance_bytes(spec, plan, axis)
    shift = f"shift {names} by {plan.rp[axis]} along {name}, {n_bytes:,} B to the next core"
    shift += ", while they compute" if overlaps(cost) and is_beside_step(plan, axis) else ""
    first = Shift(moving, axis, (0,) * len(plan.steps), 1)
    return [
        (depth, head, ""),
        *_loops(spec, plan, cost, number + 1, depth + 1),
        (depth + 1, shift, _cycles(shift_cycles(cost, spec, plan, first))),
    ]


def _step_cycles(spec: OperatorSpec, plan: OperatorPlan, cost: CostModel) -> int:
    """Return the cycles of a step as most of them are: that combines with what is there, if any does."""
    is_repeated = rotates_output(spec, plan) or any(plan.steps[axis] > 1 for axis in spec.reduction_axes)
    return step_cycles(cost, spec, plan, adds=spec.combine != "none" and is_repeated)


def _after(
    spec: OperatorSpec, plan: OperatorPlan, cost: CostModel, resident: tuple[int, ...]
) -> Iterator[tuple[str, str]]:
    """Yield what follows the loops: shifts of weights back to their idle layout, the reduction, the epilogue."""
    final = final_positions(plan)
    home = [
        spec.inputs[slot].name
        for slot in resident
        if any(final[axis] and plan.ft[slot][axis] > 1 for axis in plan.loop_order)
    ]
    if home:
        yield f"shift {', '.join(home)} home", _cycles(home_cycles(cost, spec, plan, resident))
    _, n_slots = output_chunk(spec, plan)
    n_partial = geometry.n_replicas(spec, plan, len(spec.inputs))
    if n_partial > 1:
        keeps = "all of it" if plan.reduce == "all" else f"{n_slots:,} elements of it"
        text = f"{spec.combine} of {n_partial} partial results, every core ends with {keeps}"
        yield text, _cycles(combine_cycles(cost, spec, plan))
    adds = n_partial > 1 and fused_saving(cost, spec, plan) > 0
    if spec.epilogue is not None or adds:
        what = " and ".join(["last additions"] * adds + ["epilogue"] * (spec.epilogue is not None))
        yield f"{what} on {n_slots:,} elements", _cycles(epilogue_cycles(cost, spec, plan))


def _term(spec: OperatorSpec, plan: OperatorPlan, term: PhaseTerm) -> str:
    """Return one term of a phase, written as simply as its numbers allow."""
    names = [spec.axes[axis].name for axis in term.sharer_axes if plan.f_op[axis] > 1]
    n_sharers = prod(plan.f_op[axis] for axis in term.sharer_axes)
    digit = names[0] if len(names) == 1 else f"#({', '.join(names)})"
    if term.divisor > 1:
        digit = f"({digit} / {term.divisor})"
    if term.divisor * term.modulus < n_sharers:
        digit = f"({digit} mod {term.modulus})"
    if term.is_folded:
        digit = f"folded({digit})"
    return digit if term.stride == 1 else f"{term.stride} * {digit}"


def _cycles(cycles: int) -> str:
    return f"{cycles:,} cycles"
