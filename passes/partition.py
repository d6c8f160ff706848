"""`--t10-partition`: cut every operator, in space and in time (T10 §4.3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.space import PartitionSpace
from t10.cost import CostModel
from t10.cost.registry import given
from t10.dialect.mlir import ir
from t10.dialect.plan import CandidatePlan
from t10.dialect.rtensor import CANDIDATES, SPACE
from t10.errors import InputError
from t10.passes.bridge.annotate import CHIP, COST_MODEL, state_cost_model
from t10.passes.bridge.unplan import unplan
from t10.passes.forced import forced_by_attributes, set_forced
from t10.passes.planning import (
    DEFAULT_CANDIDATES,
    PlanningPass,
    Undecided,
    check_candidates,
    encoded,
    has_program,
    is_chosen,
    is_lowered,
    is_planned,
    locating,
    operators,
    set_undecided,
)
from t10.passes.read_graph import ReadModule, function_of, read_graph
from t10.passes.registry import option
from t10.plan.fronts.canonical import searched_as
from t10.plan.fronts.pinned import check_names, check_plan
from t10.plan.fronts.pins import read_pins
from t10.plan.fronts.stages import partitions_or_space
from t10.plan.options import ForcedPartition, PlanOptions


@dataclass(frozen=True, slots=True)
class PartitionOperators(PlanningPass):
    """Give every operator its candidate partitions: every F_op, and every ft per operand, within the constraints.

    Up to `max-candidates` of them are listed; of more, `rtensor.space` states the constraints and how many there are
    at most. Nothing is priced: constraints are those that factors alone decide, on parallelism and padding, both
    relaxed for an operator that has no partition otherwise. Plans may be pinned instead: by the attribute
    `rtensor.forced = {f_op = [...], ft = [[...], ...], rp = [...]}` of an operator, by a file (`plan`), or by `f-op`
    and `ft`, for all operators or for `operator` (the others then keep the candidates they have). What is pinned is
    checked, what is left out is searched.
    """

    name: ClassVar[str] = "t10-partition"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-fuse",)
    reads: ClassVar[str] = "operators"
    leaves: ClassVar[str] = (
        "`rtensor.candidates` on each: plans with `f_op` and `ft`, in lexicographic order; or `rtensor.space`; "
        "`t10.chip`, `t10.cost_model` and, of a file, `t10.cost_model_digest` on the module; `rtensor.forced` where "
        "the user chose"
    )

    max_candidates: int = option(
        DEFAULT_CANDIDATES,
        help="most candidates to list per operator; a larger space is stated as constraints",
        unit="candidates",
    )
    operator: str = option("", help="name of the operator that f-op and ft are for (empty: all)")
    f_op: tuple[int, ...] = option((), help="parts per axis, e.g. 2,3,1 (empty: search)")
    ft: tuple[str, ...] = option(
        (), help="temporal factors per operand, e.g. 1x1x3,1x1x2,1x1x1 (empty: search)"
    )
    plan: str = option("", help="plan.json or file of pins whose plans operators of the same names take")

    def apply(self, module: Any) -> None:
        """Set `rtensor.candidates` or `rtensor.space` of every operator; earlier plans go."""
        if is_lowered(module):
            return
        check_candidates(self.max_candidates)
        if has_program(module):
            raise InputError(
                "operators are expanded, and their types are their plans: they cannot be planned anew",
                hint="start before --t10-expand",
            )
        if is_chosen(module):
            unplan(function_of(module))
        module.operation.attributes[CHIP] = ir.StringAttr.get(self.chip)
        state_cost_model(module, given(self.cost_model))
        chip, cost = self.target(module)
        read = read_graph(module)
        set_forced(read, (*self._of_file(read), *self._of_options(read)))
        forced = forced_by_attributes(read)
        options = self.plan_options(tuple(forced.values()))
        found: dict[OperatorSpec, tuple[str, Any]] = {}
        for spec in read.graph.operators:
            op = read.operations[spec.name]
            if self.operator and spec.name not in forced and _has_candidates(op):
                continue
            key = spec if spec.name in forced else searched_as(spec, cost)
            if key not in found:
                with locating(read.graph.operators):
                    found[key] = encoded(spec, self._partitions(spec, chip, cost, options))
            set_undecided(op, *found[key])

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether operators have candidates or plans, or there are none and the chip is stated."""
        has_operators = any(len(op.regions) for op in operators(module))
        return is_planned(module) or (COST_MODEL in module.operation.attributes and not has_operators)

    def _partitions(
        self, spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions
    ) -> Undecided:
        """Return the partitions of an operator, the one plan where a whole one is pinned."""
        forced = options.forced_for(spec.name)
        if forced is not None and forced.plan is not None:
            check_plan(spec, chip, forced.plan)
            return (CandidatePlan.of(forced.plan),)
        found = partitions_or_space(spec, chip, cost, options, self.max_candidates)
        if isinstance(found, PartitionSpace):
            return found
        return tuple(CandidatePlan(f_op, ft) for f_op, ft in found)

    def _of_file(self, read: ReadModule) -> tuple[ForcedPartition, ...]:
        if not self.plan:
            return ()
        with locating(read.graph.operators):
            return read_pins(self.plan).forced(read.graph)

    def _of_options(self, read: ReadModule) -> tuple[ForcedPartition, ...]:
        if not self.f_op:
            if self.ft or self.operator:
                raise InputError(
                    "option ft or operator of t10-partition without f-op (expected f-op=... too)"
                )
            return ()
        if self.operator:
            check_names((self.operator,), read.graph)
        ft = tuple(_factors(row) for row in self.ft) or None
        return tuple(
            ForcedPartition(spec.name, self.f_op, ft)
            for spec in read.graph.operators
            if not self.operator or spec.name == self.operator
        )


def _has_candidates(op: Any) -> bool:
    return CANDIDATES in op.attributes or SPACE in op.attributes


def _factors(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split("x"))
    except ValueError:
        raise InputError(f"ft row '{text}' is not a list of factors such as 1x1x3") from None
