"""What the planning passes share: their options, and plans kept on the operators of a module."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from t10.chip import ChipSpec, load_chip
from t10.core.canonical import canonical
from t10.core.expression import OperatorSpec
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.cost import CostModel
from t10.cost.registry import DEFAULT_COST_MODEL, cost_model
from t10.dialect.attributes import to_attr, to_python
from t10.dialect.location import source_text
from t10.dialect.mlir import ir
from t10.dialect.ods import Invalid
from t10.dialect.plan import plan_fields, read_plan
from t10.dialect.region import is_expanded
from t10.dialect.rtensor import CANDIDATES, PLAN, PlanAttr
from t10.errors import InputError, T10Error
from t10.passes.bridge.annotate import CHIP, COST_MODEL, expression_of
from t10.passes.bridge.read_program import has_program
from t10.passes.diagnostic import emit_warning
from t10.passes.read_graph import ReadModule
from t10.passes.registry import Pass, option
from t10.plan.fronts.canonical import searched_as
from t10.plan.options import (
    DEFAULT_FRONT,
    DEFAULT_GAP,
    ForcedPartition,
    Method,
    PlanOptions,
    Reading,
)

T = TypeVar("T")
DEFAULT_CHIP = "ipu-mk2"
RECONCILE_FIRST = "run --t10-reconcile first"


@dataclass(frozen=True, slots=True)
class PlanningPass(Pass):
    """A pass that plans for a chip."""

    chip: str = option(DEFAULT_CHIP, help="name of a bundled chip, or a chip file")
    cost_model: str = option(
        DEFAULT_COST_MODEL, help="where cycles come from: ipu, t10-paper, or FILE.py[:FUNCTION]"
    )
    parallelism: float = option(0.9, help="least part of the usable cores that must work", unit="ratio")
    padding: float = option(0.9, help="least useful part of every padded axis", unit="ratio")
    exhaustive: bool = option(False, help="search without those two constraints")
    max_front: int = option(DEFAULT_FRONT, help="Pareto plans kept per operator", unit="plans")
    reconcile: str = option(
        "exact", help="exact: all plans together, with a proved gap; greedy: the paper's Algorithm 1"
    )
    reading: str = option("best", help="'fastest plan that fits' in Algorithm 1: literal, aware or best")
    gap: float = option(DEFAULT_GAP, help="proved gap at which exact stops", unit="ratio")
    time_limit: float = option(
        0.0, help="after which exact stops with the best it has; 0: none", unit="seconds"
    )

    def target(self, module: Any) -> tuple[ChipSpec, CostModel]:
        """Return the chip and its costs: the module's own if an earlier pass has chosen them.

        Warns if an option names another one.
        """
        name = _stated(module, CHIP, self.chip)
        chip = load_chip(name)
        if self.chip not in (DEFAULT_CHIP, name, chip.name):
            message = f"is planned for {name}: chip={self.chip} is not used (--t10-partition plans anew)"
            emit_warning(module.operation, message)
        prices = _stated(module, COST_MODEL, self.cost_model)
        if self.cost_model not in (DEFAULT_COST_MODEL, prices):
            ignored = f"cost-model={self.cost_model} is not used (--t10-partition plans anew)"
            emit_warning(module.operation, f"is planned under {prices}: {ignored}")
        return chip, cost_model(prices, chip)

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


def _stated(module: Any, attribute: str, default: str) -> str:
    """Return the text of a module's attribute, the default where it has none."""
    attributes = module.operation.attributes
    return ir.StringAttr(attributes[attribute]).value if attribute in attributes else default


@contextmanager
def locating(specs: Iterable[OperatorSpec]) -> Generator[None]:
    """Give errors that name one of these operators, but no place, the place of that operator."""
    try:
        yield
    except T10Error as error:
        by_name = {spec.name: spec.location for spec in specs}
        error.location = error.location or by_name.get(error.operator or "") or None
        raise


def candidates_attr(spec: OperatorSpec, fields: list[dict[str, Any]]) -> Any:
    """Return the attribute of candidate plans, each given as the fields of `#rtensor.plan` decided so far."""
    expression = expression_of(spec)
    stated = {"extents": expression.extents, "uses": tuple(tuple(sorted(axes)) for axes in expression.uses)}
    return ir.ArrayAttr.get([PlanAttr.get(to_attr({**each, **stated})) for each in fields])


def every_candidate(module: Any, holds: Callable[[Any], bool]) -> bool:
    """Return whether there are candidates and `holds` of the fields (a `DictAttr`) of each of them."""
    different = {op.attributes[CANDIDATES] for op in operators(module) if CANDIDATES in op.attributes}
    return bool(different) and all(holds(ir.DictAttr(plan.fields)) for plans in different for plan in plans)


def candidate_fields(op: Any) -> list[dict[str, Any]]:
    """Return the fields of an operator's candidate plans; none if it has no candidates."""
    if CANDIDATES not in op.attributes:
        return []
    return [to_python(plan.fields) for plan in op.attributes[CANDIDATES]]


def candidate_plans(op: Any) -> tuple[CostedPlan, ...]:
    """Return an operator's candidate plans; raises `InputError` if one is not complete."""
    return tuple(_complete(op, CANDIDATES, fields) for fields in candidate_fields(op))


def attribute_of(op: Any, spec: OperatorSpec) -> Any:
    """Return the candidates attribute of an operator; raises `InputError` if it has none."""
    if CANDIDATES in op.attributes:
        return op.attributes[CANDIDATES]
    where = spec.location or None
    hint = "run --t10-partition first"
    raise InputError(f"has no {CANDIDATES}", operator=spec.name, location=where, hint=hint)


def candidates_of(read: ReadModule) -> tuple[tuple[CostedPlan, ...], ...]:
    """Return the candidate plans of every operator, one object for operators that only differ in names.

    Raises `InputError` for an operator without any.
    """
    found: dict[tuple[OperatorSpec, Any], tuple[CostedPlan, ...]] = {}
    result: list[tuple[CostedPlan, ...]] = []
    for spec in read.graph.operators:
        op = read.operations[spec.name]
        key = (canonical(spec), attribute_of(op, spec))
        if key not in found:
            found[key] = candidate_plans(op)
        result.append(found[key])
    return tuple(result)


def chosen_plan(op: Any, name: str) -> CostedPlan:
    """Return the plan of operator `name`; raises `InputError` if it has none or one that is not complete."""
    if PLAN not in op.attributes:
        raise InputError(f"has no {PLAN}", operator=name, location=source_text(op), hint=RECONCILE_FIRST)
    return _complete(op, PLAN, to_python(op.attributes[PLAN].fields))


def _complete(op: Any, attribute: str, fields: dict[str, Any]) -> CostedPlan:
    try:
        return read_plan(fields)
    except Invalid as problem:
        hint = "--t10-align-pace completes candidates"
        raise InputError(f"{attribute}: {problem}", location=source_text(op), hint=hint) from None


def complete_fields(plan: OperatorPlan | CostedPlan) -> dict[str, Any]:
    """Return all fields of a plan; one without a price has zeros."""
    return plan_fields(plan if isinstance(plan, CostedPlan) else CostedPlan(plan, Cycles(), 0, 0))


def has_attribute(module: Any, *names: str) -> bool:
    """Return whether some operator of the module's functions has one of these attributes."""
    return any(name in op.attributes for op in operators(module) for name in names)


def is_planned(module: Any) -> bool:
    """Return whether operators have candidates or plans, or are expanded or lowered."""
    return has_attribute(module, CANDIDATES) or is_chosen(module)


def is_chosen(module: Any) -> bool:
    """Return whether operators have their plan, or are expanded or lowered: there are no candidates any more."""
    return has_attribute(module, PLAN) or has_program(module) or is_lowered(module)


def has_program(module: Any) -> bool:
    """Return whether some operator of a module's functions is at the compute-shift level."""
    return any(is_expanded(op) for op in operators(module))


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


def once_per_kind(solve: Callable[[OperatorSpec], T], cost: CostModel) -> Callable[[OperatorSpec], T]:
    """Return `solve`, asked once for operators that only differ in names which `cost` does not look at."""
    found: dict[OperatorSpec, T] = {}

    def solved(spec: OperatorSpec) -> T:
        key = searched_as(spec, cost)
        if key not in found:
            found[key] = solve(spec)
        return found[key]

    return solved
