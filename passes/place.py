"""`--t10-place`: the byte address of every buffer, the same on all cores, from lifetimes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from t10.core.schedule import Buffer, ModulePlan
from t10.dialect.attributes import to_attr, to_python
from t10.errors import InputError
from t10.passes.bridge.annotate import BUFFERS, CHIP, IDLE_LEVEL
from t10.passes.planning import RECONCILE_FIRST, PlanningPass, chosen_plan, is_lowered
from t10.passes.read_graph import ReadModule, read_graph
from t10.plan.memory.allocation import peak_bytes
from t10.plan.schedule import restore_module


@dataclass(frozen=True, slots=True)
class Place(PlanningPass):
    """Give every buffer its address: idle weights, inputs, operands, accumulators, values, the shift buffer."""

    name: ClassVar[str] = "t10-place"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-reconcile",)
    reads: ClassVar[str] = "plans"
    leaves: ClassVar[str] = (
        "`rtensor.buffers` on the function: name, address, size and lifetime of everything in a core's memory"
    )

    def apply(self, module: Any) -> None:
        """Set `rtensor.buffers` of the function; raises `InfeasiblePlanError` if they do not fit."""
        if is_lowered(module):
            return
        read = read_graph(module)
        if BUFFERS in read.function.attributes:
            del read.function.attributes[BUFFERS]
        read, plan = planned(self, module)
        read.function.attributes[BUFFERS] = to_attr(tuple(asdict(buffer) for buffer in plan.buffers))

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether a function has its buffers, or is lowered."""
        functions = [op.operation for op in module.body.operations if op.operation.name == "func.func"]
        return any(BUFFERS in function.attributes for function in functions) or is_lowered(module)


def planned(pass_: PlanningPass, module: Any) -> tuple[ReadModule, ModulePlan]:
    """Return the graph of a reconciled module and its plan, restored from the attributes of its operators.

    Buffers are those that `--t10-place` wrote, where it has. Raises `InputError` for an operator without plan.
    """
    chip, cost = pass_.target(module)
    if CHIP not in module.operation.attributes:
        raise InputError(f"module has no {CHIP}", hint=RECONCILE_FIRST)
    read = read_graph(module)
    operations = [(spec.name, read.operations[spec.name]) for spec in read.graph.operators]
    plans = tuple(chosen_plan(op, name) for name, op in operations)
    levels = tuple(
        int(op.attributes[IDLE_LEVEL].value) if IDLE_LEVEL in op.attributes else 0 for _, op in operations
    )
    plan = restore_module(read.graph, chip, cost, plans, levels)
    if BUFFERS not in read.function.attributes:
        return read, plan
    buffers = tuple(Buffer(**fields) for fields in to_python(read.function.attributes[BUFFERS]))
    peak = peak_bytes(buffers, chip.reserved_bytes)
    return read, replace(plan, buffers=buffers, peak_bytes=peak)
