"""`verify_module`: is the plan of a whole model right: operators, layouts, arrivals and memory?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from t10.chip.spec import ChipSpec
from t10.core.expression import Operand, OperatorSpec
from t10.core.nameless import REMEMBERED, nameless, nameless_layout
from t10.core.schedule import ModulePlan, ScheduledOperator, ValueLayout
from t10.errors import VerifyError
from t10.plan.verify.arrivals import arrival_violations
from t10.plan.verify.body import body_violations
from t10.plan.verify.fetches import fetch_violations
from t10.plan.verify.memory import memory_violations
from t10.plan.verify.operator import verify_operator
from t10.plan.verify.placed import incomplete_copies, placed_layout
from t10.plan.verify.uses import Uses, uses_of
from t10.plan.verify.violation import Violation
from t10.plan.verify.windows import output_chunks, sharers_of

MOST_SHOWN = 5


def verify_module(plan: ModulePlan, chip: ChipSpec) -> list[Violation]:
    """Return what is wrong with a planned model on a chip, [] where nothing is.

    Operators are verified first, then their programs, layouts, arrivals and memory; each group builds on the ones
    before and is only looked at when those are right. Source: compute-shift model §3-§5, T10 §4.3.
    """
    found = list(_operator_rules(plan, chip)) or list(_body_rules(plan))
    if found:
        return found
    uses = uses_of(plan.graph)
    for rules in (
        _layout_rules(plan, chip, uses),
        arrival_violations(plan, uses),
        fetch_violations(plan, chip, uses),
        memory_violations(plan, chip, uses),
    ):
        found = list(rules)
        if found:
            return found
    return []


def require_valid(plan: ModulePlan, chip: ChipSpec) -> None:
    """Raise `VerifyError` naming the first findings of `verify_module`, if there are any."""
    found = verify_module(plan, chip)
    if found:
        shown = "; ".join(str(violation) for violation in found[:MOST_SHOWN])
        more = f"; and {len(found) - MOST_SHOWN} more" if len(found) > MOST_SHOWN else ""
        raise VerifyError(f"the plan breaks {len(found)} rules: {shown}{more}", operator=found[0].operator)


def _operator_rules(plan: ModulePlan, chip: ChipSpec) -> Iterator[Violation]:
    """Every operator of the graph is planned, in order, and its plan is right."""
    names = [spec.name for spec in plan.graph.operators]
    planned = [scheduled.name for scheduled in plan.operators]
    if plan.chip != chip.name:
        yield Violation(plan.graph.name, "chip", f"a plan for {plan.chip}", chip.name)
    if names != planned or len(set(names)) != len(names):
        yield Violation(plan.graph.name, "operators", f"plans for {planned}", f"one each for {names}")
        return
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        yield from verify_operator(spec, scheduled.active.plan, chip.n_cores)


def _body_rules(plan: ModulePlan) -> Iterator[Violation]:
    """The program of every operator is the one its plan stands for."""
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        yield from body_violations(spec, scheduled)


def _layout_rules(plan: ModulePlan, chip: ChipSpec, uses: Uses) -> Iterator[Violation]:
    """Weights, inputs and results each have one layout, and it holds every element once in every copy."""
    graph = plan.graph
    for kind, tensors, layouts in (
        ("weights", graph.weights, plan.weight_layouts),
        ("inputs", graph.inputs, plan.input_layouts),
    ):
        known = {tensor.name for tensor in tensors}
        due, found = sorted(known & uses.last.keys()), sorted(layout.value for layout in layouts)
        # What nobody reads need not lie anywhere.
        if len(set(found)) != len(found) or not set(due) <= set(found) <= known:
            yield Violation(graph.name, "layouts", f"layouts of the {kind} {found}", f"one each of {due}")
            return
        dtypes = {tensor.name: tensor.dtype for tensor in tensors}
        for layout in layouts:
            if layout.dtype != dtypes[layout.value]:
                yield Violation(layout.value, "layouts", f"element type {layout.dtype}", dtypes[layout.value])
            yield from _stored_rules(uses, layout, chip)
    for spec, scheduled in zip(graph.operators, plan.operators, strict=True):
        yield from _output_rules(spec, scheduled)


def _stored_rules(uses: Uses, layout: ValueLayout, chip: ChipSpec) -> Iterator[Violation]:
    """A layout names the operand it follows, fits the chip, and each of its copies is complete."""
    if not 1 <= layout.n_cores <= chip.n_cores:
        yield Violation(layout.value, "layouts", f"{layout.n_cores} cores", f"1 to {chip.n_cores}")
        return
    spec = uses.makers.of(layout)
    most, is_all_needed = 1, True
    if layout.plan is not None:
        if spec is None or not 0 <= layout.operand < len(spec.operands):
            yield Violation(
                layout.value, "layouts", f"operand {layout.operand} of {layout.operator}", "an operand"
            )
            return
        operand = spec.operands[layout.operand]
        if uses.renamed[operand.name] != layout.value:
            yield Violation(
                layout.value, "layouts", f"laid out as {operand.name}", "an operand that reads it"
            )
            return
        wrong = verify_operator(spec, layout.plan, chip.n_cores)
        if wrong:
            yield from wrong
            return
        most = _most_per_copy(spec, operand, layout)
        is_all_needed = len(uses.reads.get(layout.value, ())) != 1 or layout.value in uses.kept
    n_elements = prod(uses.shapes[layout.value])
    maker = None if spec is None else nameless(spec)
    wrong_copy = _first_wrong_copy(nameless_layout(layout), maker, n_elements, most, is_all_needed)
    if wrong_copy is not None:
        copy, low, high = wrong_copy
        found = f"copy {copy} holds elements {low} to {high} times"
        yield Violation(layout.value, "layouts", found, "every element once")


@lru_cache(maxsize=REMEMBERED)
def _first_wrong_copy(
    layout: ValueLayout, spec: OperatorSpec | None, n_elements: int, most: int, is_all_needed: bool
) -> tuple[int, int, int] | None:
    """Return (copy, fewest, most) of the first copy that is wrong, None if all hold what is needed."""
    needed = None
    if spec is not None and not is_all_needed:
        needed = _elements_read(spec, spec.operands[layout.operand])
    return next(incomplete_copies(placed_layout(layout, spec, n_elements), most, needed), None)


def _most_per_copy(spec: OperatorSpec, operand: Operand, layout: ValueLayout) -> int:
    """Return how often one copy of an operand layout may hold an element: once, as a rule.

    Halos of compound dims are stored with every neighbour. Rings whose windows are offset against each other hold
    each window once, so that the rank among equal windows, which numbers the copies, does not tell them apart.
    """
    plan = layout.plan
    if plan is None:
        return 1
    if any(not dim.is_simple for dim in operand.dims):
        return plan.n_cores * max(spec.n_points, 1)
    row = plan.ft[layout.operand if layout.operand < len(spec.inputs) else -1]
    rotates = any(t > 1 and axis in operand.axes for axis, t in enumerate(row))
    return sharers_of(operand, plan) if rotates else 1


def _elements_read(spec: OperatorSpec, operand: Operand) -> NDArray[np.bool_]:
    """Return which elements of an operand some point of the iteration space reads, shape (elements,)."""
    needed = np.ones(1, np.bool_)
    for dim, extent in zip(operand.dims, operand.shape, strict=True):
        index = np.full(1, dim.offset, np.int64)
        for term in dim.terms:
            index = np.add.outer(index, term.coefficient * np.arange(spec.axes[term.axis].extent)).reshape(-1)
        read = np.zeros(extent, np.bool_)
        read[index[(index >= 0) & (index < extent)]] = True
        needed = np.logical_and.outer(needed, read).reshape(-1)
    return needed


def _output_rules(spec: OperatorSpec, scheduled: ScheduledOperator) -> Iterator[Violation]:
    """A result lies as the operator leaves it: the output's windows, cut over the cores that summed them."""
    plan, layout = scheduled.active.plan, scheduled.output_layout
    found = (layout.kind, layout.value, layout.dtype, layout.operator, layout.operand, layout.scatter)
    chunks = output_chunks(spec, plan)
    due = ("operand", spec.output.name, spec.output.dtype, spec.name, len(spec.operands), chunks)
    if found != due or layout.plan != plan:
        under = "the active plan" if layout.plan == plan else "another plan"
        yield Violation(spec.name, "output layout", f"{found} under {under}", f"{due} under the active plan")
