"""`--t10-expand`: the compute-shift program of every operator (T10 §4.2, compute-shift model §4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from t10.chip import ChipSpec
from t10.core.graph import Graph
from t10.core.plan import OperatorPlan
from t10.core.schedule import ModulePlan
from t10.cost import CostModel
from t10.errors import InputError, VerifyError
from t10.passes.bridge.annotate import CHIP, IDLE_LEVEL
from t10.passes.bridge.fetches import fetches_of
from t10.passes.bridge.write_program import write_program
from t10.passes.planning import RECONCILE_FIRST, PlanningPass, chosen_plan, has_program, is_lowered
from t10.passes.read_graph import ReadModule, read_graph
from t10.plan.schedule import restore_module
from t10.plan.verify import Violation, verify_operator

MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Expand(PlanningPass):
    """Replace every operator by its compute-shift program.

    Values get the layouts in which they lie; `rtensor.resident` says where inputs and weights rest; the region of an
    operator becomes the relayouts and set-ups before it, the loop of shifts and sub-tasks, the reduction and the
    epilogue. From here on the types are the plan: `rtensor.plan` is consumed.
    """

    name: ClassVar[str] = "t10-expand"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-reconcile",)
    reads: ClassVar[str] = "`rtensor.plan`, `rtensor.idle_level` and `rtensor.fetch` of every operator"
    leaves: ClassVar[str] = (
        "the compute-shift level: layouts as encodings, `rtensor.resident`, and in every operator `rtensor.relayout`, "
        "`rtensor.setup`, `scf.for` over `rtensor.shift` and `rtensor.sub_task`, `rtensor.reduce`"
    )

    def apply(self, module: Any) -> None:
        """Expand all operators; nothing where they are expanded.

        Raises `InputError` for an operator without plan, and `VerifyError` for plans, written by hand, that are wrong.
        """
        if self.is_done(module):
            return
        chip, cost = self.target(module)
        read = read_graph(module)
        plans = [chosen_plan(read.operations[spec.name], spec).plan for spec in read.graph.operators]
        require_none(read, operator_violations(read.graph, plans, chip.n_cores))
        expand_module(module, chip, cost, read)

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether some operator is expanded, or all are lowered."""
        return is_lowered(module) or has_program(module)


def operator_violations(graph: Graph, plans: Sequence[OperatorPlan], n_cores: int) -> list[Violation]:
    """Return what is wrong with the plans of a graph's operators by themselves."""
    both = zip(graph.operators, plans, strict=True)
    return [violation for spec, plan in both for violation in verify_operator(spec, plan, n_cores)]


def require_none(read: ReadModule, found: Iterable[Violation]) -> None:
    """Raise `VerifyError` after one located error per violation, if there is one."""
    distinct = list(dict.fromkeys(found))
    for violation in distinct[:MOST_SHOWN]:
        op = read.operations.get(violation.operator, read.function)
        op.location.emit_error(str(violation))
    if distinct:
        raise VerifyError(f"the plan breaks {len(distinct)} rules, stated above")


def expand_module(module: Any, chip: ChipSpec, cost: CostModel, read: ReadModule | None = None) -> None:
    """Expand a module at the planned level; raises `InputError` for an operator without plan.

    `read` is what `read_graph` says of the module, if that is known: plans are read from its attributes all the same.
    """
    read, plan = chosen_schedule(module, chip, cost, read)
    write_program(read, plan)


def chosen_schedule(
    module: Any, chip: ChipSpec, cost: CostModel, read: ReadModule | None = None
) -> tuple[ReadModule, ModulePlan]:
    """Return the graph of a module at the planned level and the schedule that follows from the chosen plans.

    Raises `InputError` for an operator without plan.
    """
    if CHIP not in module.operation.attributes:
        raise InputError(f"module has no {CHIP}", hint=RECONCILE_FIRST)
    read = read or read_graph(module)
    operations = [read.operations[spec.name] for spec in read.graph.operators]
    plans = tuple(map(chosen_plan, operations, read.graph.operators))
    levels = tuple(
        int(op.attributes[IDLE_LEVEL].value) if IDLE_LEVEL in op.attributes else 0 for op in operations
    )
    fetches = fetches_of(read.graph, operations)
    return read, restore_module(read.graph, chip, cost, plans, levels, fetches=fetches, is_exact=True)
