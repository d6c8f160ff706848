"""What the planning passes share: their options, and plans kept on the operators of a module."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from t10.chip import DEFAULT_CHIP, ChipSpec, load_chip
from t10.core.canonical import canonical
from t10.core.expression import OperatorSpec
from t10.core.legal import expression_of
from t10.core.plan import CostedPlan
from t10.core.space import PartitionSpace
from t10.cost import CostModel
from t10.cost.registry import DEFAULT_COST_MODEL, cost_model, given, stated
from t10.dialect.location import source_text
from t10.dialect.mlir import ir
from t10.dialect.ods import Invalid
from t10.dialect.plan import CandidatePlan, check_plan
from t10.dialect.plan_attributes import candidates_attr, plan_of, space_attr, space_of
from t10.dialect.plan_attributes import candidates_of as candidates_in
from t10.dialect.region import is_expanded
from t10.dialect.rtensor import CANDIDATES, PLAN, SPACE
from t10.dialect.space import check_space
from t10.errors import InputError, T10Error
from t10.passes.bridge.annotate import CHIP, COST_MODEL, COST_MODEL_DIGEST
from t10.passes.diagnostic import emit_warning
from t10.passes.read_graph import ReadModule
from t10.passes.registry import Pass, option
from t10.plan.options import (
    DEFAULT_FRONT,
    DEFAULT_GAP,
    ForcedPartition,
    Method,
    PlanOptions,
    Reading,
)

Undecided = tuple[CandidatePlan, ...] | PartitionSpace
"""What an operator may choose from: candidates, or the space that holds them."""
DEFAULT_CANDIDATES = 1000
RECONCILE_FIRST = "run --t10-reconcile first"


@dataclass(frozen=True, slots=True)
class PlanningPass(Pass):
    """A pass that plans for a chip."""

    chip: str = option(DEFAULT_CHIP, help="name of a bundled chip, or a chip file")
    cost_model: str = option(
        DEFAULT_COST_MODEL, help="where cycles come from: ipu, t10-paper, or FILE.py[:FUNCTION]"
    )
    parallelism: float = option(
        0.9,
        help="least share of the usable cores that must work (less where no tensor rotates)",
        unit="ratio",
    )
    padding: float = option(
        0.9,
        help="least real share of every padded axis; where nothing rotates, one element of padding is allowed too",
        unit="ratio",
    )
    exhaustive: bool = option(False, help="search without parallelism and padding")
    max_front: int = option(DEFAULT_FRONT, help="Pareto plans kept per operator", unit="plans")
    reconcile: str = option(
        "exact", help="exact: all plans together, with a proved gap; greedy: the paper's Algorithm 1"
    )
    reading: str = option("best", help="'fastest plan that fits' in Algorithm 1: literal, aware or best")
    gap: float = option(DEFAULT_GAP, help="proved gap at which exact stops", unit="ratio")
    time_limit: float = option(
        0.0, help="stop exact with the best choice so far; 0: no limit", unit="seconds"
    )

    program: bool = option(False, help="place data beside the program, whose bytes are counted")

    def target(self, module: Any) -> tuple[ChipSpec, CostModel]:
        """Return the chip and its costs: the module's own if an earlier pass has chosen them.

        Warns if an option names another one. Raises `InputError` for a module that names a Python file as cost model,
        unless the option or `t10.cost.registry.giving` gives that file.
        """
        chip = self.target_chip(module)
        chosen = given(self.cost_model)
        name = _stated(module, COST_MODEL)
        if name is None:
            return chip, cost_model(chosen, chip)
        model = stated(name, _stated(module, COST_MODEL_DIGEST), also=chosen)
        if self.cost_model != DEFAULT_COST_MODEL and model != chosen:
            ignored = f"cost-model={self.cost_model} is not used (--t10-partition plans anew)"
            emit_warning(module.operation, f"is planned under {name}: {ignored}")
        return chip, cost_model(model, chip)

    def target_chip(self, module: Any) -> ChipSpec:
        """Return the chip: the module's own if an earlier pass has chosen one. Warns if an option names another one."""
        name = _stated(module, CHIP) or self.chip
        chip = load_chip(name)
        if self.chip not in (DEFAULT_CHIP, name, chip.name):
            message = f"is planned for {name}: chip={self.chip} is not used (--t10-partition plans anew)"
            emit_warning(module.operation, message)
        return chip

    def plan_options(self, forced: tuple[ForcedPartition, ...] = ()) -> PlanOptions:
        """Return the options as the planner takes them."""
        return PlanOptions(
            parallelism=self.parallelism,
            padding=self.padding,
            reading=cast("Reading", self.reading),
            forced=forced,
            max_front=self.max_front,
            exhaustive=self.exhaustive,
            reconcile=cast("Method", self.reconcile),
            gap=self.gap,
            time_limit_seconds=None if self.time_limit == 0 else self.time_limit,
        )


def check_candidates(most: int) -> None:
    """Raise `InputError` unless so many candidates can be listed; none may be."""
    if most < 0:
        raise InputError(f"max-candidates is {most} (expected at least 0)")


def _stated(module: Any, attribute: str) -> str | None:
    """Return the text of a module's attribute, None where it has none; raises `InputError` for what is no text."""
    attributes = module.operation.attributes
    if attribute not in attributes:
        return None
    if not isinstance(attributes[attribute], ir.StringAttr):
        raise InputError(f"{attribute} is {attributes[attribute]}, expected a string")
    return ir.StringAttr(attributes[attribute]).value


@contextmanager
def locating(specs: Iterable[OperatorSpec]) -> Generator[None]:
    """Give errors that name one of these operators, but no place, the place of that operator."""
    try:
        yield
    except T10Error as error:
        by_name = {spec.name: spec.location for spec in specs}
        error.location = error.location or by_name.get(error.operator or "") or None
        raise


def every_candidate(module: Any, holds: Callable[[CandidatePlan], bool]) -> bool:
    """Return whether operators have candidates or spaces, and `holds` of each of the candidates."""
    different = {op.attributes[CANDIDATES] for op in operators(module) if CANDIDATES in op.attributes}
    is_partitioned = bool(different) or has_attribute(module, SPACE)
    return is_partitioned and all(holds(plan) for plans in different for plan in candidates_in(plans))


def every_space(module: Any, holds: Callable[[PartitionSpace], bool]) -> bool:
    """Return whether `holds` of every space that stands for candidates."""
    return all(holds(space_of(op.attributes[SPACE])) for op in operators(module) if SPACE in op.attributes)


def decide_each(
    read: ReadModule,
    decide: Callable[[OperatorSpec, Undecided], Undecided],
    kind: Callable[[OperatorSpec], Hashable] = canonical,
) -> None:
    """Replace what every operator may choose from by what `decide` makes of it.

    Operators of one `kind` with equal attributes are asked about once. Raises `InputError` for an operator that has
    neither candidates nor a space, or some that are not its own; errors get the place of their operator.
    """
    found: dict[Hashable, tuple[str, Any]] = {}
    for spec in read.graph.operators:
        op = read.operations[spec.name]
        name = _undecided_name(op, spec)
        key = (kind(spec), op.attributes[name])
        if key not in found:
            with locating(read.graph.operators):
                found[key] = encoded(spec, decide(spec, _undecided(op, spec, name)))
        set_undecided(op, *found[key])


def encoded(spec: OperatorSpec, plans: Undecided) -> tuple[str, Any]:
    """Return name and value of the attribute that says what an operator may choose from."""
    if isinstance(plans, PartitionSpace):
        return SPACE, space_attr(plans, expression_of(spec))
    return CANDIDATES, candidates_attr(plans, expression_of(spec))


def set_undecided(op: Any, name: str, attr: Any) -> None:
    """Give an operator its candidates or their space, in place of what it had."""
    for old in (CANDIDATES, SPACE):
        if old in op.attributes:
            del op.attributes[old]
    op.attributes[name] = attr


def candidates_of(read: ReadModule) -> tuple[tuple[CostedPlan, ...], ...]:
    """Return the candidate plans of every operator, one object for operators that only differ in names.

    Raises `InputError` for an operator without any, or with some that have no costs.
    """
    found: dict[Hashable, tuple[CostedPlan, ...]] = {}
    result: list[tuple[CostedPlan, ...]] = []
    for spec in read.graph.operators:
        op = read.operations[spec.name]
        name = _undecided_name(op, spec)
        key = (canonical(spec), op.attributes[name])
        if key not in found:
            plans = _undecided(op, spec, name)
            if isinstance(plans, PartitionSpace):
                raise _not_ready(spec, SPACE, "is not searched", "run --t10-pareto first")
            with _reading(spec, name, "--t10-pareto completes candidates"):
                found[key] = tuple(plan.costed() for plan in plans)
        result.append(found[key])
    return tuple(result)


def chosen_plan(op: Any, spec: OperatorSpec) -> CostedPlan:
    """Return the plan of an operator; raises `InputError` if it has none, or one that is not complete or not legal."""
    if PLAN not in op.attributes:
        raise InputError(f"has no {PLAN}", operator=spec.name, location=source_text(op), hint=RECONCILE_FIRST)
    try:
        plan = plan_of(op.attributes[PLAN])
        check_plan(plan, expression_of(spec))
        return plan.costed()
    except Invalid as problem:
        hint = "--t10-partition plans anew"
        raise InputError(f"{PLAN}: {problem}", location=source_text(op), hint=hint) from None


def _undecided_name(op: Any, spec: OperatorSpec) -> str:
    for name in (CANDIDATES, SPACE):
        if name in op.attributes:
            return name
    raise _not_ready(spec, CANDIDATES, "is missing", "run --t10-partition first")


def _undecided(op: Any, spec: OperatorSpec, name: str) -> Undecided:
    """Return what an operator may choose from; raises `InputError` for what cannot be its own."""
    expression = expression_of(spec)
    with _reading(spec, name):
        if name == SPACE:
            space = space_of(op.attributes[SPACE])
            check_space(space, expression)
            return space
        plans = candidates_in(op.attributes[CANDIDATES])
        for plan in plans:
            check_plan(plan, expression)
        return plans


@contextmanager
def _reading(spec: OperatorSpec, name: str, hint: str | None = None) -> Generator[None]:
    """Turn what is wrong with an attribute into an error at its operator."""
    try:
        yield
    except Invalid as problem:
        raise _not_ready(spec, name, str(problem), hint) from None


def _not_ready(spec: OperatorSpec, name: str, problem: str, hint: str | None) -> InputError:
    return InputError(f"{name}: {problem}", operator=spec.name, location=spec.location or None, hint=hint)


def has_attribute(module: Any, *names: str) -> bool:
    """Return whether some operator of the module's functions has one of these attributes."""
    return any(name in op.attributes for op in operators(module) for name in names)


def is_planned(module: Any) -> bool:
    """Return whether operators have candidates or plans, or are expanded or lowered."""
    return has_attribute(module, CANDIDATES, SPACE) or is_chosen(module)


def is_chosen(module: Any) -> bool:
    """Return whether operators have their plan, or are expanded or lowered: there are no candidates to work on."""
    return has_attribute(module, PLAN) or has_program(module) or is_lowered(module)


def has_program(module: Any) -> bool:
    """Return whether a module is at the compute-shift level: an operator is, or something says where inputs rest."""
    return any(is_expanded(op) or op.name == "rtensor.resident" for op in operators(module))


def is_lowered(module: Any) -> bool:
    """Return whether functions have become graphs of the `ipu` dialect."""
    return any(op.operation.name == "ipu.graph" for op in module.body.operations) and not any(
        True for _ in operators(module)
    )


def operators(module: Any) -> Iterator[Any]:
    """Yield the operations of the bodies of all functions of a module, without those inside regions."""
    for function in module.body.operations:
        if function.operation.name == "func.func":
            for block in function.operation.regions[0].blocks:
                for op in block.operations:
                    yield op.operation
