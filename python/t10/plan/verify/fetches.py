"""Are weights fetched that nobody else reads, in the order in which they are used, from a memory that the chip has?"""

from __future__ import annotations

from collections.abc import Iterator

from t10.chip.spec import ChipSpec
from t10.core.schedule import ModulePlan, moment
from t10.plan.verify.uses import Uses
from t10.plan.verify.violation import Violation


def fetched_from(plan: ModulePlan, uses: Uses) -> dict[str, int]:
    """Return the moment from which on the buffer of every weight that is fetched must live."""
    first_by_operator = {fetch.operator: moment(fetch.first, "arrive") for fetch in plan.fetches}
    found: dict[str, int] = {}
    for weight in plan.graph.weights:
        readers = {plan.graph.operators[read.step].name for read in uses.reads.get(weight.name, ())}
        if len(readers) == 1 and weight.name not in uses.kept and readers <= first_by_operator.keys():
            found[weight.name] = first_by_operator[readers.pop()]
    return found


def fetch_violations(plan: ModulePlan, chip: ChipSpec, uses: Uses) -> Iterator[Violation]:
    """Yield fetches that cannot be made, begin too late, or out of order."""
    if plan.fetches and chip.memory is None:
        yield Violation(
            plan.graph.name, "fetches", f"{len(plan.fetches)} fetches", "none: no off-chip memory"
        )
    steps = {spec.name: step for step, spec in enumerate(plan.graph.operators)}
    owners = {plan.graph.operators[uses.reads[weight][0].step].name for weight in fetched_from(plan, uses)}
    last_step, earliest = -1, 0
    for fetch in plan.fetches:
        step = steps.get(fetch.operator, -1)
        if fetch.operator not in owners:
            yield Violation(fetch.operator, "fetches", "no weights that it alone reads", "some")
        if step <= last_step:
            yield Violation(fetch.operator, "fetches", "fetched behind a later operator's", "in order of use")
        if not earliest <= fetch.first <= step:
            yield Violation(fetch.operator, "fetches", f"from step {fetch.first}", f"{earliest} to {step}")
        last_step, earliest = step, fetch.first
