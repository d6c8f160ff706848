"""`verify_operator`: is the plan of one operator right, by definitions the planner has no part in?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from t10.core.expression import OperatorSpec
from t10.core.legal import PlanRows, breaches, expression_of
from t10.core.nameless import REMEMBERED, nameless
from t10.core.plan import OperatorPlan
from t10.plan.verify.placed import incomplete_copies, placed_operand
from t10.plan.verify.rotation import ring_violations, rotation_violations
from t10.plan.verify.violation import Violation
from t10.plan.verify.windows import (
    last_positions,
    output_chunks,
    output_replicas,
    ranks_of,
    window_at,
    window_keys,
)


def verify_operator(spec: OperatorSpec, plan: OperatorPlan, n_cores: int | None = None) -> list[Violation]:
    """Return what is wrong with a plan, [] where nothing is; `n_cores` is the size of the chip, None for any.

    Proves that rows, factors and paces fit each other, that every ring tiles its sub-tensor at every step, that each
    shift finds its sender, that each core has what each of its sub-tasks needs and executes each exactly once, and
    that every element of the result is owned once with all its partial sums. Source: compute-shift model §3-§4.
    """
    found = findings(nameless(spec), plan, n_cores)
    return [replace(violation, operator=spec.name) for violation in found]


@lru_cache(maxsize=REMEMBERED)
def findings(spec: OperatorSpec, plan: OperatorPlan, n_cores: int | None) -> tuple[Violation, ...]:
    """Return what is wrong with a nameless operator's plan; the later groups of rules build on the earlier ones."""
    for rules in (
        _illegal(spec, plan, n_cores),
        rotation_violations(spec, plan),
        result_violations(spec, plan),
    ):
        found = tuple(rules)
        if found:
            return found
    return ()


def _illegal(spec: OperatorSpec, plan: OperatorPlan, n_cores: int | None) -> Iterator[Violation]:
    """Yield the rules of `t10.core.legal` that a plan breaks."""
    for breach in breaches(PlanRows.of(plan), expression_of(spec), n_cores):
        yield Violation(spec.name, breach.rule, breach.found, breach.expected)


def result_violations(spec: OperatorSpec, plan: OperatorPlan) -> Iterator[Violation]:
    """Yield where partial sums of the output are lost, or an element of the result is owned by no or by two cores."""
    n_inputs = len(spec.inputs)
    window = window_at(spec.output, plan.ft[n_inputs], plan, last_positions(plan))
    replicas = output_replicas(spec, plan)
    keys = window_keys(window, plan)
    ranks = ranks_of(keys)
    members: dict[tuple[int, ...], int] = {}
    for key, rank in zip(keys, ranks, strict=True):
        members[key] = max(members.get(key, 0), rank + 1)
    if set(members.values()) != {replicas}:
        found = f"partial sums of one window on {sorted(set(members.values()))} cores"
        yield Violation(spec.name, "reduction", found, f"on {replicas} each")
        return
    yield from ring_violations(spec, plan, window)
    # Chunk k of r lies on rank k: as one copy over all ranks, every element must be there once. After an all-reduce
    # every rank is a copy.
    result = placed_operand(spec, plan, len(spec.operands), output_chunks(spec, plan))
    for _, low, high in incomplete_copies(result, 1):
        yield Violation(spec.name, "ownership", f"elements owned {low} to {high} times", "each exactly once")
    for operand in spec.epilogue_inputs:
        yield from ring_violations(
            spec, plan, window_at(operand, plan.ft[n_inputs], plan, last_positions(plan))
        )
