"""Why a model does not fit, and what would help: the fullest moment, what is held then, and remedies tried."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.schedule import Phase
from t10.cost import CostModel
from t10.errors import InfeasiblePlanError
from t10.plan.fit.capacity import check_capacity
from t10.plan.fit.model_bound import least_plans, model_bound, roomy
from t10.plan.fit.remedies import Case, Remedy, activation_bytes, batch_of, remedies
from t10.plan.fronts.pinned import pinned_front
from t10.plan.memory.allocation import aligned_size, memory_bytes
from t10.plan.options import PlanOptions
from t10.plan.search.listed import room_hint

MOST_HELD = 8
DOING: dict[Phase, str] = {
    "arrive": "while its operands arrive",
    "nest": "while its loops run",
    "finish": "while its result is written",
}


@contextmanager
def explaining(graph: Graph, chip: ChipSpec, cost: CostModel, options: PlanOptions) -> Generator[None]:
    """Give an `InfeasiblePlanError` that lack of memory causes its explanation; refuse what is hopeless right away."""
    check_capacity(graph, chip)
    try:
        yield
    except InfeasiblePlanError as error:
        explained = explain(graph, chip, cost, options)
        if explained is None or error.details:
            raise
        raise explained from error


def explain(
    graph: Graph, chip: ChipSpec, cost: CostModel, options: PlanOptions
) -> InfeasiblePlanError | None:
    """Return the error for a model that does not fit even with every operator on its smallest plan.

    It names that operator, what every core would have to hold and has, the largest of what is held, and what each of
    several changes would come to. The bytes are an estimate: larger plans that read operands in place may hold less.
    None where memory is not what is lacking, or there is no operator to change.
    """
    if not graph.operators:
        return None
    try:
        plans = least_plans(graph, chip, cost, options)
    except InfeasiblePlanError:
        return None
    bound = model_bound(graph, chip, cost, plans)
    if bound.n_bytes <= chip.sram_bytes:
        return None
    case = Case(graph, chip, cost, options, plans, bound)
    spec = graph.operators[bound.step]
    tried = list(remedies(case))
    return InfeasiblePlanError(
        f"needs about {bound.n_bytes:,} bytes per core {DOING[bound.phase]}, {chip.name} has {chip.sram_bytes:,}",
        operator=spec.name,
        location=spec.location or None,
        hint=_hint(graph, tried),
        details=(*_held_lines(case), *_tried_lines(case, tried)),
    )


def _hint(graph: Graph, tried: list[Remedy]) -> str:
    """Return the first single change after which the model fits, or that there is none."""
    fitting = next((remedy for remedy in tried if remedy.fits), None)
    if fitting is not None:
        return f"it fits with {fitting.change}"
    return f"no single change that was tried is enough: {room_hint(graph.operators)}"


def _held_lines(case: Case) -> list[str]:
    """Return what every core holds at the fullest moment, largest first."""
    graph, chip, bound = case.graph, case.chip, case.bound
    spec = graph.operators[bound.step]
    idle = [r for r in bound.held if r.name.startswith("idle:")]
    parts = [
        (aligned_size(r.size_bytes), _what(r.name, spec))
        for r in bound.held
        if not r.name.startswith("idle:")
    ]
    kept = "code and stacks (reserved), and what loads may read ahead"
    parts.append((memory_bytes(chip.reserved_bytes), kept))
    if idle:
        what = f"weights at rest ({len(idle)} of them)"
        parts.append((sum(aligned_size(r.size_bytes) for r in idle), what))
    parts.sort(key=lambda part: (-part[0], part[1]))
    lines = [f"every core then holds {bound.n_bytes:,} bytes, {bound.n_bytes - chip.sram_bytes:,} too many:"]
    lines += [f"  {n_bytes:>12,}  {what}" for n_bytes, what in parts[:MOST_HELD]]
    if parts[MOST_HELD:]:
        rest = sum(n_bytes for n_bytes, _ in parts[MOST_HELD:])
        lines.append(f"  {rest:>12,}  {len(parts) - MOST_HELD} more")
    return lines


def _what(name: str, spec: OperatorSpec) -> str:
    """Return a buffer in words; `spec` is the operator that runs."""
    kind, _, rest = name.partition(":")
    if kind == "operand":
        number = int(rest.rpartition(":")[2])
        operand = spec.operands[number]
        return f"operand {number} of it, {operand.role} {operand.name}"
    if kind == "accumulator":
        return f"its accumulator in {spec.acc_dtype}"
    if kind == "second":
        return "second windows of what rotates"
    if kind == "shift":
        return "shift buffer"
    if name == f"value:{spec.output.name}":
        return f"its result {rest}"
    return f"{'input' if kind == 'input' else 'value'} {rest}, alive"


def _tried_lines(case: Case, tried: list[Remedy]) -> list[str]:
    """Return what was tried and what it came to."""
    spec, least = case.graph.operators[case.bound.step], case.plans[case.bound.step]
    most = max((t for row in least.plan.ft for t in row), default=1)
    fastest = pinned_front(spec, roomy(case.chip), case.cost, case.options)[-1].active_bytes
    lines = [
        "tried:",
        f"  {spec.name} on its smallest plan, f_op = {list(least.plan.f_op)}, ft up to {most}: "
        f"{least.active_bytes:,} bytes, its fastest takes {fastest:,}",
    ]
    for remedy in tried:
        over = remedy.need_bytes - remedy.capacity_bytes
        verdict = "fits" if remedy.fits else f"{over:,} too many"
        # Another chip may have another memory than the one that the lines above speak of.
        of = f" of {remedy.capacity_bytes:,}" if remedy.capacity_bytes != case.chip.sram_bytes else ""
        lines.append(f"  {remedy.change}: {remedy.need_bytes:,}{of} bytes, {verdict}")
    if batch_of(case.graph) is None:
        share = activation_bytes(case.graph, case.bound) / case.bound.n_bytes
        lines.append(f"  a smaller model input: {share:.0%} of what is held grows with it")
    lines.append(
        "bytes are of smallest plans: a larger plan that reads operands where they lie may need a little less"
    )
    return lines
