"""Number the cores of a plan so that links between groups of cores are least busy.

Two choices are free: which axis is the slowest in the numbers of cores, so that its parts are in different groups,
and in which order the cores of a line hold the windows of a ring. Folded (0, 2, 4 ... 5, 3, 1), no route is longer
than two hops; in order, all are one hop except that from the last to the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from t10.core import geometry
from t10.core.chunks import window_chunk
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.links import Links
from t10.core.operator_body import rotating_operands
from t10.core.plan import OperatorPlan
from t10.core.shift_rounds import rotating_dtype, shift_elements
from t10.cost.crossing import crosses, shift_share, together, turns_share
from t10.plan.search.placement import is_tiling

LEAST_FOLDED = 4
"""Digits that a fold puts nearer to each other."""
MOST_CYCLES = 1 << 62


def laid_out(links: Links, spec: OperatorSpec, plan: OperatorPlan) -> OperatorPlan:
    """Return a plan whose parts lie as links are busy for the fewest cycles; itself where nothing else is better.

    Parts move between cores, windows of a ring between its members: what is computed and its places stay the same.
    """
    if not crosses(links, plan):
        return plan
    best, least = plan, link_cycles(links, spec, plan)
    for other in _others(links, spec, plan) if least else ():
        cycles = link_cycles(links, spec, other, least)
        if cycles < least:
            best, least = other, cycles
    return best


def numberings(links: Links, spec: OperatorSpec, plan: OperatorPlan) -> tuple[OperatorPlan, ...]:
    """Return a plan with the parts of every other axis in different groups, none where its cores are in one group."""
    if not crosses(links, plan):
        return ()
    return tuple(other for other in _others(links, spec, plan) if other.phases == plan.phases)


def _others(links: Links, spec: OperatorSpec, plan: OperatorPlan) -> Iterator[OperatorPlan]:
    """Yield other ways to lay out a plan: the order of cores, rings folded, both.

    Rings of different lengths along one axis share their phases: folded, those of the shorter ring need not tile.
    """
    still = tuple(axis for axis in plan.core_order if plan.f_op[axis] == 1)
    orders = [plan.core_order]
    for axis in plan.cut_order[1:]:
        orders.append((*still, axis, *(other for other in plan.cut_order if other != axis)))
    folded = tuple(
        tuple([replace(term, is_folded=term.modulus >= LEAST_FOLDED) for term in terms])
        for terms in plan.phases
    )
    has_lines = any(level.topology == "mesh" for level in links.levels)
    may_fold = has_lines and folded != plan.phases and is_tiling(spec, replace(plan, phases=folded))
    for phases in (plan.phases, folded) if may_fold else (plan.phases,):
        for order in orders:
            if order != plan.core_order or phases != plan.phases:
                yield replace(plan, core_order=order, phases=phases)


def link_cycles(links: Links, spec: OperatorSpec, plan: OperatorPlan, most: int = MOST_CYCLES) -> int:
    """Return the cycles in which the busiest links pass what shifts and a reduce-scatter send.

    Counting ends where these reach `most`.
    """
    total, n_sweeps = _scatter_cycles(links, spec, plan), 1
    rotating = rotating_operands(plan)
    for axis in plan.loop_order:
        if total >= most:
            break
        shares = [
            (
                shift_elements(spec, plan, number, axis) * size_bytes(rotating_dtype(spec, number)),
                *shift_share(links, spec, plan, number, axis, 1),
            )
            for number in rotating[axis]
        ]
        total += n_sweeps * (plan.steps[axis] - 1) * sum(together(links, plan, shares))
        n_sweeps *= plan.steps[axis]
    return total


def _scatter_cycles(links: Links, spec: OperatorSpec, plan: OperatorPlan) -> int:
    n_members = geometry.n_replicas(spec, plan, len(spec.inputs))
    if n_members == 1 or spec.combine == "none":
        return 0
    n_slots = prod(geometry.partition_shape(spec.output, geometry.window_lengths(plan, len(spec.inputs))))
    n_bytes = window_chunk(n_slots, n_members) * size_bytes(spec.acc_dtype)
    share = turns_share(links, spec, plan, range(1, n_members))
    return sum(together(links, plan, [(n_bytes, *share)]))
