"""`--t10-expand`: the compute-shift program of every operator (T10 §4.2, compute-shift model §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.chip import ChipSpec
from t10.core.schedule import ModulePlan
from t10.cost import CostModel
from t10.errors import InputError
from t10.passes.bridge.annotate import CHIP, IDLE_LEVEL
from t10.passes.bridge.fetches import fetches_of
from t10.passes.bridge.write_program import write_program
from t10.passes.planning import RECONCILE_FIRST, PlanningPass, chosen_plan, has_program, is_lowered
from t10.passes.read_graph import ReadModule, read_graph
from t10.plan.schedule import restore_module


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
        """Expand all operators; nothing where they are expanded. Raises `InputError` for an operator without plan."""
        if not self.is_done(module):
            expand_module(module, *self.target(module))

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether some operator is expanded, or all are lowered."""
        return is_lowered(module) or has_program(module)


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
