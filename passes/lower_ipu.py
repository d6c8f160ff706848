"""`--t10-lower-ipu`: a planned model as allocations, compute sets, copies and a program of the `ipu` dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.dialect import ipu
from t10.dialect.attributes import to_attr
from t10.dialect.mlir import ir
from t10.emit.lower import lower
from t10.emit.program import ComputeSet, Copy, DeviceProgram, Exchange, Execute, Repeat, Step
from t10.passes.place import planned
from t10.passes.planning import PlanningPass, is_lowered


@dataclass(frozen=True, slots=True)
class LowerIpu(PlanningPass):
    """Turn every function into an ipu.graph for the chip."""

    name: ClassVar[str] = "t10-lower-ipu"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-place",)
    reads: ClassVar[str] = "placed plans, expanded or not"
    leaves: ClassVar[str] = (
        "an `ipu.graph` per function: allocations, compute sets with a vertex per tile, copies, the program"
    )

    def apply(self, module: Any) -> None:
        """Replace the function by its graph."""
        if is_lowered(module):
            return
        chip, cost = self.target(module)
        read, plan = planned(self, module)
        program = lower(plan, chip.n_cores, cost)
        with ir.InsertionPoint(read.function), read.function.location:
            _write(program, plan.graph.name, chip.sram_bytes)
        read.function.erase()

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether the module holds a graph and no function."""
        return is_lowered(module)


def _write(program: DeviceProgram, name: str, memory_bytes: int) -> None:
    """Write a device program as one `ipu.graph` at the current insertion point."""
    _, block = ipu.graph(name, chip=program.chip, tiles=program.n_tiles, memory_bytes=memory_bytes)
    with ir.InsertionPoint(block):
        handles = {
            variable.name: ipu.alloc(
                variable.name,
                element=ir.Type.parse(variable.dtype),
                shape=variable.shape,
                address=variable.address_bytes,
                mapping=((0, variable.n_tiles - 1),),
                role=variable.role,
            )
            for variable in program.variables
        }
        for compute_set in program.compute_sets:
            _write_compute_set(compute_set, handles)
        _, sequence = ipu.sequence()
    copies = {copy.name: copy for copy in program.copies}
    for operator in program.operators:
        with ir.InsertionPoint(sequence):
            op, inner = ipu.sequence()
            op.attributes["op_name"] = to_attr(operator.operator)
        _write_steps(operator.steps, copies, handles, inner)


def _write_compute_set(compute_set: ComputeSet, handles: dict[str, Any]) -> None:
    _, inside = ipu.compute_set(compute_set.name)
    with ir.InsertionPoint(inside):
        vertex = ipu.vertex(
            [handles[name] for name in compute_set.fields],
            codelet=compute_set.kind,
            op_name=compute_set.operator,
            mapping=((0, compute_set.n_tiles - 1),),
            cycles=compute_set.cycles,
        )
        if compute_set.box:
            vertex.attributes["box"] = to_attr(compute_set.box)


def _write_steps(
    steps: tuple[Step, ...], copies: dict[str, Copy], handles: dict[str, Any], block: Any
) -> None:
    """Write program steps into a block."""

    def write(step: Step, inside: Any) -> None:
        with ir.InsertionPoint(inside):
            if isinstance(step, Execute):
                ipu.execute(step.compute_set)
            elif isinstance(step, Exchange):
                copy = copies[step.copy]
                made = ipu.copy(
                    [handles[name] for name in copy.sources],
                    handles[copy.target],
                    kind=copy.kind,
                    op_name=copy.operator,
                    bytes_=copy.bytes,
                    rounds=copy.rounds,
                    cycles=copy.cycles,
                )
                if copy.kind == "shift":
                    made.attributes["axis"] = to_attr(copy.axis)
                    made.attributes["direction"] = to_attr("forward" if copy.direction > 0 else "backward")
            else:
                _write_repeat(step)

    def _write_repeat(step: Repeat) -> None:
        _, body = ipu.repeat(step.count)
        for inner in step.body:
            write(inner, body)

    for step in steps:
        write(step, block)
