"""`--t10-partition`: cut every operator, in space and in time (T10 §4.3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.dialect.mlir import ir
from t10.dialect.rtensor import CANDIDATES, PLAN
from t10.errors import InputError
from t10.passes.bridge.annotate import CHIP, FORCED
from t10.passes.bridge.unplan import unplan
from t10.passes.planning import (
    PlanningPass,
    candidates_attr,
    has_attribute,
    is_lowered,
    is_planned,
    locating,
    once_per_kind,
)
from t10.passes.read_graph import ReadModule, read_graph
from t10.passes.registry import option
from t10.plan.options import ForcedPartition
from t10.plan.search import partition_candidates


@dataclass(frozen=True, slots=True)
class Partition(PlanningPass):
    """Give every operator its candidate partitions: F_op, and ft per operand.

    What stays of the space is what is on the time x memory front or close to it; `f-op` and `ft` choose one partition
    instead, for all operators or for `operator` (the others then keep the candidates they have).
    """

    name: ClassVar[str] = "t10-partition"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-fuse",)
    reads: ClassVar[str] = "operators"
    leaves: ClassVar[str] = (
        "`rtensor.candidates` on each: plans with `f_op` and `ft`; `t10.chip` on the module; "
        "`rtensor.forced` where the user chose"
    )

    operator: str = option("", help="name of the operator that f-op and ft are for (empty: all)")
    f_op: tuple[int, ...] = option((), help="parts per axis, e.g. 2,3,1 (empty: search)")
    ft: tuple[str, ...] = option(
        (), help="temporal factors per operand, e.g. 1x1x3,1x1x2,1x1x1 (empty: search)"
    )

    def apply(self, module: Any) -> None:
        """Set `rtensor.candidates` of every operator to plans that have `f_op` and `ft`; earlier plans go."""
        if is_lowered(module):
            return
        if has_attribute(module, PLAN):
            unplan(read_graph(module).function)
        module.operation.attributes[CHIP] = ir.StringAttr.get(self.chip)
        chip, cost = self.target(module)
        read = read_graph(module)
        options = self.plan_options(self._forced(read))
        solve = once_per_kind(lambda spec: partition_candidates(spec, chip, cost, options))
        for spec in read.graph.operators:
            op = read.operations[spec.name]
            is_forced = options.forced_for(spec.name) is not None
            if self.operator and not is_forced and CANDIDATES in op.attributes:
                continue
            with locating(read.graph.operators):
                found = partition_candidates(spec, chip, cost, options) if is_forced else solve(spec)
            if is_forced:
                op.attributes[FORCED] = ir.UnitAttr.get()
            elif FORCED in op.attributes:
                del op.attributes[FORCED]
            # Plans that differ in what comes later only (loop order, placement) are one partition.
            fields = [{"f_op": f_op, "ft": ft} for f_op, ft in dict.fromkeys(found)]
            op.attributes[CANDIDATES] = candidates_attr(spec, fields)

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether operators have candidates or plans."""
        return is_planned(module)

    def _forced(self, read: ReadModule) -> tuple[ForcedPartition, ...]:
        if not self.f_op:
            if self.ft or self.operator:
                raise InputError(
                    "option ft or operator of t10-partition without f-op (expected f-op=... too)"
                )
            return ()
        names = [spec.name for spec in read.graph.operators]
        if self.operator and self.operator not in names:
            raise InputError(f"no operator '{self.operator}' (expected one of {', '.join(names)})")
        ft = tuple(_factors(row) for row in self.ft) or None
        return tuple(
            ForcedPartition(name, self.f_op, ft)
            for name in names
            if not self.operator or name == self.operator
        )


def _factors(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split("x"))
    except ValueError:
        raise InputError(f"ft row '{text}' is not a list of factors such as 1x1x3") from None
