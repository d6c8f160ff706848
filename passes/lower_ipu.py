"""`--t10-lower-ipu`: compute-shift programs as codelets, vertices, exchanges and a program of the `ipu` dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.chip import ChipSpec
from t10.core.stored import as_stored
from t10.cost import CostModel
from t10.dialect.mlir import ir
from t10.emit.link import linked
from t10.emit.lower import lowered_parts
from t10.passes.bridge.read_program import ReadProgram, read_program
from t10.passes.device.write import write_graph
from t10.passes.place import check_places, program_plan
from t10.passes.planning import PlanningPass, is_lowered
from t10.passes.registry import option
from t10.passes.weight_values import collected, taken_out
from t10.plan.schedule import as_placed, costed_arrivals


@dataclass(frozen=True, slots=True)
class LowerIpu(PlanningPass):
    """Turn every function into an ipu.graph for the chip.

    Passes that this one has to run first get its options. A module that was placed without `program` is refused where
    its program finds no room.
    """

    name: ClassVar[str] = "t10-lower-ipu"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-place",)
    reads: ClassVar[str] = "the compute-shift level, placed"
    leaves: ClassVar[str] = (
        "an `ipu.graph` per function: allocations, codelets, compute sets with vertices on tiles, exchange patterns, "
        "host tensors, the program"
    )

    program: bool = option(True, help="prerequisites place data beside the program")

    def apply(self, module: Any) -> None:
        """Replace the function by its graph."""
        if not is_lowered(module):
            lower_module(module, *self.target(module))

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether the module holds a graph and no function."""
        return is_lowered(module)


def lower_module(module: Any, chip: ChipSpec, cost: CostModel) -> None:
    """Replace the function of a placed module at the compute-shift level by its graph."""
    program = read_program(module)
    _store_weights(program)
    plan = program_plan(program, chip)
    check_places(plan, chip)
    costed = as_placed(costed_arrivals(plan, chip, cost), chip, cost)
    device = linked(lowered_parts(costed, chip, cost), plan, chip)
    function = program.model.function
    with ir.InsertionPoint(function), function.location:
        write_graph(device)
    function.erase()


def _store_weights(program: ReadProgram) -> None:
    """Put the values of weights, where somebody collects them, as the program takes them; add those of constants."""
    values = collected()
    if values is None:
        return
    stored = as_stored(values, program.graph.weights)
    values.clear()
    taken_out({**stored, **program.model.constants})
