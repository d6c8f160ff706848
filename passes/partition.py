"""`--t10-partition`: cut every operator, in space and in time (T10 §4.3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.cost import CostModel
from t10.dialect.mlir import ir
from t10.dialect.rtensor import CANDIDATES
from t10.errors import InputError
from t10.passes.bridge.annotate import CHIP, COST_MODEL
from t10.passes.bridge.unplan import unplan
from t10.passes.forced import forced_by_attributes, set_forced
from t10.passes.planning import (
    PlanningPass,
    candidates_attr,
    complete_fields,
    has_attribute,
    has_program,
    is_lowered,
    is_planned,
    locating,
    once_per_kind,
)
from t10.passes.read_graph import ReadModule, read_graph
from t10.passes.registry import option
from t10.plan.fronts.pinned import check_names, check_plan, pinned_partitions
from t10.plan.fronts.pins import read_pins
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.search.operator import PartitionFactors as Factors
from t10.plan.search.operator import partition_candidates


@dataclass(frozen=True, slots=True)
class Partition(PlanningPass):
    """Give every operator its candidate partitions: F_op, and ft per operand.

    Of the whole space those stay that are on the time x memory front. Plans may be pinned instead: by the
    attribute `rtensor.forced = {f_op = [...], ft = [[...], ...], rp = [...]}` of an operator, by a file (`plan`), or by
    `f-op` and `ft`, for all operators or for `operator` (the others then keep the candidates they have). What is
    pinned is checked, what is left out is searched.
    """

    name: ClassVar[str] = "t10-partition"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-fuse",)
    reads: ClassVar[str] = "operators"
    leaves: ClassVar[str] = (
        "`rtensor.candidates` on each: plans with `f_op` and `ft`; `t10.chip` and `t10.cost_model` on the "
        "module; `rtensor.forced` where the user chose"
    )

    operator: str = option("", help="name of the operator that f-op and ft are for (empty: all)")
    f_op: tuple[int, ...] = option((), help="parts per axis, e.g. 2,3,1 (empty: search)")
    ft: tuple[str, ...] = option(
        (), help="temporal factors per operand, e.g. 1x1x3,1x1x2,1x1x1 (empty: search)"
    )
    plan: str = option("", help="plan.json or file of pins whose plans operators of the same names take")

    def apply(self, module: Any) -> None:
        """Set `rtensor.candidates` of every operator to plans that have `f_op` and `ft`; earlier plans go."""
        if is_lowered(module):
            return
        if has_program(module):
            raise InputError(
                "operators are expanded, and their types are their plans: they cannot be planned anew",
                hint="start before --t10-expand",
            )
        if has_attribute(module, PLAN):
            unplan(read_graph(module).function)
        module.operation.attributes[CHIP] = ir.StringAttr.get(self.chip)
        module.operation.attributes[COST_MODEL] = ir.StringAttr.get(self.cost_model)
        chip, cost = self.target(module)
        read = read_graph(module)
        set_forced(read, (*self._of_file(read), *self._of_options(read)))
        forced = forced_by_attributes(read)
        options = self.plan_options(tuple(forced.values()))
        solve = once_per_kind(lambda spec: partition_candidates(spec, chip, cost, options), cost)
        for spec in read.graph.operators:
            op = read.operations[spec.name]
            if self.operator and spec.name not in forced and CANDIDATES in op.attributes:
                continue
            with locating(read.graph.operators):
                if spec.name in forced:
                    fields = self._pinned(spec, chip, cost, options)
                else:
                    fields = _fields(solve(spec))
            op.attributes[CANDIDATES] = candidates_attr(spec, fields)

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether operators have candidates or plans."""
        return is_planned(module)

    def _pinned(
        self, spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions
    ) -> list[dict[str, Any]]:
        """Return the candidates of an operator of which something is pinned."""
        forced = options.forced_for(spec.name)
        if forced is None or forced.plan is None:
            return _fields(pinned_partitions(spec, chip, cost, options))
        check_plan(spec, chip, forced.plan)
        return [complete_fields(forced.plan)]

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


def _fields(partitions: tuple[Factors, ...]) -> list[dict[str, Any]]:
    """Return partitions as the fields of candidates: plans that differ in what comes later only are one of them."""
    return [{"f_op": f_op, "ft": ft} for f_op, ft in dict.fromkeys(partitions)]


def _factors(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split("x"))
    except ValueError:
        raise InputError(f"ft row '{text}' is not a list of factors such as 1x1x3") from None
